"""Finds the groups in which a scheduler let frames go, from when each was received."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loko.slices.document import HtbQueue, Port
from loko.slices.lengths import Scheduler, counted, on_wire

_SLOTS = 2
"""Frames of one group follow each other on the wire; a pause of more than so many frames parts two groups."""


def longest_gap_ns(port: Port, frame_bytes: int) -> float:
    """The longest time between the beginnings of two frames of one group through the port's first queue.

    Two frames on the wire; or, as no interface of a computer paces that exactly, half of what a class needs
    to earn the tokens of a frame, if that is longer: frames that are dequeued one by one are further apart.
    """
    wire_ns = _SLOTS * on_wire(frame_bytes) * 8e9 / port.link_rate_bps
    queue = port.queues[0]
    if not isinstance(queue, HtbQueue):
        return wire_ns
    return max(wire_ns, counted(Scheduler.HTB, frame_bytes) * 8e9 / queue.rate_bps / 2)


def group_lengths(received_ns: NDArray[np.int64], gap_ns: float) -> list[int]:
    """The lengths of the groups of a burst, in order."""
    ends = np.flatnonzero(np.diff(received_ns) > gap_ns) + 1
    return [len(group) for group in np.split(received_ns, ends)]


def step_lengths(latency_ns: NDArray[np.float64], slot_ns: float) -> list[int]:
    """The lengths of the steps of a stair over 1, 2, ... packets, without the last, which may go on.

    A step ends where one packet more costs more than two frames on the wire, and more than half of what the
    dearest one costs.
    """
    rises = np.diff(latency_ns)
    ends = np.flatnonzero((rises > _SLOTS * slot_ns) & (rises > rises.max(initial=0.0) / 2)) + 1
    return [int(length) for length in np.diff(np.concatenate([[0], ends]))]
