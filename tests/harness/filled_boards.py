"""Admitted sets that use up emulated boards, and boards that are not as the plan assumes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from loko.admission import Admission, Admitted
from loko.admission.schemes import SchemeVariant, admission_of
from loko.control.entries import switch_entries
from loko.switch_model.device import load_profile
from loko.switch_model.flow import Flow
from loko.switch_model.mix import mix_of_equal
from loko.switch_model.scenario import EVALUATION
from loko.topology.frame import frame_of
from loko.topology.lab import Lab, load_lab
from loko_testbed.simulation.virtual import SEQUENCE_OFFSET, lab_network

LAB = load_lab("two-switch")
FAST_PPM = load_profile("zodiac-fx").tolerance.sender_clock_ppm.value
ENDS = (("H1", "H2"), ("H2", "H1"))
FRAME = 306
MIX = mix_of_equal(ENDS, rate_bps=2.94e6, burst_bytes=FRAME, frame_bytes=FRAME)
"""Four such flows take nearly all of the rate."""


def flow(number: int, rate_bps: float, burst_bytes: float = FRAME) -> Flow:
    """Return a flow between two hosts of one switch, every other one in the other direction."""
    source, destination = ENDS[number % 2]
    return Flow(f"f{number}", source, destination, 1000 + number, 2000 + number, rate_bps, burst_bytes, FRAME)


def largest(fits: Callable[[float], bool], most: float) -> float:
    """Return the largest rate that fits, by a binary search to the last bit."""
    low, high = 0.0, most
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def all_fit(admission: Admission, flows: Sequence[Flow]) -> bool:
    """Request the flows of an admission without others. Return whether all are admitted."""
    admission.release_all()
    return all(isinstance(admission.request(flow), Admitted) for flow in flows)


def admission(choice: SchemeVariant, lab: Lab) -> Admission:
    """Return an empty admission that reserves for what boards do by themselves."""
    return admission_of(
        lab,
        choice,
        EVALUATION,
        mix=MIX if choice.is_optimised else None,
        traffic={} if choice.reserves_control else None,
    )


def filled(choice: SchemeVariant, lab: Lab, flows: int, *, part: float = 1.0) -> Admission:
    """Admit this many one-frame flows that share a part of the largest rate that the scheme allows."""
    empty = admission(choice, lab)

    def asked(rate_bps: float) -> list[Flow]:
        return [flow(number, rate_bps / flows) for number in range(flows)]

    all_fit(empty, asked(part * largest(lambda rate_bps: all_fit(empty, asked(rate_bps)), 20e6)))
    assert len(empty.admitted) == flows
    return empty


def admitted_of(admission: Admission) -> list[Admitted]:
    """Return the admitted flows in order."""
    return list(admission.admitted.values())


def carried(admitted: Sequence[Admitted], profile: Path, *, seconds: float) -> tuple[int, float]:
    """Return lost frames, and the largest ratio of delay to guarantee, if fast clocks send all they may.

    The boards are those of the profile.
    """
    flows = [granted.flow for granted in admitted]
    network = lab_network(
        LAB,
        switch_entries(LAB, admitted, entries=17),
        seed=1,
        profile_of=dict.fromkeys(LAB.switches, str(profile)),
    )
    for number, flow in enumerate(flows):
        rate_bps = flow.rate_bps * (1 + FAST_PPM * 1e-6)
        free = flow.burst_bytes / flow.frame_bytes
        counts = np.arange(1, int(seconds * rate_bps / 8 / flow.frame_bytes) + int(free))
        instants_ns = np.maximum(0, np.ceil((counts - free) * flow.frame_bytes * 8e9 / rate_bps))
        network.add_pattern(
            flow.source,
            flow=number,
            frame=frame_of(LAB, flow),
            sequence_offset=SEQUENCE_OFFSET,
            shaper_rate_bps=math.ceil(rate_bps),
            shaper_burst_bytes=flow.burst_bytes,
            instants_ns=instants_ns.astype(np.int64),
            destination=flow.destination,
        )
    result = network.run(duration_ns=int(seconds * 1e9), drain_ns=1_000_000_000)
    arrived = result.received_ns >= 0
    delays_ns = (result.received_ns - result.sent_ns)[arrived]
    guarantees_ns = np.array([granted.guarantee_ns for granted in admitted])[result.flow[arrived]]
    return int((~arrived).sum()), float((delays_ns / guarantees_ns).max())
