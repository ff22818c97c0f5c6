"""Turn packet records into a figure's boxes: exact counts and quantiles, with no Python loop over packets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loko_testbed.reproduce.chart import BoxStatistics, ChartCurve
from loko_testbed.reproduce.result import DelayQuantiles, HostResult, PointResult
from loko_testbed.simulation.runner import LOST, HostReport, RunError, RunRecords, Stall

_QUANTILES = {"min": 0.0, "p1": 0.01, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p99": 0.99, "max": 1.0}

_SHARES: Final = 200
"""Points of a distribution function."""
_LONGEST_NS: Final = 3_600 * 1_000_000_000
"""Longest plausible delay (one hour); `DelayStats.add` refuses longer ones.

It is generous because a coarse emulator on a busy machine may well need seconds.
"""


class DelayStats:
    """Accumulates one flow's packets at one x over all runs. Keeps only the delays, usually 4 bytes each."""

    def __init__(self, *, flow: int, guarantee_ns: float) -> None:
        self._flow = flow
        self._guarantee_ns = guarantee_ns
        self._delays: list[NDArray[np.unsignedinteger[Any]]] = []
        self._packets = 0
        self._lost = 0
        self._late = 0
        self._explained = 0

    def add(self, records: RunRecords) -> None:
        """Add the packets of one run. Raises `RunError` if a delay is negative or implausibly long."""
        mine = records.flow == self._flow
        sent, received = records.sent_ns[mine], records.received_ns[mine]
        arrived = received != LOST
        delays = received[arrived] - sent[arrived]
        if delays.size and (delays.min() < 0 or delays.max() > _LONGEST_NS):
            raise RunError(
                f"flow {self._flow}: delays of {delays.min()} to {delays.max()} ns; was the clock set?"
            )
        late = delays > self._guarantee_ns
        small = not delays.size or delays.max() <= np.iinfo(np.uint32).max
        self._delays.append(delays.astype(np.uint32 if small else np.uint64))
        self._packets += sent.size
        self._lost += sent.size - delays.size
        self._late += int(np.count_nonzero(late))
        if records.host.stalls:
            lost_from = sent[~arrived]
            late_from, late_to = sent[arrived][late], received[arrived][late]
            until = lost_from + int(self._guarantee_ns)
            self._explained += count_stalled(lost_from, until, records.host.stalls)
            self._explained += count_stalled(late_from, late_to, records.host.stalls)

    def point(self, x: float, *, guaranteed: bool) -> PointResult:
        """Return the box over all runs added so far."""
        return PointResult(
            x=x,
            packets=self._packets,
            lost=self._lost,
            loss=self._lost / self._packets if self._packets else 0.0,
            late=self._late,
            explained=self._explained,
            guaranteed=guaranteed,
            delay_ms=delays_ms(np.concatenate(self._delays) if self._delays else np.empty(0, np.uint32)),
        )


def count_stalled(begin_ns: NDArray[np.int64], end_ns: NDArray[np.int64], stalls: Sequence[Stall]) -> int:
    """Count the intervals [begin, end] that overlap a stall."""
    return int(np.count_nonzero(stalled_mask(begin_ns, end_ns, stalls)))


def stalled_mask(
    begin_ns: NDArray[np.int64], end_ns: NDArray[np.int64], stalls: Sequence[Stall]
) -> NDArray[np.bool_]:
    """Return a mask of the intervals [begin, end] that overlap a stall."""
    if not stalls:
        return np.zeros(begin_ns.shape, dtype=np.bool_)
    ordered = sorted(stalls, key=lambda stall: stall.start_ns)
    starts = np.array([stall.start_ns for stall in ordered], dtype=np.int64)
    ends = np.array([stall.start_ns + stall.duration_ns for stall in ordered], dtype=np.int64)
    reach = np.maximum.accumulate(ends)
    last = np.searchsorted(starts, end_ns, side="right") - 1
    touched: NDArray[np.bool_] = (last >= 0) & (reach[np.maximum(last, 0)] >= begin_ns)
    return touched


def delays_ms(delays_ns: NDArray[np.unsignedinteger[Any]]) -> DelayQuantiles:
    """Return exact quantiles in ms of delays in ns, interpolated linearly as numpy does by default.

    Reorders `delays_ns`.
    """
    if not delays_ns.size:
        return DelayQuantiles(**dict.fromkeys(_QUANTILES, None))
    values = quantiles(delays_ns, list(_QUANTILES.values()))
    return DelayQuantiles(
        **{name: round(value / 1e6, 9) for name, value in zip(_QUANTILES, values, strict=True)}
    )


def quantiles(samples: NDArray[np.unsignedinteger[Any]], fractions: Sequence[float]) -> list[float]:
    """Return quantiles of unsorted samples. Reorders `samples` in place to avoid a copy."""
    places = [fraction * (samples.size - 1) for fraction in fractions]
    below = [int(place) for place in places]
    samples.partition(sorted({min(at + step, samples.size - 1) for at in below for step in (0, 1)}))
    values = []
    for place, at in zip(places, below, strict=True):
        low, high = int(samples[at]), int(samples[min(at + 1, samples.size - 1)])
        values.append(low + (high - low) * (place - at))
    return values


def box_of(values: ArrayLike, *, low: float = 1, high: float = 99, per: float = 1.0) -> BoxStatistics:
    """Return the box of at least one value; whiskers end at the percentiles `low` and `high`.

    All values are divided by `per`.
    """
    every = np.asarray(values)
    whisker_low, q1, median, q3, whisker_high = np.percentile(every, (low, 25, 50, 75, high)) / per
    return BoxStatistics(
        whisker_low=float(whisker_low),
        q1=float(q1),
        median=float(median),
        q3=float(q3),
        whisker_high=float(whisker_high),
        min=float(every.min()) / per,
        max=float(every.max()) / per,
        mean=float(every.mean()) / per,
    )


def host_of(report: HostReport) -> HostResult:
    """Convert a run's report on how well the machine kept time to the form that results store."""
    return HostResult(
        stalls=len(report.stalls),
        worst_stall_us=report.worst_stall_ns / 1000,
        lateness_us={name: value / 1000 for name, value in report.lateness_ns.items()},
    )


def linearity(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Fit a straight line; return its slope, and R^2, the share of the variance that it explains."""
    slope, offset = np.polyfit(x, y, 1)
    rest = np.array(y) - (slope * np.array(x) + offset)
    total = np.var(y)
    return float(slope), float(1 - np.var(rest) / total) if total > 0 else 1.0


def distribution(label: str, values: NDArray[np.float64]) -> ChartCurve:
    """Return the distribution function of values as a curve of steps, in percent."""
    shares = np.linspace(0, 1, min(_SHARES, len(values)))
    return ChartCurve(
        label=label,
        x=np.quantile(values, shares).tolist(),
        y=(100 * shares).tolist(),
        marker=False,
        steps=True,
    )
