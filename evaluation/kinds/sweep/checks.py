"""Checks of claims on the points of a sweep: losses, late packets, delays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from evaluation.figure import NOTHING_MEASURED, Check, Evidence, Finding, NumberCheck
from evaluation.folder import full_name
from evaluation.result import Point, Series

Statistic = Literal["min", "p1", "p25", "p50", "p75", "p99", "max"]


class Measured:
    """The points of all series together, by x."""

    def __init__(self, series: Sequence[Series]) -> None:
        self.by_x: dict[float, list[Point]] = {}
        for one in series:
            for point in one.points:
                self.by_x.setdefault(point.x, []).append(point)

    def at(self, values: Sequence[float]) -> list[Point] | None:
        """Points at these x; None if one of them was not measured."""
        if any(x not in self.by_x for x in values):
            return None
        return [point for x in values for point in self.by_x[x]]

    def loss(self, x: float) -> float:
        """Loss at x over all flows."""
        points = self.by_x[x]
        packets = sum(point.packets for point in points)
        return sum(point.lost for point in points) / packets if packets else 0.0

    @property
    def largest_loss(self) -> float:
        """The largest loss over x, of all flows together."""
        return max(map(self.loss, self.by_x), default=0.0)

    def delay_ms(self, x: float, statistic: str) -> float | None:
        """Worst of the flows' statistics at x; None if no packet arrived."""
        found = [getattr(point.delay_ms, statistic) for point in self.by_x[x]]
        return max((value for value in found if value is not None), default=None)


class NoLoss(Check):
    """No packet is lost at these x."""

    kind: Literal["no_loss"]
    at: list[float] = Field(min_length=1)

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        points = Measured(evidence.series).at(self.at)
        return None if points is None else _count([point.lost for point in points], points)


class NoLate(Check):
    """No packet needs longer than guaranteed: at these x, or anywhere."""

    kind: Literal["no_late"]
    at: list[float] | None = None

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        measured = Measured(evidence.series)
        points = measured.at(self.at if self.at is not None else list(measured.by_x))
        return None if points is None else _count([point.late for point in points], points)


class LossAt(Check):
    """Packets are lost at this x."""

    kind: Literal["loss_at"]
    at: float

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        measured = Measured(evidence.series)
        if measured.at([self.at]) is None:
            return None
        loss = measured.loss(self.at)
        return (f"{_percent(loss)} lost", True) if loss > 0 else ("no loss", False)


class LateAt(NumberCheck):
    """Packets need longer than guaranteed at the fact's value of x."""

    kind: Literal["late_at"]

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        measured = Measured(evidence.series)
        points = measured.at([evidence.fact.number])
        if points is None:
            return None
        late = sum(point.late for point in points)
        begin = _first(measured, lambda point: point.late)
        onset = "nowhere" if begin is None else f"from {begin:g} on"
        return f"{late} late at {evidence.fact.number:g}; late {onset}", late > 0


class LossStarts(NumberCheck):
    """Packets are lost at the fact's value of x, and none at a smaller x."""

    kind: Literal["loss_starts"]

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        return _starts(evidence.fact.number, Measured(evidence.series), lambda point: point.lost)


class LateStarts(NumberCheck):
    """Packets are late at the fact's value of x, and none at a smaller x."""

    kind: Literal["late_starts"]

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        return _starts(evidence.fact.number, Measured(evidence.series), lambda point: point.late)


class LossNear(NumberCheck):
    """The loss at this x is the fact's value in per cent, give or take some percentage points."""

    kind: Literal["loss_near"]
    at: float
    within_points: float = Field(gt=0)

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        measured = Measured(evidence.series)
        if measured.at([self.at]) is None:
            return None
        here = 100 * measured.loss(self.at)
        return f"{here:.1f} %", abs(here - evidence.fact.number) <= self.within_points


class LossBelow(Check):
    """The largest loss here is below the largest loss of another figure of the same run."""

    kind: Literal["loss_below"]
    figure: str

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        other = evidence.largest_loss.get(full_name(self.figure))
        here = Measured(evidence.series).largest_loss
        if other is None or here == other == 0:
            return None  # no point of either figure offers more than is admitted
        return f"at most {_percent(here)}, {self.figure} {_percent(other)}", here < other


class DelayGrows(Check):
    """From this x on the delay lies above all smaller x by more than the factor."""

    kind: Literal["delay_grows"]
    start: float
    statistic: Statistic
    factor: float = Field(gt=1)

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        measured = Measured(evidence.series)
        before = [measured.delay_ms(x, self.statistic) for x in measured.by_x if x < self.start]
        after = [measured.delay_ms(x, self.statistic) for x in measured.by_x if x >= self.start]
        if not before or not after:
            return None
        known_before = [value for value in before if value is not None]
        known_after = [value for value in after if value is not None]
        if not known_before or not known_after:
            return NOTHING_MEASURED
        high, low = max(known_before), min(known_after)
        return f"{self.statistic} {high:.2f} ms before, {low:.2f} ms from there", low > self.factor * high


class DelayRises(Check):
    """The delay never falls by more than the slack from one x to the next, and is larger at the last."""

    kind: Literal["delay_rises"]
    statistic: Statistic
    slack: float = Field(ge=0, lt=1)

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        measured = Measured(evidence.series)
        if len(measured.by_x) < 2:
            return None
        found = [measured.delay_ms(x, self.statistic) for x in sorted(measured.by_x)]
        values = [value for value in found if value is not None]
        if len(values) < len(found):
            return NOTHING_MEASURED
        rises = (
            all(after >= before * (1 - self.slack) for before, after in pairwise(values))
            and values[-1] > values[0]
        )
        return f"{self.statistic} {values[0]:.2f} ms to {values[-1]:.2f} ms", rises


SweepCheck = Annotated[
    NoLoss
    | NoLate
    | LossAt
    | LateAt
    | LossStarts
    | LateStarts
    | LossNear
    | LossBelow
    | DelayGrows
    | DelayRises,
    Field(discriminator="kind"),
]


def _count(counts: Sequence[int], points: Sequence[Point]) -> Finding:
    if not sum(point.packets for point in points):
        return NOTHING_MEASURED
    bad = sum(counts)
    if not bad:
        return "0", True
    where = sorted({point.x for point, count in zip(points, counts, strict=True) if count})
    return f"{bad} of {sum(point.packets for point in points)} (at {_list(where)})", False


def _starts(expected: float, measured: Measured, count: Callable[[Point], int]) -> Finding | None:
    if expected not in measured.by_x or min(measured.by_x) >= expected:
        return None
    begin = _first(measured, count)
    return ("nowhere" if begin is None else f"{begin:g}"), begin == expected


def _first(measured: Measured, count: Callable[[Point], int]) -> float | None:
    return min((x for x, points in measured.by_x.items() if any(map(count, points))), default=None)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.1f} %"


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
