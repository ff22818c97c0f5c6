"""Compute each frame's departure by the profile: a second account of the delay terms.

The terms are those of ``docs/architecture.md``; this shares no code with the firmware crate. The bench
(`systems`) has no wait for the main loop, timers or pause frames, so departures follow from arrivals alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from loko.switch_model.device import Profile
from loko.switch_model.scenario import Case
from loko.switch_model.service_curve import processing
from loko.units import NS_PER_S, PS_PER_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedDevice:
    """A switch with a table; times are in nanoseconds."""

    wire_ns: int
    """Transmission time of preamble and frame on a front port's link."""
    gap_ns: int
    inner_ns: int
    """Transmission time of preamble, frame and tail tag between integrated switch and CPU."""
    transit_ns: float
    """p_IS."""
    cpu_ns: float
    """p_CPU of equation 7, including both transits."""
    units: int
    """Capacity of the receive ring in units."""
    units_of_frame: int

    @classmethod
    def of(cls, profile: Profile, corner: Case) -> ExpectedDevice:
        """Return the device of a profile at a corner."""
        ports, length = profile.ports, corner.frame_bytes
        byte_ns = 8 * NS_PER_S // ports.link_rate_bps.value
        preamble, tag = ports.preamble_bytes.value, ports.tail_tag_bytes.value
        return cls(
            wire_ns=(preamble + length) * byte_ns,
            gap_ns=ports.interframe_gap_bytes.value * byte_ns,
            inner_ns=(preamble + length + tag) * byte_ns,
            transit_ns=profile.integrated_switch.transit_ps.value / PS_PER_NS,
            cpu_ns=processing(profile, corner).cpu_ns,
            units=profile.buffer.units.value,
            units_of_frame=-(-length // profile.buffer.unit_bytes.value),
        )

    @property
    def slot_ns(self) -> int:
        """Time from frame to frame on a busy front port."""
        return self.wire_ns + self.gap_ns

    @property
    def capacity_pps(self) -> float:
        """Equation 6 in frames per second: the slowest of CPU, inner link and front port."""
        return NS_PER_S / max(self.cpu_ns, self.inner_ns + self.gap_ns, self.slot_ns)

    @property
    def capacity_frames(self) -> int:
        """Frames that the device holds: one in the CPU, and those in the ring (section 3.5)."""
        return 1 + self.units // self.units_of_frame

    def departures_ns(self, begins_ns: Sequence[int]) -> list[int | None]:
        """Return each frame's departure, given when its first bit arrived; None if it found the ring full.

        Exact to the nanosecond.
        """
        # Floats represent nanoseconds of days exactly, but not those since 1970.
        base = begins_ns[0] if begins_ns else 0
        departures = self._departures_ns([begin - base for begin in begins_ns])
        return [None if at is None else base + round(at) for at in departures]

    def _departures_ns(self, begins_ns: Sequence[int]) -> list[float | None]:
        departures: list[float | None] = []
        ring: deque[float] = deque()
        """Instants at which the CPU takes the frames that wait."""
        port_free = link_free = cpu_free = back_free = out_free = float("-inf")
        for begin in begins_ns:
            arrived = max(begin, port_free) + self.wire_ns
            port_free = arrived + self.gap_ns
            in_ring = max(arrived + self.transit_ns, link_free) + self.inner_ns
            link_free = in_ring + self.gap_ns
            # At the same instant, the arrival comes before the removal.
            while ring and ring[0] < in_ring:
                ring.popleft()
            if (len(ring) + 1) * self.units_of_frame > self.units:
                departures.append(None)
                continue
            taken = max(in_ring, cpu_free)
            ring.append(taken)
            cpu_free = taken + self.cpu_ns
            back = max(taken + self.cpu_ns - 2 * self.transit_ns, back_free) + self.inner_ns
            back_free = back + self.gap_ns
            leaves = max(back + self.transit_ns, out_free)
            out_free = leaves + self.slot_ns
            departures.append(leaves)
        return departures
