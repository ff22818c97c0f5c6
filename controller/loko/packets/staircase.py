"""Staircase arrival curves of whole frames, where they are highest in each cell of a grid of intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Final, NamedTuple, Self

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
_CURVES: Final = 64
"""Curves of each sort that are kept."""
_STAIRCASES: Final = 256
"""Curves of staircases that are kept, 2 to 14 kB each. Flows alike have one for each switch of a path."""
_ROUNDING: Final = 1e-9
"""Added to a number of frames before it is rounded down: never one too few."""


class Zone(NamedTuple):
    """Cells of a grid that follow each other and have one width."""

    first: int
    cells: int
    begin_ns: int
    """Left end of the first."""
    width_ns: int


class Staircase(NamedTuple):
    """Frames of a flow that come in an interval of length t: floor(first + t frames_per_ns)."""

    first: float
    frames_per_ns: float
    service_ns: int
    """Time of the CPU that each takes."""

    @classmethod
    def of(
        cls, *, rate_bps: float, burst_bytes: float, jitter_ns: float, frame_bytes: int, service_ns: int
    ) -> Self:
        """floor((b + r (t + J)) / l) frames."""
        bytes_per_ns = rate_bps / 8e9
        first = (burst_bytes + bytes_per_ns * jitter_ns) / frame_bytes + _ROUNDING
        return cls(first, bytes_per_ns / frame_bytes, service_ns)

    def work(self, grid: Grid, begin: int, end: int) -> Curve:
        """The work in cells of a grid."""
        frames = grid.fractional_right_ns[begin:end] * self.frames_per_ns
        frames += self.first
        work: Curve = frames.astype(np.int64)  # cuts off the fraction
        work *= self.service_ns
        return work


class Grid:
    """Lengths of intervals. A curve at a cell's right end less its left end bounds curve(t) - t in it."""

    def __init__(self, right_ns: NDArray[np.int64]) -> None:
        """The right ends of the cells, increasing; the first cell is the interval of length 0 alone."""
        self.right_ns = right_ns
        self.left_ns = np.concatenate(([0], right_ns[:-1]))
        self.fractional_right_ns = right_ns.astype(np.float64)
        """The same as `right_ns`, ready to be multiplied."""
        self.zones = tuple(reversed(list(self._zones())))
        """Where cells have one width, from the longest intervals to the shortest."""

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

    @cached_property
    def end_ns(self) -> int:
        """Where the grid ends."""
        return int(self.right_ns[-1])

    def _zones(self) -> Iterator[Zone]:
        widths = (self.right_ns - self.left_ns).tolist()
        first = 0
        for width_ns, alike in groupby(widths):
            count = sum(1 for _ in alike)
            yield Zone(first, count, int(self.left_ns[first]), width_ns)
            first += count

    def fluid(self, *, first_ns: int, ahead_ns: int, ratio: float) -> Curve:
        """`first_ns` at once, then work at `ratio` times the interval and `ahead_ns`."""
        return _fluid(self, first_ns, ahead_ns, ratio)

    def one_by_one(self, *, service_ns: int, spacing_ns: int, ahead_ns: int) -> Curve:
        """Frames of one size that follow each other at least `spacing_ns` apart."""
        return _one_by_one(self, service_ns, spacing_ns, ahead_ns)

    def work(self, staircase: Staircase, cells: int) -> Curve:
        """The work of a staircase in the first cells."""
        return _work(self, staircase, cells)

    def interruption(self, share: float) -> Curve:
        """What interruptions take beyond their burst."""
        return _interruption(self, share)


# Switches of one kind, thousands of them, share these curves, so nobody may write to them.


@lru_cache(maxsize=_CURVES)
def _fluid(grid: Grid, first_ns: int, ahead_ns: int, ratio: float) -> Curve:
    return _fixed(np.ceil(first_ns + (grid.right_ns + ahead_ns) * ratio).astype(np.int64))


@lru_cache(maxsize=_CURVES)
def _one_by_one(grid: Grid, service_ns: int, spacing_ns: int, ahead_ns: int) -> Curve:
    return _fixed((1 + (grid.right_ns + ahead_ns) // spacing_ns) * service_ns)


@lru_cache(maxsize=_STAIRCASES)
def _work(grid: Grid, staircase: Staircase, cells: int) -> Curve:
    return _fixed(staircase.work(grid, 0, cells))


@lru_cache(maxsize=_CURVES)
def _interruption(grid: Grid, share: float) -> Curve:
    return _fixed(np.array([math.ceil(share * float(end)) for end in grid.right_ns], dtype=np.int64))


def _fixed(curve: Curve) -> Curve:
    curve.flags.writeable = False
    return curve
