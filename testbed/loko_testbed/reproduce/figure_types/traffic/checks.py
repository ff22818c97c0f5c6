"""Checks of claims on the points of a sweep: losses, late packets, delays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from loko_testbed.reproduce.facts import Fact
from loko_testbed.reproduce.figure import (
    NOTHING_MEASURED,
    Check,
    ClaimOutcome,
    Evidence,
    Judgement,
    NotTestable,
    NumberCheck,
)
from loko_testbed.reproduce.folder import full_name
from loko_testbed.reproduce.result import LOSS_PERCENT, PointResult, Printed, Series

Statistic = Literal["min", "p1", "p25", "p50", "p75", "p99", "max"]


class PointsByX:
    """Groups the points of all series by x, without those at which a flow sent nothing."""

    def __init__(self, series: Sequence[Series]) -> None:
        self.by_x: dict[float, list[PointResult]] = {}
        self._silent: set[float] = set()
        for line in series:
            for point in line.points:
                if point.packets:
                    self.by_x.setdefault(point.x, []).append(point)
                else:
                    self._silent.add(point.x)

    def at(self, values: Sequence[float]) -> list[PointResult] | None:
        """Return the points at these x; None if a flow sent nothing at one of them."""
        if self.missing(values):
            return None
        return [point for x in values for point in self.by_x[x]]

    def missing(self, values: Iterable[float]) -> list[float]:
        """Return those of these x at which a flow sent nothing, or that were not replayed."""
        return [x for x in values if x in self._silent or x not in self.by_x]

    def loss(self, x: float) -> float:
        """Return the share of lost packets at x over all flows."""
        points = self.by_x[x]
        return sum(point.lost for point in points) / sum(point.packets for point in points)

    @property
    def largest_loss(self) -> float:
        """The largest share of lost packets of all flows together at any x."""
        return max(map(self.loss, self.by_x), default=0.0)

    @property
    def lost_from(self) -> float | None:
        """The smallest x at which a packet was lost; None if none was."""
        return self.first(lambda point: point.lost)

    @property
    def late_from(self) -> float | None:
        """The smallest x at which a packet was late; None if none was."""
        return self.first(lambda point: point.late)

    def first(self, count: Callable[[PointResult], int]) -> float | None:
        """Return the smallest x at which `count` is not 0 for some flow; None if there is none."""
        return min((x for x, points in self.by_x.items() if any(map(count, points))), default=None)

    def delay_ms(self, x: float, statistic: str) -> float | None:
        """Return the largest of the flows' statistics at x; None if no packet arrived."""
        delays_ms = [getattr(point.delay_ms, statistic) for point in self.by_x[x]]
        return max((value for value in delays_ms if value is not None), default=None)


class NothingBad(Check):
    """No packet is lost, or none needs longer than guaranteed, at these x, by default at all x."""

    ordinal = True
    holds_if = "no packet at all"
    kind: Literal["no_loss", "no_late"]
    at: list[float] | None = Field(default=None, min_length=1)

    @property
    def denied_by_one_case(self) -> bool:
        """See `Check.denied_by_one_case`."""
        return True

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        measured = PointsByX(evidence.series)
        wanted = self.at if self.at is not None else evidence.planned
        missing = measured.missing(wanted)
        points = [point for x in wanted for point in measured.by_x.get(x, ())]
        if not points:
            return _not_at(wanted)
        here, holds = _count([_bad(self.kind, point) for point in points], points)
        if holds and missing:
            return _not_at(missing, here=here)
        if not holds and 0 < sum(point.lost + point.late for point in points) <= sum(
            point.explained for point in points
        ):
            return NotTestable(why="stalls of the host explain every one of them", here=here)
        return here, holds


class _MarkedCheck(NumberCheck):
    """A check at the fact's value of x, which pictures mark."""

    kind: str
    mark: ClassVar[str]
    """Text in the picture: a format with the fields ``check`` and ``fact``."""

    def printed(self, fact: Fact, _paper: str) -> Printed | None:
        """See `Check.printed`."""
        return _mark(fact, self.kind, fact.number, self.mark.format(check=self, fact=fact))


