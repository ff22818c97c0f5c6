"""A switch as a server of whole frames: their longest and shortest times, and what fits into the ring.

Delay terms: docs/architecture.md; lemmas: docs/packet-granular.md. All times are counted by the fastest
sender's clock: upper bounds while the board is as slow as it may be, lower bounds while it is as fast as it
may be (`loko.switch_model.tolerance`). Upper bounds are rounded up to whole nanoseconds, lower bounds down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from loko.document import InputError
from loko.switch_model.control_traffic import (
    NO_MESSAGES,
    ControlTraffic,
    TimeBucket,
    interference,
    replies_ns,
    ring_units,
)
from loko.switch_model.device import Profile
from loko.switch_model.scenario import Scenario
from loko.switch_model.service_curve import Processing, processing, shortest_processing
from loko.units import PS_PER_NS

_ROUNDING_NS: Final = 2
"""The emulator rounds passes and times of the CPU to whole nanoseconds, each by less than one."""


@dataclass(frozen=True, kw_only=True)
class FrameTimes:
    """Times of a frame of one size, in ns."""

    service_ns: int
    """S: the longest time from when the CPU takes this frame until it takes the next one."""
    least_service_ns: int
    """The shortest such time."""
    idle_ns: int
    """C: the longest time through an idle switch, from first bit in to first bit out."""
    least_idle_ns: int
    """The shortest such time. Neither includes the cable on the way in, which delays all frames equally."""
    links_ns: int
    """The part of C on links on the way in: front link and the link to the CPU."""
    wire_ns: int
    """Shortest time that a frame occupies a front link: preamble, frame and gap."""
    longest_wire_ns: int
    """The longest such time."""
    least_work_ns: int
    """Shortest time from the beginning of the pass until the frame is handed to the MAC."""
    work_ns: int
    """The longest such time."""
    units: int
    """Units of the receive ring that the frame takes."""


@dataclass(frozen=True, kw_only=True)
class FrameServer:
    """Server model of a switch for the frames of a scenario, whatever the phase of its main loop."""

    times: Mapping[int, FrameTimes]
    """By frame size in bytes with FCS."""
    ring_units: int
    reserved_units: int
    """Units of the ring that are kept for segments of the controller."""
    poll_ns: int
    """One idle pass of the main loop."""
    interruption: TimeBucket
    """CPU time that is taken away from frames: at most burst + share t in any interval t."""
    bunching_ns: int
    """How much longer replies to the controller may delay one frame behind the CPU than the next one."""
    cable_ns: int
    """How long a signal takes through the cable on the way in."""

    @cached_property
    def largest_work_ns(self) -> int:
        """Most unfinished work, as time of the CPU, with which no frame finds the ring full (lemma 3)."""
        return self._least_lost_ns() - 1 - 2 * self.spread_ns

    @cached_property
    def spread_ns(self) -> int:
        """Twice the time by which frames of several sizes may overtake each other; 0 for one size."""
        return self._longest_links_ns - min(times.links_ns for times in self.times.values())

    @cached_property
    def _longest_links_ns(self) -> int:
        return max(times.links_ns for times in self.times.values())

    def delay_ns(self, frame_bytes: int, work_ns: int) -> int:
        """Bound the time from first bit in to first bit out, with at most this unfinished work (lemma 2)."""
        times = self.times[frame_bytes]
        behind_ns = self._longest_links_ns - times.links_ns
        return work_ns + self.spread_ns - times.service_ns + self.cable_ns + times.idle_ns + behind_ns

    def work_for(self, delay_ns: float) -> int:
        """Return the most unfinished work with which no frame is delayed longer than `delay_ns`, or lost."""
        slowest_ns = max(self.delay_ns(size, 0) for size in self.times)
        return min(math.floor(delay_ns) - slowest_ns, self.largest_work_ns)

    def jitter_ns(self, frame_bytes: int, work_ns: int) -> int:
        """Return the longest minus the shortest time from first bit in to first bit out.

        Both include the cable, which cancels out.
        """
        return self.delay_ns(frame_bytes, work_ns) - self.cable_ns - self.times[frame_bytes].least_idle_ns

    def sender_queue_ns(self, work_ns: int) -> int:
        """Return the longest wait of a frame for its host's link, behind the host's other flows (lemma 5)."""
        return math.ceil(work_ns * self._slowest)

    @cached_property
    def _slowest(self) -> float:
        """The largest ratio, over frame sizes, of the host link's time to what the CPU takes beyond it."""
        return max(
            times.longest_wire_ns / (times.service_ns - times.longest_wire_ns)
            for times in self.times.values()
        )

    def first_work_ns(self) -> int:
        """Return the work that may exist before any frame: waiting for the main loop, and interruptions."""
        return self.poll_ns + math.ceil(self.interruption.burst_ns) + _ROUNDING_NS

    def _least_lost_ns(self) -> int:
        """Return the least work in the ring with which a frame finds no room: 25 units on a Zodiac FX."""
        wanted = self.ring_units - self.reserved_units + 1
        least = [0]
        for units in range(1, wanted + 1):
            least.append(
                min(times.service_ns + least[max(0, units - times.units)] for times in self.times.values())
            )
        return least[wanted]


