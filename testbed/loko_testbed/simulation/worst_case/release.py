"""Release patterns of hosts that keep to the admitted token buckets.

A pattern says when frames are offered; the sender's bucket delays what comes too early, so nothing that is
sent breaks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko_testbed.simulation.traffic import Instants
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet

LEAD_NS: Final = 60_000_000
"""From the start of a run or round to the instant that the bursts aim at: longer than any path takes."""
_MOST_FOLLOWING: Final = 40
_JITTERS_NS: Final = (0, 1_000, 30_000, 300_000)


@dataclass(frozen=True, kw_only=True)
class BurstPattern:
    """One critical instant: when each flow's burst is released, and how many frames follow it."""

    offsets_ns: Instants
    """By flow: release of its burst, relative to the critical instant."""
    following: NDArray[np.int64]
    """By flow: number of frames after the burst, each sent as soon as the bucket allows."""


def burst_frames(case: AdmittedSet) -> NDArray[np.int64]:
    """Return the whole frames that each flow's bucket holds."""
    return np.array([int(flow.burst_bytes // flow.frame_bytes) for flow in case.flows], dtype=np.int64)


def refill_ns(case: AdmittedSet) -> float:
    """Return the time after which every bucket is full again, however empty it was."""
    return max(flow.burst_bytes * 8e9 / flow.rate_bps for flow in case.flows)


def aimed_pattern(case: AdmittedSet, rng: np.random.Generator, *, victim: int | None = None) -> BurstPattern:
    """Aim all bursts at a frame of the victim, each where its path joins the victim's.

    The delays up to there are accounted for. How long the victim has waited before each switch is a guess
    between nothing and the switch's bound.
    """
    number = int(rng.integers(len(case.admitted))) if victim is None else victim
    chosen = case.admitted[number]
    waits = rng.uniform(0.0, 1.0) * rng.choice([0.0, 0.5, 1.0])
    at_switch_ns: dict[str, float] = {}
    passed_ns = 0.0
    for hop in chosen.hops:
        at_switch_ns[hop.switch] = passed_ns
        idle_ns = case.idle_ns(hop.switch, chosen.flow.frame_bytes)
        passed_ns += idle_ns + waits * max(0.0, hop.delay_ns - idle_ns)
    offsets = np.zeros(len(case.admitted))
    for index, admitted in enumerate(case.admitted):
        joins = [hop.switch for hop in admitted.hops if hop.switch in at_switch_ns]
        if joins and index != number:
            switch = joins[0] if rng.random() < 0.5 else joins[int(rng.integers(len(joins)))]
            upstream_ns = case.upstream_ns(admitted, switch) or 0.0
            offsets[index] = at_switch_ns[switch] - upstream_ns
    jitter_ns = rng.choice(_JITTERS_NS)
    offsets += rng.uniform(-1, 1, len(offsets)) * jitter_ns
    # The victim's own frame comes last, so that it waits for the others.
    offsets[number] += rng.choice([0.0, 5_000.0, 50_000.0])
    most = int(rng.choice([0, 3, _MOST_FOLLOWING]))
    following = rng.integers(0, most + 1, len(offsets))
    return BurstPattern(offsets_ns=offsets.astype(np.int64), following=following.astype(np.int64))


def sustained_pattern(case: AdmittedSet, *, seconds: float) -> BurstPattern:
    """Release all bursts at once; then every flow sends all that it may for this long."""
    return BurstPattern(
        offsets_ns=np.zeros(len(case.admitted), dtype=np.int64),
        following=np.array(
            [int(seconds * flow.rate_bps / 8 / flow.frame_bytes) for flow in case.flows], dtype=np.int64
        ),
    )


def scattered_pattern(case: AdmittedSet, rng: np.random.Generator, *, within_ns: int) -> BurstPattern:
    """Release bursts at independent random instants."""
    count = len(case.admitted)
    return BurstPattern(
        offsets_ns=rng.integers(0, within_ns, count).astype(np.int64),
        following=rng.integers(0, _MOST_FOLLOWING, count).astype(np.int64),
    )


def vary(bursts: BurstPattern, rng: np.random.Generator, *, scale_ns: float) -> BurstPattern:
    """Return a variation, with the phases or lengths of a few flows changed."""
    offsets, following = bursts.offsets_ns.copy(), bursts.following.copy()
    for index in rng.integers(0, len(offsets), int(rng.integers(1, 4))):
        if rng.random() < 0.75:
            offsets[index] += int(rng.normal(0, scale_ns))
        else:
            following[index] = rng.integers(0, _MOST_FOLLOWING + 1)
    return BurstPattern(offsets_ns=offsets, following=following)


def release_instants(
    case: AdmittedSet, at_ns: Sequence[int], bursts: Sequence[BurstPattern]
) -> list[Instants]:
    """Return, by flow, when its frames are offered if each of the bursts aims at its instant."""
    frames = burst_frames(case)
    begins = np.array(at_ns, dtype=np.int64)[:, None] + np.array([burst.offsets_ns for burst in bursts])
    following = np.array([burst.following for burst in bursts])
    instants = []
    for index, flow in enumerate(case.flows):
        spacing_ns = flow.frame_bytes * 8e9 / flow.rate_bps
        counts = frames[index] + following[:, index]
        places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        after = np.maximum(places - (frames[index] - 1), 0)
        offered = np.repeat(begins[:, index], counts) + (after * spacing_ns).astype(np.int64)
        instants.append(np.sort(np.maximum(offered, 0)))
    return instants