class LossAt(Check):
    """Packets are lost at this x."""

    ordinal = True
    holds_if = "at least one packet"
    kind: Literal["loss_at"]
    at: float

    def printed(self, fact: Fact, _paper: str) -> Printed | None:
        """See `Check.printed`."""
        return _mark(fact, self.kind, self.at, f"loss at {self.at:g}")

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        measured = PointsByX(evidence.series)
        if measured.missing([self.at]):
            return _not_at([self.at])
        loss = measured.loss(self.at)
        return (f"{_percent(loss)} lost", True) if loss > 0 else ("no loss", False)


class LossFrom(_MarkedCheck):
    """Packets are lost at the fact's value of x, and at every larger x."""

    ordinal = True
    mark = "loss from {fact.number:g} on"
    holds_if = "at least one packet at every value from {fact.number:g} on"
    kind: Literal["loss_from"]

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        measured = PointsByX(evidence.series)
        wanted = [x for x in evidence.planned if x >= evidence.fact.number]
        missing = measured.missing(wanted)
        clean = [x for x in wanted if x not in missing and measured.loss(x) == 0]
        if clean:
            return f"no loss at {_list(clean)}", False
        if missing:
            return _not_at(missing)
        losses = [measured.loss(x) for x in wanted]
        return f"{_percent(min(losses))} to {_percent(max(losses))} lost", True


class LossBeyond(_MarkedCheck):
    """Packets are lost somewhere above the fact's value of x."""

    ordinal = True
    mark = "no loss up to {fact.number:g}"
    holds_if = "at least one packet above {fact.number:g}"
    kind: Literal["loss_beyond"]

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        measured = PointsByX(evidence.series)
        above = [x for x in evidence.planned if x > evidence.fact.number]
        lossy = [x for x in above if x in measured.by_x and measured.loss(x) > 0]
        if lossy:
            return f"{_percent(measured.loss(lossy[-1]))} lost at {lossy[-1]:g}", True
        missing = measured.missing(above)
        return _not_at(missing, here="no loss") if missing else ("no loss", False)


class LateAt(_MarkedCheck):
    """Packets need longer than guaranteed at the fact's value of x."""

    ordinal = True
    mark = "late at {fact.number:g}"
    holds_if = "at least one packet at {fact.number:g}"
    kind: Literal["late_at"]

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        measured = PointsByX(evidence.series)
        points = measured.at([evidence.fact.number])
        if points is None:
            return _not_at([evidence.fact.number])
        late = sum(point.late for point in points)
        begin = measured.late_from
        onset = "nowhere" if begin is None else f"from {begin:g} on"
        return f"{late} late at {evidence.fact.number:g}; late {onset}", late > 0


_STEPS_BELOW: Final = 2
"""Values below an expected onset that are replayed at further seeds."""