def frame_server(
    profile: Profile,
    scenario: Scenario,
    traffic: ControlTraffic = NO_MESSAGES,
    *,
    fastest: Profile | None = None,
    least_entries: int | None = None,
    control_wait_ns: float | None = None,
) -> FrameServer:
    """Return the server of a device for the worst of all cases that a scenario leaves open.

    `profile` is the device at its slowest, `fastest` at its fastest, by default the same: times are bounds
    for every device between them. `traffic` is what the controller may send while flows are guaranteed;
    without it, only the board itself interrupts the frames. `least_entries` is the fewest entries that the
    table ever holds, by default all planned ones, as in Loko's tables with their padding entries. Where
    segments of the controller come as frames, and so take places in the ring, `control_wait_ns` is the
    longest that they wait there.

    Raises `InputError` if the CPU takes a frame before it has handed over the previous one, or if the links
    are slower than the CPU: then frames would also queue elsewhere.
    """
    board = _BoardRange(profile, fastest or profile)
    longest: dict[int, list[Processing]] = {size: [] for size in scenario.frame_bytes}
    shortest: dict[int, list[Processing]] = {size: [] for size in scenario.frame_bytes}
    for case in scenario.cases():
        fewest = case.entries if least_entries is None else min(least_entries, case.entries)
        longest[case.frame_bytes].append(processing(board.slowest, case))
        shortest[case.frame_bytes].append(shortest_processing(board.fastest, replace(case, entries=fewest)))
    every = [case for cases in (*longest.values(), *shortest.values()) for case in cases]
    least_pause_ns = _least_pause_ns(board, every)
    times = {size: _times(board, size, longest[size], shortest[size]) for size in longest}
    stretch = profile.tolerance.stretch
    slowest_link_ns = math.ceil(stretch * max(_inner_ns(profile, size) + _gap_ns(profile) for size in times))
    fastest_ns = math.floor(least_pause_ns / stretch) + min(each.least_work_ns for each in times.values())
    if fastest_ns < slowest_link_ns:
        raise InputError(
            f"packet-granular: a frame takes the CPU of {profile.name} only {fastest_ns / 1e3:.1f} us,"
            f" a link up to {slowest_link_ns / 1e3:.1f} us; plan for more entries or for shorter frames"
        )
    taken = interference(profile, traffic, scenario.entries, scenario.openflow)
    interruption = TimeBucket(share=taken.share, burst_ns=taken.messages.burst_ns + taken.board.burst_ns)
    return FrameServer(
        times=times,
        ring_units=profile.buffer.units.value,
        reserved_units=(
            0
            if control_wait_ns is None
            else ring_units(profile, traffic, scenario.entries, scenario.openflow, delay_ns=control_wait_ns)
        ),
        poll_ns=math.ceil(stretch * profile.cpu.loop_ps.value / PS_PER_NS),
        interruption=interruption.stretched(stretch),
        bunching_ns=math.ceil(stretch * replies_ns(profile, traffic, scenario.entries, scenario.openflow)),
        cable_ns=math.ceil(stretch * profile.tolerance.cable_ns.value),
    )


