"""How hosts send while something fails: all that they may, or bursts that meet before and after."""

from __future__ import annotations

import numpy as np

from loko_testbed.simulation.failures.protected_lab import Cut, ProtectedLab
from loko_testbed.simulation.traffic import Instants
from loko_testbed.simulation.worst_case.release import (
    LEAD_NS,
    aimed_pattern,
    burst_frames,
    release_instants,
)

_PERIOD_NS = 100_000_000
"""From one instant at which bursts meet to the next."""


def all_that_they_may(protected: ProtectedLab, *, duration_ns: int) -> list[Instants]:
    """Return, by flow, releases of frames that its bucket lets through as soon as it can."""
    flows = protected.sent.flows[: len(protected.plan.flows)]
    frames = [int(duration_ns * flow.rate_bps / 8e9 / flow.frame_bytes) + 1 for flow in flows]
    bursts = burst_frames(protected.sent)[: len(flows)]
    return [
        np.zeros(count + burst, dtype=np.int64) for count, burst in zip(frames, bursts.tolist(), strict=True)
    ]


def meeting_bursts(
    protected: ProtectedLab, cut: Cut, rng: np.random.Generator, *, duration_ns: int
) -> list[Instants]:
    """Return, by flow, releases of bursts that meet at switches, every 100 ms.

    One instant is up to the longest guarantee before the failure, so that frames are under way. Until the
    flows have moved, bursts are aimed along their working paths, then along those that they take now.
    """
    recovery = protected.recovery(cut.failure)
    moved_ns = cut.at_ns + (0.0 if recovery is None else recovery.outage_ns)
    longest_ns = max(flow.guarantee_ns for flow in protected.plan.flows.values())
    under_way_ns = max(LEAD_NS, cut.at_ns - round(rng.uniform(0, longest_ns)))
    first_ns = LEAD_NS + (under_way_ns - LEAD_NS) % _PERIOD_NS
    at_ns = np.arange(first_ns, max(duration_ns, first_ns + 1), _PERIOD_NS, dtype=np.int64)
    if protected.has_port_queues:  # where no time of an idle switch tells how to aim
        frames = burst_frames(protected.sent)[: len(protected.plan.flows)]
        return [np.repeat(at_ns, burst) for burst in frames]
    releases = []
    for case, instants_ns in (
        (protected.sent, at_ns[at_ns < moved_ns]),
        (protected.after(cut.failure), at_ns[at_ns >= moved_ns]),
    ):
        patterns = [aimed_pattern(case, rng) for _ in instants_ns]
        if patterns:
            releases.append(release_instants(case, instants_ns.tolist(), patterns))
    return [np.sort(np.concatenate(of_flow)) for of_flow in zip(*releases, strict=True)][
        : len(protected.plan.flows)
    ]
