"""Cost of a frame that does not come out at port 2, from the delay of the frame right behind it.

A leader and a follower arrive back to back. The follower waits for the leader, so the time from the leader's
arrival until the follower leaves is the sum of what both take of the CPU. Not in the paper. Relies on the
paper's assumption that one CPU serves all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.os_ken_messages import flow_mod
from loko_testbed.instruments.numbered_frame import UDP_OUT, frame
from loko_testbed.instruments.numbered_table import OUT_PORT
from loko_testbed.measure.bench.device import MISSING, BenchDevice
from loko_testbed.measure.bench.equations import data_time_ns
from loko_testbed.measure.bench.part import (
    ROUNDS,
    Combinations,
    MeasurementPart,
    MeasurementSize,
    Procedure,
    SampleSet,
)
from loko_testbed.measure.bench.procedures.dp_time import TRAIN_S
from loko_testbed.simulation.runner import RunError

_SIZES: Final = (64, 306, 790, 1516)
_TRAINS: Final = 3
"""How often a train is sent at most, if frames of it do not come out."""
_SPACING_NS: Final = 4_000_000
_JITTER_NS: Final = 100_000
_LEADER_UDP: Final = UDP_OUT + 1
_MISSING_UDP: Final = UDP_OUT + 2
_OTHER_PORT: Final = 3
_DUMMIES: Final = 60
"""Entries that slow every frame down. It then takes longer than the next one needs to arrive, so that the
follower does wait, and longer than the leader's copies need to leave, so that it waits for nothing else."""
_DUMMY_UDP: Final = 7000
ENTRIES: Final = _DUMMIES + 2
"""Entries that every frame visits."""
_PAIRS: Final = 30
"""Pairs of a leader and a follower, as a multiple of the samples of lone frames."""
_PAIR_S: Final = 4.1e-3


@dataclass(frozen=True, slots=True)
class Leader:
    """The frame in front, and which costs of a profile's ``[cpu.action]`` it causes."""

    name: str
    actions: tuple[Any, ...]
    costs: tuple[str, ...]
    sizes: tuple[int, ...]
    udp: int = _LEADER_UDP


def leaders() -> Iterator[Leader]:
    """Yield all leaders of the campaign."""
    there = parser.OFPActionOutput(_OTHER_PORT, 0xFFFF)
    yield Leader("output", (there,), (), _SIZES)
    yield Leader("output three times", (there, there, there), ("output_again", "output_again"), _SIZES)
    yield Leader("drop", (), ("drop",), _SIZES)
    # The PACKET_IN of a longer frame needs several segments on the controller's connection.
    yield Leader("miss", (there,), ("packet_in",), (64, 128, 306, 480), udp=_MISSING_UDP)


def table(leader: Leader) -> list[bytes]:
    """Return entries for the leader and the follower behind padding; every frame visits all of them."""
    there = (parser.OFPActionOutput(OUT_PORT, 0xFFFF),)
    return [
        *(_entry(1 + place, _DUMMY_UDP + place, there) for place in range(_DUMMIES)),
        _entry(100, _LEADER_UDP, leader.actions),
        _entry(101, UDP_OUT, there),
    ]


def _entry(priority: int, udp: int, actions: tuple[Any, ...]) -> bytes:
    return flow_mod(parser.OFPMatch(tp_dst=udp), actions, priority=priority, xid=priority)


def measure(device: BenchDevice, leader: Leader, size: int, *, samples: int, seed: int) -> SampleSet:
    """Measure from the leader's complete arrival until the follower starts to leave, in nanoseconds."""
    gaps, train = [], []
    random = np.random.default_rng(seed)
    for number in range(samples):
        gaps += [_SPACING_NS + int(random.integers(0, _JITTER_NS)), 0]
        train += [
            frame(size, 2 * number, udp=leader.udp),
            frame(size, 2 * number + 1),
        ]
    for _ in range(_TRAINS):
        passage = device.send(gaps, train)
        entered, left = passage.entered_ns[::2], passage.left_ns[1::2]
        fine = ~(passage.disturbed[::2] | passage.disturbed[1::2])
        if fine.any() and not np.any(left[fine] == MISSING):
            break
    else:
        raise RunError(f"{device.name}: frames of {size} bytes behind '{leader.name}' did not come out")
    return SampleSet(left[fine] - entered[fine] + data_time_ns(0, size, device.wire))


def _parts(extent: MeasurementSize) -> Iterator[MeasurementPart]:
    pairs = _PAIRS * extent.samples // ROUNDS
    for turn, leader in product(range(ROUNDS), leaders()):
        expected_s = len(leader.sizes) * (pairs * _PAIR_S + TRAIN_S)
        yield MeasurementPart(
            PROCEDURE.key(leader.name, turn=turn), partial(_measured, leader, pairs), expected_s
        )


def _measured(leader: Leader, pairs: int, device: BenchDevice, seed: int) -> Combinations:
    device.load(table(leader))
    return {size: measure(device, leader, size, samples=pairs, seed=seed) for size in leader.sizes}


PROCEDURE: Final = Procedure(
    name="interference",
    text="Cost of frames that are dropped, miss the table, or are copied.",
    parts=_parts,
)