class _BoardRange(NamedTuple):
    """A device at its slowest and at its fastest: every number lies between the two."""

    slowest: Profile
    fastest: Profile


def _least_pause_ns(board: _BoardRange, cases: list[Processing]) -> float:
    """Return the shortest time from when the CPU hands over a frame until it takes the next one.

    Raises `InputError` if the CPU would take the next one earlier (A3). Of a range of devices, only those are
    meant that do not.
    """
    profile, factor = board.fastest, board.fastest.cpu.capacity_factor.value
    longest = max(cases, key=lambda case: case.cpu_ns)
    work_ns = longest.cpu_ns - _beside_work_ns(profile)
    if board.slowest is board.fastest and longest.cpu_ns / factor < work_ns:
        most = math.floor(1000 * longest.cpu_ns / work_ns) / 1000
        raise InputError(
            f"packet-granular: profile '{profile.name}', cpu.capacity_factor: with {factor:g} the CPU would"
            f" take the next frame after {longest.cpu_ns / factor / 1e3:.1f} us, but it hands one over only"
            f" after {work_ns / 1e3:.1f} us; give at most {most}"
        )
    pauses_ns = (case.cpu_ns / factor - (case.cpu_ns - _beside_work_ns(profile)) for case in cases)
    return max(0.0, min(pauses_ns))


def _beside_work_ns(profile: Profile) -> float:
    """Return the part of p_CPU that is not work: both transits and the mean wait for the main loop."""
    transits_ps = 2 * profile.integrated_switch.transit_ps.value
    return (transits_ps + profile.cpu.loop_ps.value / 2) / PS_PER_NS


def _times(
    board: _BoardRange, size: int, longest: list[Processing], shortest: list[Processing]
) -> FrameTimes:
    """Return the times of a frame. What is taken off p_CPU is that of the other end: both may vary alone."""
    profile, fastest = board
    wire_ns = profile.wire_ns(profile.ports.preamble_bytes.value + size)
    keeps_ns = math.floor(wire_ns) + _gap_ns(profile)
    stretch = profile.tolerance.stretch
    most_ns, least_ns = max(case.cpu_ns for case in longest), min(case.cpu_ns for case in shortest)
    work_ns, least_work_ns = most_ns - _beside_work_ns(fastest), least_ns - _beside_work_ns(profile)
    # p_CPU contains the mean wait for the main loop; the least wait is 0.
    idle_ns = wire_ns + max(case.switch_ns for case in longest) - _half_loop_ns(fastest)
    least_idle_ns = wire_ns + min(case.switch_ns for case in shortest) - _half_loop_ns(profile)
    # No CPU takes a frame before it has handed over the last (A3), however large its capacity.
    least_service_ns = max(least_ns / fastest.cpu.capacity_factor.value, least_work_ns)
    return FrameTimes(
        service_ns=math.ceil(stretch * most_ns / profile.cpu.capacity_factor.value) + 1,
        least_service_ns=math.floor(least_service_ns / stretch),
        idle_ns=math.ceil(stretch * idle_ns) + _ROUNDING_NS,
        least_idle_ns=math.floor(least_idle_ns / stretch) - _ROUNDING_NS,
        links_ns=math.ceil(stretch * (math.ceil(wire_ns) + _inner_ns(profile, size))),
        wire_ns=math.floor(keeps_ns / stretch),
        longest_wire_ns=math.ceil(stretch * keeps_ns),
        least_work_ns=math.floor(least_work_ns / stretch),
        work_ns=math.ceil(stretch * work_ns),
        units=-(-size // profile.buffer.unit_bytes.value),
    )


def _half_loop_ns(profile: Profile) -> float:
    return profile.cpu.loop_ps.value / PS_PER_NS / 2


def _inner_ns(profile: Profile, size: int) -> int:
    """Return the time of preamble, frame and tail tag on the link between integrated switch and CPU."""
    ports = profile.ports
    return math.ceil(profile.wire_ns(ports.preamble_bytes.value + size + ports.tail_tag_bytes.value))


def _gap_ns(profile: Profile) -> int:
    return math.ceil(profile.wire_ns(profile.ports.interframe_gap_bytes.value))
