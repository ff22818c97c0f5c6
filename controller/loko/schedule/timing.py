"""How long a slot is, and when a host sends (TSSDN, section 3.1 and algorithm 1).

A slot is as long as the slowest frame of it can take to the other end of the longest path, so the frames of
two slots never meet. How long that is comes from the model of the lab's switches
(`loko.switch_model.service_curve`), which forward for all their ports with one CPU: frames of one slot share
no cable, but they may share a CPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from loko.switch_model.allocation import Frontier
from loko.switch_model.device import deterministic
from loko.topology.lab import Lab

GUARD_NS: Final = 2_000
"""How far a host may be off its slot: section 4 says that more than 1 to 2 us make a schedule useless."""


class Exclusive(StrEnum):
    """Resources that a flow shares with no other in its slot."""

    LINKS = "links"
    """Its links, as in the paper. Where ports share a CPU, frames of a slot may wait for each other there."""
    SWITCHES = "switches"
    """The switches of its path, too: no frame waits anywhere."""


@dataclass(frozen=True, kw_only=True)
class CrossingTimes:
    """The times that decide how long a slot must be."""

    switch_ns: Mapping[str, float]
    """By switch, the longest that a frame of a slot can be in it."""
    cable_ns: Mapping[str, float]
    """By switch, the longest that a frame takes on a cable from it; the host's cable is like it."""

    def bound_ns(self, switches: Sequence[str]) -> float:
        """From the first bit that leaves the source until the last has come to the destination."""
        return self.link_bounds_ns(switches)[-1]

    def link_bounds_ns(self, switches: Sequence[str]) -> tuple[float, ...]:
        """By link of a path: from the first bit that leaves the source until the last has passed the link."""
        if not switches:
            return (max(self.cable_ns.values()),)
        crossed_ns = [self.switch_ns[name] + self.cable_ns[name] for name in switches]
        first_ns = self.cable_ns[switches[0]]
        return tuple(first_ns + sum(crossed_ns[:count]) for count in range(len(switches) + 1))


def frames_per_slot(lab: Lab, switch: str, exclusive: Exclusive) -> int:
    """How many frames of one slot can be in a switch: each needs a cable of its own to come by."""
    return 1 if exclusive is Exclusive.SWITCHES else len(lab.arrivals(switch))


def switches_with_small_buffers(
    lab: Lab, frontiers: Mapping[str, Frontier], frame_bytes: int, exclusive: Exclusive
) -> list[str]:
    """The switches whose buffers are too small for the frames of one slot; one more frame is counted."""
    return [
        name
        for name, splits in frontiers.items()
        if splits.room_bytes < frames_per_slot(lab, name, exclusive) * frame_bytes
    ]


def overloaded_switches(
    lab: Lab, frontiers: Mapping[str, Frontier], frame_bytes: int, exclusive: Exclusive, slot_ns: int
) -> list[str]:
    """The switches whose own work and messages leave no time for the frames of one slot after another.

    Then work would pile up over the slots. `crossing_times` counts on it that none does.
    """
    return [
        name
        for name, splits in frontiers.items()
        if frames_per_slot(lab, name, exclusive) * frame_bytes * 8e9 > splits.max_rate_bps * slot_ns
    ]


def crossing_times(
    lab: Lab, frontiers: Mapping[str, Frontier], frame_bytes: int, exclusive: Exclusive
) -> CrossingTimes:
    """The longest times of a lab: D = T + b/R of a burst that is all frames of a slot that can meet."""
    cable_ns = {}
    for name, switch in lab.switches.items():
        profile = deterministic(switch.profile)
        wire_ns = profile.wire_ns(frame_bytes + profile.ports.preamble_bytes.value)
        cable_ns[name] = (wire_ns + profile.tolerance.cable_ns.value) * profile.tolerance.stretch
    switch_ns = {
        name: splits.delay_ns(frames_per_slot(lab, name, exclusive) * frame_bytes)
        for name, splits in frontiers.items()
    }
    return CrossingTimes(switch_ns=switch_ns, cable_ns=cable_ns)


@dataclass(frozen=True, kw_only=True)
class CycleTiming:
    """The cycle that all hosts keep."""

    base_period_ns: int
    slot_ns: int
    guard_ns: int
    """A frame leaves at most so much before or after its slot begins; the slot's length counts both."""

    def offset_ns(self, slot: int) -> int:
        """When in each base period the slot begins: sl * ts."""
        return slot * self.slot_ns

    def first_ns(self, now_ns: int, slot: int, creation_ns: int = 0) -> int:
        """When a host first has to begin a frame (alg1, lines 4 and 5): in the base period that begins next.

        `creation_ns` is how long it takes to make the frame.
        """
        next_ns = now_ns + (self.base_period_ns - now_ns % self.base_period_ns)
        return next_ns + self.offset_ns(slot) - creation_ns


def slot_ns(longest_ns: float, guard_ns: int) -> int:
    """The shortest slot for a path that takes so long."""
    return math.ceil(longest_ns) + 2 * guard_ns