class Starts(_MarkedCheck):
    """The fact's value of x is the smallest at which packets are lost, or late."""

    mark = "{check.outcome} from {fact.number:g} on"
    kind: Literal["loss_starts", "late_starts"]
    holds_if = "exactly at {fact.number:g}, of the values that are swept"

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`. A short replay, or one that omits a smaller x, may see the onset too late."""
        expected, measured = evidence.fact.number, PointsByX(evidence.series)
        if measured.missing([expected]):
            return _not_at([expected])
        begin = measured.first(lambda point: _bad(self.kind, point))
        here = "nowhere" if begin is None else f"{begin:g}"
        if begin is not None and begin < expected:
            return here, False
        missing = measured.missing(x for x in evidence.planned if x < expected)
        if missing:
            return _not_at(missing, here=here)
        if evidence.shorter:
            return NotTestable(why=f"{evidence.shorter}; a longer one may see it begin earlier", here=here)
        return here, begin == expected

    def needed(self, fact: Fact, planned: Sequence[float]) -> Sequence[float]:
        """See `Check.needed`: the expected value and those just below it, as chance moves an onset little."""
        return [x for x in planned if x <= fact.number][-1 - _STEPS_BELOW :]

    @property
    def denied_by_one_case(self) -> bool:
        """See `Check.denied_by_one_case`. One bad packet at a smaller x denies the claim."""
        return True

    def deviation(self, evidence: Evidence) -> float | None:
        """See `Check.deviation`."""
        begin = PointsByX(evidence.series).first(lambda point: _bad(self.kind, point))
        return None if begin is None or not evidence.fact.number else abs(begin / evidence.fact.number - 1)

    @property
    def outcome(self) -> str:
        """``loss`` or ``late``."""
        return self.kind.partition("_")[0]


class LossBeforeLate(Check):
    """As x grows, packets are lost before any is late."""

    ordinal = True
    holds_if = "the first loss at a smaller value than the first late packet"
    kind: Literal["loss_before_late"]

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        measured = PointsByX(evidence.series)
        lost, late = measured.lost_from, measured.late_from
        here = f"{_onset('lost', lost)}, {_onset('late', late)}"
        missing = measured.missing(evidence.planned)
        if missing:
            return _not_at(missing, here=here)
        if evidence.shorter:
            return NotTestable(why=f"{evidence.shorter}; both may begin earlier in a longer one", here=here)
        return here, lost is not None and (late is None or lost < late)


class FigureCheck(Check):
    """A check that compares with another figure of the same folder."""

    figure: str

    @property
    def compared_with(self) -> str:
        """See `Check.compared_with`."""
        return full_name(self.figure)


class LossEarlier(FigureCheck):
    """Packets are lost at a smaller x than in another figure of the same folder with the same axis."""

    ordinal = True
    holds_if = "at a smaller value than in {check.figure}"
    kind: Literal["loss_earlier"]

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        if self.compared_with not in evidence.others:
            return _without(self.figure)
        measured, other = PointsByX(evidence.series), PointsByX(evidence.others[self.compared_with])
        begin, theirs = measured.lost_from, other.lost_from
        here = f"{_onset('lost', begin)}; {self.figure} {_onset('lost', theirs)}"
        missing = measured.missing(evidence.planned)
        if missing:
            return _not_at(missing, here=here)
        if begin is None:
            return here, False
        if theirs is None and max(other.by_x, default=begin) <= begin:
            return NotTestable(why=f"{self.figure} has no point beyond {begin:g}", here=here)
        return here, theirs is None or begin < theirs


class LossNear(NumberCheck):
    """The loss at this x is within some percentage points of the fact's value."""

    holds_if = "within {check.within_points:g} percentage points of {fact.number:g} %"
    kind: Literal["loss_near"]
    at: float
    within_points: float = Field(gt=0)

    def printed(self, fact: Fact, paper: str) -> Printed | None:
        """See `Check.printed`."""
        return _mark(fact, LOSS_PERCENT, self.at, f"{paper} lost at {self.at:g}", fact.number)

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        measured = PointsByX(evidence.series)
        if measured.missing([self.at]):
            return _not_at([self.at])
        here = 100 * measured.loss(self.at)
        return f"{here:.1f} %", abs(here - evidence.fact.number) <= self.within_points

    def deviation(self, evidence: Evidence) -> float | None:
        """See `Check.deviation`."""
        measured = PointsByX(evidence.series)
        if self.at not in measured.by_x or not evidence.fact.number:
            return None
        return abs(100 * measured.loss(self.at) / evidence.fact.number - 1)


class LossBelow(FigureCheck):
    """The largest loss is below the largest loss of another figure of the same folder."""

    ordinal = True
    holds_if = "the largest loss below that of {check.figure}"
    kind: Literal["loss_below"]

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        if self.compared_with not in evidence.others:
            return _without(self.figure)
        measured = PointsByX(evidence.series)
        here, other = measured.largest_loss, PointsByX(evidence.others[self.compared_with]).largest_loss
        told = f"at most {_percent(here)}, {self.figure} {_percent(other)}"
        missing = measured.missing(evidence.planned)
        if missing:
            return _not_at(missing, here=told)
        if here == other == 0:
            return NotTestable(why=f"neither this figure nor {self.figure} lost anything", here=told)
        return told, here < other


class DelayGrows(Check):
    """Every delay from this x on exceeds every delay at smaller x by more than the factor."""

    ordinal = True
    kind: Literal["delay_grows"]
    start: float
    statistic: Statistic
    factor: float = Field(gt=1)

    def tolerance(self, _fact: Fact) -> str:
        """See `Check.tolerance`."""
        name = _name(self.statistic)
        return f"every {name} from {self.start:g} on over {self.factor:g} times every one before"

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        measured = PointsByX(evidence.series)
        missing = measured.missing(evidence.planned)
        before = [measured.delay_ms(x, self.statistic) for x in measured.by_x if x < self.start]
        after = [measured.delay_ms(x, self.statistic) for x in measured.by_x if x >= self.start]
        if not before or not after:
            return _not_at(missing)
        known_before = [value for value in before if value is not None]
        known_after = [value for value in after if value is not None]
        if not known_before or not known_after:
            return NOTHING_MEASURED
        high, low = max(known_before), min(known_after)
        here = f"{_name(self.statistic)} {high:.2f} ms before, {low:.2f} ms from there"
        if missing and low > self.factor * high:
            return _not_at(missing, here=here)
        return here, low > self.factor * high


class DelayRises(Check):
    """The delay never falls by more than the slack between neighbouring x, and is larger at the last x."""

    ordinal = True
    kind: Literal["delay_rises"]
    at: list[float] | None = Field(default=None, min_length=2)
    """The x to compare. Default: all."""
    statistic: Statistic
    slack: float = Field(ge=0, lt=1)

    def tolerance(self, _fact: Fact) -> str:
        """See `Check.tolerance`."""
        where = "" if self.at is None else f" at {_list(self.at)}"
        return (
            f"{_name(self.statistic)}{where} falls nowhere by more than {100 * self.slack:g} %, rises in all"
        )

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        measured = PointsByX(evidence.series)
        wanted = self.at if self.at is not None else evidence.planned
        missing = measured.missing(wanted)
        if missing:
            return _not_at(missing)
        delays_ms = [measured.delay_ms(x, self.statistic) for x in wanted]
        values = [value for value in delays_ms if value is not None]
        if len(values) < len(delays_ms):
            return NOTHING_MEASURED
        rises = (
            all(after >= before * (1 - self.slack) for before, after in pairwise(values))
            and values[-1] > values[0]
        )
        return f"{_name(self.statistic)} {', '.join(f'{value:.2f}' for value in values)} ms", rises


SweepCheck = Annotated[
    NothingBad
    | LossAt
    | LossFrom
    | LossBeyond
    | LateAt
    | Starts
    | LossBeforeLate
    | LossEarlier
    | LossNear
    | LossBelow
    | DelayGrows
    | DelayRises,
    Field(discriminator="kind"),
]


def _bad(kind: str, point: PointResult) -> int:
    """Return the number of lost or late packets, whichever a check of this kind counts."""
    return point.lost if "loss" in kind else point.late


def _not_at(values: Sequence[float], here: str = "not measured") -> NotTestable:
    return NotTestable(why=f"nothing was sent at {_list(values)}", here=here)


def _without(figure: str) -> NotTestable:
    return NotTestable(why=f"{figure} is not in this folder, replayed on the same scale")


def _mark(fact: Fact, finding: str, x: float, text: str, value: float | None = None) -> Printed:
    return Printed(finding=finding, x=x, value=value, text=text, fact=fact.reference)


def _onset(what: str, x: float | None) -> str:
    return f"none {what}" if x is None else f"{what} from {x:g} on"


def _name(statistic: Statistic) -> str:
    """Return a statistic's name, such as "99 % quantile"."""
    words = {"min": "least delay", "max": "greatest delay", "p50": "median"}
    return words.get(statistic, f"{statistic[1:]} % quantile")


def _count(counts: Sequence[int], points: Sequence[PointResult]) -> ClaimOutcome:
    bad = sum(counts)
    if not bad:
        return f"0 of {sum(point.packets for point in points)}", True
    where = sorted({point.x for point, count in zip(points, counts, strict=True) if count})
    return f"{bad} of {sum(point.packets for point in points)} (at {_list(where)})", False


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.1f} %"


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
