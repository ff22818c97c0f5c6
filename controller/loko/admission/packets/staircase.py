"""Staircase arrival curves of whole frames, sampled at their maximum in each cell of a grid of intervals."""

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
"""Pairs of the width of cells and the end of the zone with that width, in ns."""
_CURVES: Final = 64
"""How many curves of each sort to cache."""
_STAIRCASES: Final = 256
"""How many staircase curves to cache, of 2 to 14 kB each. Equal flows share one per switch of a path."""
_ROUNDING: Final = 1e-9
"""Added to a number of frames before it is rounded down: never one too few."""


class Zone(NamedTuple):
    """Consecutive cells of a grid that have the same width."""

    first: int
    cells: int
    begin_ns: int
    """Left end of the first cell."""
    width_ns: int


class Staircase(NamedTuple):
    """Frames of a flow that arrive in an interval of length t: floor(first + t frames_per_ns)."""

    first: float
    frames_per_ns: float
    service_ns: int
    """CPU time that each frame takes."""

    @classmethod
    def of(
        cls, *, rate_bps: float, burst_bytes: float, jitter_ns: float, frame_bytes: int, service_ns: int
    ) -> Self:
        """Make the staircase of floor((b + r (t + J)) / l) frames."""
        bytes_per_ns = rate_bps / 8e9
        first = (burst_bytes + bytes_per_ns * jitter_ns) / frame_bytes + _ROUNDING
        return cls(first, bytes_per_ns / frame_bytes, service_ns)

    def work(self, grid: Grid, begin: int, end: int) -> Curve:
        """Return the work in the cells of a grid from `begin` to before `end`."""
        frames = grid.fractional_right_ns[begin:end] * self.frames_per_ns
        frames += self.first
        work: Curve = frames.astype(np.int64)  # cuts off the fraction
        work *= self.service_ns
        return work


class Grid:
    """A grid of interval lengths t. In a cell, curve(right end) - left end bounds curve(t) - t."""

    def __init__(self, right_ns: NDArray[np.int64]) -> None:
        """`right_ns` are the increasing right ends of the cells; the first cell is only the length 0."""
        self.right_ns = right_ns
        self.left_ns = np.concatenate(([0], right_ns[:-1]))
        self.fractional_right_ns = right_ns.astype(np.float64)
        """`right_ns` as floats, ready to be multiplied."""
        self.zones = tuple(reversed(list(self._zones())))
        """The zones of equal cells, from the longest intervals to the shortest."""

    @classmethod
    @lru_cache
    def standard(cls) -> Self:
        """Return a grid up to 400 ms: fine where queues of a few ms build up, coarser beyond."""
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
        """Return the curve `first_ns` + `ratio` (t + `ahead_ns`)."""
        return _fluid(self, first_ns, ahead_ns, ratio)

    def one_by_one(self, *, service_ns: int, spacing_ns: int, ahead_ns: int) -> Curve:
        """Return the curve of frames of one size that follow each other at least `spacing_ns` apart."""
        return _one_by_one(self, service_ns, spacing_ns, ahead_ns)

    def work(self, staircase: Staircase, cells: int) -> Curve:
        """Return the work of a staircase in the first cells."""
        return _work(self, staircase, cells)

    def interruption(self, share: float) -> Curve:
        """Return the curve of what interruptions take beyond their burst."""
        return _interruption(self, share)


# Thousands of switches of one kind may share these curves, so they are read-only.


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
