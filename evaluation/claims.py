"""Checks the papers' claims, which experiments state as data, against what was found here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from evaluation import experiment as ask
from evaluation.experiment import Claim, Experiment, check_reference
from evaluation.facts import Fact
from evaluation.result import ClaimResult, Point, Series, TableResult

Finding = tuple[str, bool]
"""What was found here, in the words of the claim, and whether the claim holds."""

NOTHING_MEASURED: Finding = ("not measured", False)


def judge(
    experiment: Experiment,
    *,
    series: Sequence[Series] = (),
    table: TableResult | None = None,
    largest_loss: Mapping[str, float] | None = None,
) -> list[ClaimResult]:
    """Judge every claim of the experiment that can be judged.

    `largest_loss` is that of other figures of the same run by name; a claim that compares with a figure which
    is not there is left out. A claim on a value of x that was not measured (``--quick``) is left out too.
    """
    results = []
    for claim in experiment.claims:
        fact = check_reference(experiment, claim)
        finding = _find(claim, fact, series, table, largest_loss or {})
        if finding is None:
            continue
        here, holds = finding
        results.append(
            ClaimResult(
                claim=claim.claim,
                paper=claim.paper,
                here=here,
                holds=holds,
                where=fact.where,
                because="" if holds else claim.if_not,
            )
        )
    return results


def _find(
    claim: Claim,
    fact: Fact,
    series: Sequence[Series],
    table: TableResult | None,
    largest_loss: Mapping[str, float],
) -> Finding | None:
    check = claim.check
    if isinstance(check, ask.Rounds):
        return None if table is None else _rounds(check, fact.number, table)
    if isinstance(check, ask.LossBelow):
        other = largest_loss.get(check.figure)
        return None if other is None else _loss_below(check.figure, other, series)
    return _ON_POINTS[type(check)](check, fact, _Measured(series))


class _Measured:
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

    def delay_ms(self, x: float, statistic: str) -> float | None:
        """Worst of the flows' statistics at x; None if no packet arrived."""
        found = [getattr(point.delay_ms, statistic) for point in self.by_x[x]]
        return max((value for value in found if value is not None), default=None)


def _no_loss(check: ask.NoLoss, _: Fact, measured: _Measured) -> Finding | None:
    points = measured.at(check.at)
    return None if points is None else _count([point.lost for point in points], points)


def _no_late(check: ask.NoLate, _: Fact, measured: _Measured) -> Finding | None:
    points = measured.at(check.at if check.at is not None else list(measured.by_x))
    return None if points is None else _count([point.late for point in points], points)


def _count(counts: Sequence[int], points: Sequence[Point]) -> Finding:
    if not sum(point.packets for point in points):
        return NOTHING_MEASURED
    bad = sum(counts)
    if not bad:
        return "0", True
    where = sorted({point.x for point, count in zip(points, counts, strict=True) if count})
    return f"{bad} of {sum(point.packets for point in points)} (at {_list(where)})", False


def _loss_at(check: ask.LossAt, _: Fact, measured: _Measured) -> Finding | None:
    points = measured.at([check.at])
    if points is None:
        return None
    loss = measured.loss(check.at)
    return (f"{_percent(loss)} lost", True) if loss > 0 else ("no loss", False)


def _late_at(_: ask.LateAt, fact: Fact, measured: _Measured) -> Finding | None:
    points = measured.at([fact.number])
    if points is None:
        return None
    late = sum(point.late for point in points)
    begin = _first(measured, lambda point: point.late)
    onset = "nowhere" if begin is None else f"from {begin:g} on"
    return f"{late} late at {fact.number:g}; late {onset}", late > 0


def _loss_starts(_: ask.LossStarts, fact: Fact, measured: _Measured) -> Finding | None:
    return _starts(fact.number, measured, lambda point: point.lost)


def _late_starts(_: ask.LateStarts, fact: Fact, measured: _Measured) -> Finding | None:
    return _starts(fact.number, measured, lambda point: point.late)


def _starts(expected: float, measured: _Measured, count: Callable[[Point], int]) -> Finding | None:
    if expected not in measured.by_x or min(measured.by_x) >= expected:
        return None
    begin = _first(measured, count)
    return ("nowhere" if begin is None else f"{begin:g}"), begin == expected


def _first(measured: _Measured, count: Callable[[Point], int]) -> float | None:
    return min((x for x, points in measured.by_x.items() if any(map(count, points))), default=None)


def _loss_near(check: ask.LossNear, fact: Fact, measured: _Measured) -> Finding | None:
    if measured.at([check.at]) is None:
        return None
    here = 100 * measured.loss(check.at)
    return f"{here:.1f} %", abs(here - fact.number) <= check.within_points


def _loss_below(figure: str, other: float, series: Sequence[Series]) -> Finding | None:
    measured = _Measured(series)
    here = max(map(measured.loss, measured.by_x), default=0.0)
    if here == other == 0:
        return None  # no point of either figure offers more than is admitted
    return f"at most {_percent(here)}, {figure} {_percent(other)}", here < other


def _delay_grows(check: ask.DelayGrows, _: Fact, measured: _Measured) -> Finding | None:
    before = [measured.delay_ms(x, check.statistic) for x in measured.by_x if x < check.start]
    after = [measured.delay_ms(x, check.statistic) for x in measured.by_x if x >= check.start]
    if not before or not after:
        return None
    known_before = [value for value in before if value is not None]
    known_after = [value for value in after if value is not None]
    if not known_before or not known_after:
        return NOTHING_MEASURED
    high, low = max(known_before), min(known_after)
    return f"{check.statistic} {high:.2f} ms before, {low:.2f} ms from there", low > check.factor * high


def _delay_rises(check: ask.DelayRises, _: Fact, measured: _Measured) -> Finding | None:
    if len(measured.by_x) < 2:
        return None
    found = [measured.delay_ms(x, check.statistic) for x in sorted(measured.by_x)]
    values = [value for value in found if value is not None]
    if len(values) < len(found):
        return NOTHING_MEASURED
    rises = (
        all(after >= before * (1 - check.slack) for before, after in pairwise(values))
        and values[-1] > values[0]
    )
    return f"{check.statistic} {values[0]:.2f} ms to {values[-1]:.2f} ms", rises


def _rounds(check: ask.Rounds, printed: float, table: TableResult) -> Finding:
    row = next((row for row in table.rows if row[0] == check.row), None)
    if row is None:
        return NOTHING_MEASURED
    value = row[table.columns.index(check.column)]
    if isinstance(value, str):
        return NOTHING_MEASURED
    tolerance = 0.5 * 10**-check.decimals
    return f"{value:.{check.decimals + 2}f}", abs(value - printed) <= tolerance


_ON_POINTS: Mapping[type, Callable[[Any, Fact, _Measured], Finding | None]] = {
    ask.NoLoss: _no_loss,
    ask.NoLate: _no_late,
    ask.LossAt: _loss_at,
    ask.LateAt: _late_at,
    ask.LossStarts: _loss_starts,
    ask.LateStarts: _late_starts,
    ask.LossNear: _loss_near,
    ask.DelayGrows: _delay_grows,
    ask.DelayRises: _delay_rises,
}


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.1f} %"


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
