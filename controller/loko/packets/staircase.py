"""Staircase arrival curves of whole frames, where they are highest in each cell of a grid of intervals."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

Curve = NDArray[np.int64]
"""Work in ns that may arrive in an interval, at the right end of every cell of a grid."""

_STEPS_NS: Final = (
    (10_000, 4_000_000),
    (20_000, 16_000_000),
    (200_000, 100_000_000),
    (1_000_000, 400_000_000),
)
"""(width of the cells, up to where), in ns."""
_ROUNDING: Final = 1e-9
"""Added to a number of frames before it is rounded down: never one too few."""


class Grid:
    """Lengths of intervals. A curve at a cell's right end less its left end bounds curve(t) - t in it."""

    def __init__(self, right_ns: NDArray[np.int64]) -> None:
        """The right ends of the cells, increasing; the first cell is the interval of length 0 alone."""
        self.right_ns = right_ns
        self.left_ns = np.concatenate(([0], right_ns[:-1]))

    @classmethod
    @lru_cache
    def standard(cls) -> Self:
        """Up to 400 ms: fine where queues of a few ms build up, coarser beyond."""
        ends = [np.array([0], dtype=np.int64)]
        begin = 0
        for width, until in _STEPS_NS:
            ends.append(np.arange(begin + width, until + 1, width, dtype=np.int64))
            begin = until
        return cls(np.concatenate(ends))

    @property
    def end_ns(self) -> int:
        """Where the grid ends."""
        return int(self.right_ns[-1])

    def staircase(
        self, *, rate_bps: float, burst_bytes: float, jitter_ns: float, frame_bytes: int, service_ns: int
    ) -> Curve:
        """floor((b + r (t + J)) / l) frames of a flow, each of which takes the CPU for `service_ns`."""
        bytes_per_ns = rate_bps / 8e9
        first = (burst_bytes + bytes_per_ns * jitter_ns) / frame_bytes + _ROUNDING
        frames = np.floor(first + self.right_ns * (bytes_per_ns / frame_bytes))
        work: Curve = frames.astype(np.int64) * service_ns
        return work

    def fluid(self, *, first_ns: int, ahead_ns: int, ratio: float) -> Curve:
        """`first_ns` at once, then work at `ratio` times the interval and `ahead_ns`."""
        work: Curve = np.ceil(first_ns + (self.right_ns + ahead_ns) * ratio).astype(np.int64)
        return work

    def one_by_one(self, *, service_ns: int, spacing_ns: int, ahead_ns: int) -> Curve:
        """Frames of one size that follow each other at least `spacing_ns` apart."""
        work: Curve = (1 + (self.right_ns + ahead_ns) // spacing_ns) * service_ns
        return work

    def unbounded(self) -> Curve:
        """No limit. Small enough that sums of several do not overflow."""
        return np.full(len(self.right_ns), 1 << 60, dtype=np.int64)

    def interruption(self, share: float) -> Curve:
        """What interruptions take beyond their burst."""
        return np.array([math.ceil(share * float(end)) for end in self.right_ns], dtype=np.int64)
