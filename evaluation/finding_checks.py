"""Checks of claims on the named numbers of a figure (`FigureResult.findings`), for every kind that has any.

What a number is compared with is the check's own `value` or, without one, the number of the claim's fact. The
names of findings end with their units, such as ``p_fx_us``, by which they are written in reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from evaluation.facts import Fact
from evaluation.figure import Answer, Check, Claim, Evidence, Figure, Judgement, NotTestable

_UNITS: Final = {
    "ns": "ns",
    "us": "us",
    "ms": "ms",
    "s": "s",
    "bps": "bit/s",
    "kbps": "kbit/s",
    "mbps": "Mbit/s",
    "pps": "frames/s",
    "bytes": "bytes",
    "frames": "frames",
    "packets": "packets",
    "entries": "entries",
    "percent": "%",
}


def number_with_unit(name: str, value: float, digits: int = 4) -> str:
    """A finding as text, with the unit that its name ends with, if any."""
    return with_unit(name, f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}")


def with_unit(name: str, number: str) -> str:
    """A number that is written already, with the unit that the finding's name ends with, if any."""
    return f"{number} {_UNITS.get(name.rpartition('_')[2], '')}".rstrip()


def _missing(*names: str) -> NotTestable:
    return NotTestable(why=f"this replay has no {', '.join(names)}")


class _OfOne(Check):
    """A check of one finding against one number."""

    finding: str
    value: float | None = None
    """What it is compared with. Default: the fact's number."""

    @property
    def needs_number(self) -> bool:
        """As `Check.needs_number`."""
        return self.value is None

    def expected(self, fact: Fact) -> float:
        """What the finding is compared with."""
        return fact.number if self.value is None else self.value

    def expected_with_unit(self, fact: Fact) -> str:
        """The same in words."""
        return number_with_unit(self.finding, self.expected(fact))

    def find(self, evidence: Evidence) -> Judgement:
        """As `Check.find`."""
        here = evidence.findings.get(self.finding)
        if here is None:
            return _missing(self.finding)
        return number_with_unit(self.finding, here), self.holds(here, self.expected(evidence.fact))

    def holds(self, here: float, expected: float) -> bool:
        """Whether the number found here agrees with what is expected."""
        raise NotImplementedError


class Near(_OfOne):
    """Within so many per cent, or within so much, of the number."""

    kind: Literal["near"]
    within_percent: float | None = Field(default=None, ge=0)
    within: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_tolerance(self) -> Self:
        if (self.within is None) == (self.within_percent is None):
            raise ValueError("give one of within_percent and within")
        return self

    def tolerance(self, fact: Fact) -> str:
        """As `Check.tolerance`."""
        if self.within == 0:
            return f"exactly {self.expected_with_unit(fact)}"
        if self.within is None:
            margin = f"{self.within_percent:g} %"
        elif self.finding.endswith("_percent"):
            margin = f"{self.within:g} percentage points"
        else:
            margin = number_with_unit(self.finding, self.within)
        return f"within {margin} of {self.expected_with_unit(fact)}"

    def holds(self, here: float, expected: float) -> bool:
        """As `_OfOne.holds`."""
        if self.within is not None:
            return abs(here - expected) <= self.within
        return abs(here - expected) <= abs(expected) * (self.within_percent or 0.0) / 100


class AtMost(_OfOne):
    """Not above the number."""

    kind: Literal["at_most"]

    @property
    def denied_by_one_case(self) -> bool:
        """As `Check.denied_by_one_case`: more of the same can only raise what is largest, or counted."""
        return True

    def tolerance(self, fact: Fact) -> str:
        """As `Check.tolerance`."""
        return f"at most {self.expected_with_unit(fact)}"

    def holds(self, here: float, expected: float) -> bool:
        """As `_OfOne.holds`."""
        return here <= expected


class AtLeast(_OfOne):
    """Not below the number."""

    kind: Literal["at_least"]

    def tolerance(self, fact: Fact) -> str:
        """As `Check.tolerance`."""
        return f"at least {self.expected_with_unit(fact)}"

    def holds(self, here: float, expected: float) -> bool:
        """As `_OfOne.holds`."""
        return here >= expected


class Below(_OfOne):
    """Less than the number."""

    kind: Literal["below"]

    def tolerance(self, fact: Fact) -> str:
        """As `Check.tolerance`."""
        return f"below {self.expected_with_unit(fact)}"

    def holds(self, here: float, expected: float) -> bool:
        """As `_OfOne.holds`."""
        return here < expected


class Above(_OfOne):
    """More than the number."""

    kind: Literal["above"]

    def tolerance(self, fact: Fact) -> str:
        """As `Check.tolerance`."""
        return f"above {self.expected_with_unit(fact)}"

    def holds(self, here: float, expected: float) -> bool:
        """As `_OfOne.holds`."""
        return here > expected


