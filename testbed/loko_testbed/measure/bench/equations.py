"""Equations 1 to 7 of the paper: from what the taps saw to the time that the switch needed.

A tap stamps the start of frame delimiter, so between two stamps of one frame lie the frame itself and the
next preamble. Lengths are those on the wire with FCS, without preamble; times are nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

_NS_BITS = 8_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTiming:
    """A link, as far as the equations need it."""

    rate_bps: int = 100_000_000
    preamble_bytes: int = 8
    """Preamble and start of frame delimiter."""
    gap_bytes: int = 12
    tag_bytes: int = 1
    """Bytes that a frame carries in addition between integrated switch and CPU."""

    def time_ns(self, length_bytes: int) -> int:
        """Return t, the time that so many bytes take on the link."""
        return length_bytes * _NS_BITS // self.rate_bps

    @property
    def preamble_ns(self) -> int:
        """The time of preamble and start of frame delimiter, t_{P+SFD}."""
        return self.time_ns(self.preamble_bytes)


def control_time_ns(measured_ns: int, request_bytes: int, wire: LinkTiming) -> int:
    """Equation 1: processing time of a message with reply, from M_CP."""
    return measured_ns - wire.time_ns(request_bytes) - wire.preamble_ns


def silent_control_time_ns(measured_ns: int, request_bytes: int, barrier_ns: int, wire: LinkTiming) -> int:
    """Equation 2: processing time of a message without reply, from M_CP2, the time to a barrier's reply."""
    return measured_ns - wire.time_ns(request_bytes) - barrier_ns - wire.preamble_ns


def barrier_was_in_time(
    request_to_barrier_ns: int,
    request_to_reply_ns: int,
    barrier_bytes: int,
    barrier_ns: int,
    wire: LinkTiming,
) -> bool:
    """Equation 3: whether the barrier had arrived before the message ahead of it was finished.

    `request_to_barrier_ns` is M_CP1, `request_to_reply_ns` M_CP2.
    """
    arrived_ns = request_to_barrier_ns + wire.time_ns(barrier_bytes)
    return arrived_ns < request_to_reply_ns - barrier_ns - wire.preamble_ns


def data_time_ns(measured_ns: int, frame_bytes: int, wire: LinkTiming) -> int:
    """Equation 4: processing time of a frame, from M_DP."""
    return measured_ns - wire.time_ns(frame_bytes) - wire.preamble_ns


def sequential_throughput_bps(frame_bytes: int, processing_ns: float) -> float:
    """Equation 5: a lower bound of the throughput of a switch that works on several frames at once."""
    return frame_bytes * _NS_BITS / processing_ns


def cpu_time_ns(processing_ns: float, frame_bytes: int, wire: LinkTiming) -> float:
    """Equation 7, with the integrated switch's own time neglected as the paper does."""
    inner_ns = wire.time_ns(frame_bytes + wire.tag_bytes)
    return processing_ns - 2 * wire.preamble_ns - 2 * inner_ns


def link_bps(frame_bytes: int, wire: LinkTiming) -> float:
    """Line rate as the paper means it: what the link to the CPU carries (second half of equation 6)."""
    overhead_bytes = wire.tag_bytes + wire.preamble_bytes + wire.gap_bytes
    return frame_bytes / (frame_bytes + overhead_bytes) * wire.rate_bps


def throughput_bps(frame_bytes: int, processing_ns: float, wire: LinkTiming) -> float:
    """Equation 6: the slower of the CPU and its link."""
    most_bps = link_bps(frame_bytes, wire)
    cpu_ns = cpu_time_ns(processing_ns, frame_bytes, wire)
    # Another kind of switch may be faster than a CPU behind such a link could be.
    return most_bps if cpu_ns <= 0 else min(frame_bytes * _NS_BITS / cpu_ns, most_bps)
