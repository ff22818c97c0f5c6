"""Find the groups in which a scheduler released frames, from the times of arrival."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from loko.slicing.document import HtbPort, HtbQueue, Port
from loko.slicing.lengths import Scheduler, counted, on_wire
from loko.units import NS_PER_US

_SLOTS = 2
"""A pause longer than this many frames on the wire separates two groups."""


def longest_gap_ns(port: Port, frame_bytes: int) -> float:
    """Return the longest time from start to start of two frames of one group in the port's first queue.

    That is the time of two frames on the wire. As no interface of a computer paces that exactly, it is half
    the time in which a class earns the tokens of a frame, if that is longer: frames dequeued one by one are
    further apart than that.
    """
    wire_ns = _SLOTS * on_wire(frame_bytes) * 8e9 / port.link_rate_bps
    queue = port.queues[0]
    if not isinstance(queue, HtbQueue):
        return wire_ns
    return max(wire_ns, _token_ns(queue, frame_bytes) / 2)


def gap_seen_ns(received_ns: Iterable[NDArray[np.int64]]) -> float:
    """Return the longest time within a group of frames that a real switch with policers let through.

    How fast a switch hands over the frames of a group is up to the machine, and most frames follow another of
    their group. So it is twice the median.
    """
    gaps_ns = np.concatenate([np.diff(burst) for burst in received_ns])
    return _SLOTS * float(np.median(gaps_ns)) if gaps_ns.size else 0.0


def max_pause_ns(port: Port, frame_bytes: int) -> float:
    """Return the longest pause of a sender that does not tear a burst apart.

    Until then a class whose bucket is empty does not earn the tokens of another frame, and the next poll of
    policers still finds what comes.
    """
    if isinstance(port, HtbPort):
        return max(longest_gap_ns(port, frame_bytes), _token_ns(port.queues[0], frame_bytes))
    return port.dequeue.poll_us * NS_PER_US


def _token_ns(queue: HtbQueue, frame_bytes: int) -> float:
    return counted(Scheduler.HTB, frame_bytes) * 8e9 / queue.rate_bps


def group_lengths(received_ns: NDArray[np.int64], gap_ns: float) -> list[int]:
    """Return the lengths of the groups of a burst, in order."""
    ends = np.flatnonzero(np.diff(received_ns) > gap_ns) + 1
    return [len(group) for group in np.split(received_ns, ends)]


def step_lengths(latency_ns: NDArray[np.float64], slot_ns: float) -> list[int]:
    """Return the lengths of a stair's steps over 1, 2, ... packets, except the last, which may be incomplete.

    A step ends where one more packet adds more than two frames on the wire, and more than half of the largest
    rise.
    """
    rises = np.diff(latency_ns)
    ends = np.flatnonzero((rises > _SLOTS * slot_ns) & (rises > rises.max(initial=0.0) / 2)) + 1
    return [int(length) for length in np.diff(np.concatenate([[0], ends]))]