class RoundsTo(_OfOne):
    """Rounds to the number, which is printed with so many decimals."""

    kind: Literal["rounds"]
    decimals: int = Field(ge=0)

    def tolerance(self, fact: Fact) -> str:
        """As `Check.tolerance`."""
        return f"rounds to {with_unit(self.finding, f'{self.expected(fact):.{self.decimals}f}')}"

    def holds(self, here: float, expected: float) -> bool:
        """As `_OfOne.holds`."""
        return abs(here - expected) <= 0.5 * 10.0**-self.decimals


class Between(Check):
    """Between two numbers, both included."""

    kind: Literal["between"]
    finding: str
    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self

    def tolerance(self, _fact: Fact) -> str:
        """As `Check.tolerance`."""
        return f"from {self.low:g} to {number_with_unit(self.finding, self.high)}"

    def find(self, evidence: Evidence) -> Judgement:
        """As `Check.find`."""
        here = evidence.findings.get(self.finding)
        if here is None:
            return _missing(self.finding)
        return number_with_unit(self.finding, here), self.low <= here <= self.high


class _OfSeveral(Check):
    """A check of several findings against each other."""

    findings: list[str] = Field(min_length=2)

    def find(self, evidence: Evidence) -> Judgement:
        """As `Check.find`. Some of them can deny the claim, only all of them can confirm it."""
        there = [name for name in self.findings if name in evidence.findings]
        missing = _missing(*(name for name in self.findings if name not in evidence.findings))
        if len(there) < 2 or self.findings[0] not in there:
            return missing
        here, holds = self.compare(there, [evidence.findings[name] for name in there])
        if holds and len(there) < len(self.findings):
            return NotTestable(why=missing.why, here=here)
        return here, holds

    def compare(self, names: Sequence[str], values: Sequence[float]) -> Answer:
        """Judge the findings that are there, in the check's order."""
        raise NotImplementedError


class Rising(_OfSeveral):
    """Each finding is above the one before it."""

    kind: Literal["rising"]

    def tolerance(self, _fact: Fact) -> str:
        """As `Check.tolerance`."""
        return "each above the one before"

    def compare(self, names: Sequence[str], values: Sequence[float]) -> Answer:
        """As `_OfSeveral.compare`."""
        low, high = _texts(names, values, 0, -1)
        broken = [names[place + 1] for place, (one, two) in enumerate(pairwise(values)) if one >= two]
        if broken:
            return f"{low} to {high}, not at {', '.join(broken)}", False
        return f"{low} to {high}", True


class Smallest(_OfSeveral):
    """The first finding is below all others."""

    kind: Literal["smallest"]

    def tolerance(self, _fact: Fact) -> str:
        """As `Check.tolerance`."""
        return "the first below all others"

    def compare(self, names: Sequence[str], values: Sequence[float]) -> Answer:
        """As `_OfSeveral.compare`."""
        least = min(range(1, len(values)), key=values.__getitem__)
        first, second = _texts(names, values, 0, least)
        return f"{first}, next {second}", values[0] < values[least]


class Largest(_OfSeveral):
    """The first finding is above all others."""

    kind: Literal["largest"]

    def tolerance(self, _fact: Fact) -> str:
        """As `Check.tolerance`."""
        return "the first above all others"

    def compare(self, names: Sequence[str], values: Sequence[float]) -> Answer:
        """As `_OfSeveral.compare`."""
        most = max(range(1, len(values)), key=values.__getitem__)
        first, second = _texts(names, values, 0, most)
        return f"{first}, next {second}", values[0] > values[most]


def _texts(names: Sequence[str], values: Sequence[float], *places: int) -> list[str]:
    return [number_with_unit(names[place], values[place]) for place in places]


class Ratio(Check):
    """One finding over another one is at least, or at most, so much."""

    kind: Literal["ratio"]
    finding: str
    over: str
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("give at_least, at_most, or both")
        return self

    def tolerance(self, _fact: Fact) -> str:
        """As `Check.tolerance`."""
        if self.at_least is not None and self.at_most is not None:
            return f"{self.at_least:g} to {self.at_most:g} times"
        return (
            f"at least {self.at_least:g} times"
            if self.at_least is not None
            else f"at most {self.at_most:g} times"
        )

    def find(self, evidence: Evidence) -> Judgement:
        """As `Check.find`."""
        here, base = evidence.findings.get(self.finding), evidence.findings.get(self.over)
        if here is None or base is None:
            return _missing(*(name for name in (self.finding, self.over) if name not in evidence.findings))
        if base == 0:
            return f"{number_with_unit(self.finding, here)} over 0", False
        ratio = here / base
        fits = (self.at_least is None or ratio >= self.at_least) and (
            self.at_most is None or ratio <= self.at_most
        )
        return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:.0f} times", fits


FindingCheck = Annotated[
    Near | AtMost | AtLeast | Below | Above | RoundsTo | Between | Rising | Smallest | Largest | Ratio,
    Field(discriminator="kind"),
]


class FindingClaim(Claim):
    """A claim on findings."""

    check: FindingCheck


class FindingFigure(Figure):
    """A figure that is judged by its findings: the document's base for every kind of this sort."""

    claims: Sequence[FindingClaim] = Field(min_length=1)
