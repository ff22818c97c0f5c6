"""A receiver that remembers as many frames as it is told takes each frame of a duplicated flow once."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

import pytest

from loko.admission.planning import scenario_of
from loko.admission.protection import ProtectedFlow, Protection, failures_of, protect
from loko.admission.schemes import admission_of, variant_of
from loko.switch_model.flow import Flow
from loko.topology.lab import ring_lab
from loko.topology.ring import Ring
from loko.units import BITS_NS_PER_BYTE_S

LAB = ring_lab(Ring(switches=4, hosts_per_switch=1, one_way=False))
CABLE_BPS = 1e8


class Outage(NamedTuple):
    """All frames that are sent on one of the paths in this time are lost."""

    path: int
    since_ns: float
    until_ns: float


def duplicated(rate_bps: float, frames: int, frame_bytes: int) -> ProtectedFlow:
    flow = Flow("f", "h1", "h3", 1, 6000, rate_bps, float(frames * frame_bytes), frame_bytes)
    scenario = scenario_of([flow], entries=5, lab=LAB)
    choice = variant_of(LAB, "loko", None)
    failures = failures_of(LAB, ["cables=1"])
    found = protect(
        LAB, [flow], lambda: admission_of(LAB, choice, scenario), failures, protection=Protection.DUPLICATE
    )
    return found.flows["f"]


def times_taken(
    protected: ProtectedFlow,
    sent_ns: Sequence[float],
    delays_ns: Mapping[int, Sequence[float]],
    outages: Sequence[Outage],
    remembered: int,
) -> list[int]:
    """Return how often the receiver takes each frame. On both paths frames arrive as they were sent."""
    copy_ns = protected.working.flow.frame_bytes * BITS_NS_PER_BYTE_S / CABLE_BPS
    arrivals: list[tuple[float, int]] = []
    for path in (0, 1):
        latest_ns = 0.0
        for number, (at_ns, delay_ns) in enumerate(zip(sent_ns, delays_ns[path], strict=True)):
            if not any(path == out.path and out.since_ns <= at_ns < out.until_ns for out in outages):
                latest_ns = max(latest_ns, at_ns + path * copy_ns + delay_ns)
                arrivals.append((latest_ns, number))
    taken, known = [0] * len(sent_ns), deque[int](maxlen=remembered)
    for _, number in sorted(arrivals):
        if number not in known:
            known.append(number)
            taken[number] += 1
    return taken


def burst_and_rate(protected: ProtectedFlow, count: int, first_ns: float) -> list[float]:
    """Return when frames are sent: a burst, and then all that the token bucket allows."""
    flow = protected.working.flow
    frames = int(flow.burst_bytes // flow.frame_bytes)
    gap_ns = flow.frame_bytes * BITS_NS_PER_BYTE_S / flow.rate_bps
    return [first_ns + max(0, number - frames + 1) * gap_ns for number in range(count)]


@pytest.mark.parametrize("seed", range(30))
def test_each_frame_is_taken_once_whatever_is_lost_and_delayed(seed: int) -> None:
    choice = Random(seed)
    protected = duplicated(choice.choice((2e4, 1e5, 2e5)), choice.choice((1, 2)), choice.choice((64, 128)))
    bound_ns = protected.guarantee_ns
    sent_ns = burst_and_rate(protected, 60, 0.0)
    for _ in range(20):
        paths = {
            path: [choice.choice((choice.random(), 0.0, 1.0)) * bound_ns for _ in sent_ns] for path in (0, 1)
        }
        slow = choice.choice((0, 1, 2))
        paths.update({slow: [bound_ns] * 60, 1 - slow: [0.0] * 60} if slow < 2 else {})
        outage = Outage(choice.choice((0, 1)), choice.choice(sent_ns), choice.choice(sent_ns))
        assert set(times_taken(protected, sent_ns, paths, [outage], protected.remembered_frames)) == {1}


def test_after_a_repair_the_receiver_takes_frames_of_both_paths_in_turn() -> None:
    """The fast path delivers new frames, the slow one those that were lost on the other."""
    protected = duplicated(2e5, 1, 64)
    sent_ns = burst_and_rate(protected, 60, 0.0)
    paths = {0: [0.0] * 60, 1: [protected.guarantee_ns] * 60}
    outages = [Outage(0, 0.0, sent_ns[30])]
    flow = protected.working.flow
    in_bound = 1 + int(flow.rate_bps * protected.guarantee_ns / BITS_NS_PER_BYTE_S // 64)
    assert set(times_taken(protected, sent_ns, paths, outages, protected.remembered_frames)) == {1}
    assert max(times_taken(protected, sent_ns, paths, outages, 1 + in_bound)) == 2
