"""Checks of claims on a figure's named numbers (`FigureResult.findings`), for every figure type with any.

A finding is compared with the check's `value` or, by default, with the number of the claim's fact. The name
of a finding ends with its unit, such as ``p_fx_us``; reports print that unit.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import isclose
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from loko_testbed.reproduce.facts import Fact
from loko_testbed.reproduce.figure import Check, Claim, ClaimOutcome, Evidence, Figure, Judgement, NotTestable
from loko_testbed.reproduce.result import EvidenceLevel, Printed

_UNITS: Final = {
    "ns": "ns",
    "us": "us",
    "ms": "ms",
    "s": "s",
    "bps": "bit/s",
    "kbps": "kbit/s",
    "mbps": "Mbit/s",
    "pps": "frames/s",
    "kpps": "thousand frames/s",
    "mpps": "million frames/s",
    "bytes": "bytes",
    "frames": "frames",
    "packets": "packets",
    "entries": "entries",
    "percent": "%",
}


def number_with_unit(name: str, value: float, digits: int = 4) -> str:
    """Format a finding with `digits` significant digits and the unit that its name ends with, if any."""
    return with_unit(name, _number(value, digits))


def _number(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"


def with_unit(name: str, number: str) -> str:
    """Append to a formatted number the unit that the finding's name ends with, if any."""
    return f"{number} {_UNITS.get(name.rpartition('_')[2], '')}".rstrip()


def _missing(*names: str) -> NotTestable:
    return NotTestable(why=f"this replay did not measure: {', '.join(map(_in_words, names))}")


def _in_words(name: str) -> str:
    """Return a finding's name as words, with its unit."""
    words, _, last = name.rpartition("_")
    if last not in _UNITS:
        return name.replace("_", " ")
    return f"{words.replace('_', ' ')} [{_UNITS[last]}]"


def _has_number(text: str, number: float) -> bool:
    """Return whether a text has a number, in this unit or in one that is 1000 times larger or smaller."""
    numbers = [float(digits) for digits in re.findall(r"\d+(?:\.\d+)?", text)]
    return any(isclose(each * scale, number) for each in numbers for scale in (1e-3, 1, 1e3))


class _OfOne(Check):
    """A check of one finding against one number."""

    finding: str
    value: float | None = None
    """The number to compare with. Default: the fact's number."""

    @property
    def reads(self) -> Sequence[str]:
        """See `Check.reads`."""
        return [self.finding]

    @property
    def needs_number(self) -> bool:
        """See `Check.needs_number`."""
        return self.value is None

    def expected(self, fact: Fact) -> float:
        """Return the number to compare the finding with."""
        return fact.number if self.value is None else self.value

    def expected_with_unit(self, fact: Fact) -> str:
        """Return the number to compare with as text, with its unit."""
        return number_with_unit(self.finding, self.expected(fact))

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        here = evidence.findings.get(self.finding)
        if here is None:
            return _missing(self.finding)
        return number_with_unit(self.finding, here), self.holds(here, self.expected(evidence.fact))

    def printed(self, fact: Fact, paper: str) -> Printed | None:
        """See `Check.printed`. A number of the check's own is marked only if the paper's words have it."""
        if self.value is not None and not _has_number(paper, self.value):
            return None
        return Printed(finding=self.finding, value=self.expected(fact), text=paper, fact=fact.reference)

    def deviation(self, evidence: Evidence) -> float | None:
        """See `Check.deviation`."""
        here, expected = evidence.findings.get(self.finding), self.expected(evidence.fact)
        return None if self.ordinal or here is None or not expected else abs(here / expected - 1)

    def holds(self, here: float, expected: float) -> bool:
        """Return whether the number found satisfies the check."""
        raise NotImplementedError


class NearCheck(_OfOne):
    """The finding is within a relative or an absolute distance of the number."""

    kind: Literal["near"]
    within_percent: float | None = Field(default=None, ge=0)
    within: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_tolerance(self) -> Self:
        if (self.within is None) == (self.within_percent is None):
            raise ValueError("give one of within_percent and within")
        return self

    def tolerance(self, fact: Fact) -> str:
        """See `Check.tolerance`."""
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
        """See `_OfOne.holds`."""
        if self.within is not None:
            return abs(here - expected) <= self.within
        return abs(here - expected) <= abs(expected) * (self.within_percent or 0.0) / 100


class ComparisonCheck(_OfOne):
    """The finding is not above the number, not below it, below it, or above it."""

    ordinal = True
    kind: Literal["at_most", "at_least", "below", "above"]

    @property
    def denied_by_one_case(self) -> bool:
        """See `Check.denied_by_one_case`. More data can only raise a maximum or a count."""
        return self.kind == "at_most"

    def tolerance(self, fact: Fact) -> str:
        """See `Check.tolerance`."""
        return f"{self.kind.replace('_', ' ')} {self.expected_with_unit(fact)}"

    def holds(self, here: float, expected: float) -> bool:
        """See `_OfOne.holds`."""
        return _COMPARISONS[self.kind](here, expected)


_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "at_most": operator.le,
    "at_least": operator.ge,
    "below": operator.lt,
    "above": operator.gt,
}


class RoundsToCheck(_OfOne):
    """The finding rounds to the number, which is printed with this many decimals."""

    kind: Literal["rounds"]
    decimals: int = Field(ge=0)

    def tolerance(self, fact: Fact) -> str:
        """See `Check.tolerance`."""
        return f"rounds to {with_unit(self.finding, f'{self.expected(fact):.{self.decimals}f}')}"

    def holds(self, here: float, expected: float) -> bool:
        """See `_OfOne.holds`."""
        return abs(here - expected) <= 0.5 * 10.0**-self.decimals


class BetweenCheck(Check):
    """The finding lies between two numbers, both included."""

    kind: Literal["between"]
    finding: str
    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self

    @property
    def reads(self) -> Sequence[str]:
        """See `Check.reads`."""
        return [self.finding]

    def tolerance(self, _fact: Fact) -> str:
        """See `Check.tolerance`."""
        return f"from {_number(self.low)} to {number_with_unit(self.finding, self.high)}"

    def printed(self, fact: Fact, paper: str) -> Printed | None:
        """See `Check.printed`. A range is marked if the paper's words have both ends."""
        if not (_has_number(paper, self.low) and _has_number(paper, self.high)):
            return None
        ends = {"value": self.low, "high": self.high}
        return Printed(finding=self.finding, text=paper, fact=fact.reference, **ends)

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
        here = evidence.findings.get(self.finding)
        if here is None:
            return _missing(self.finding)
        return number_with_unit(self.finding, here), self.low <= here <= self.high


class _OfSeveral(Check):
    """A check of several findings against each other."""

    ordinal = True
    findings: list[str] = Field(min_length=2)

    @property
    def reads(self) -> Sequence[str]:
        """See `Check.reads`."""
        return self.findings

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`. Some of the findings may deny the claim; only all of them together confirm it."""
        there = [name for name in self.findings if name in evidence.findings]
        missing = _missing(*(name for name in self.findings if name not in evidence.findings))
        if len(there) < 2 or self.findings[0] not in there:
            return missing
        here, holds = self.compare(there, [evidence.findings[name] for name in there])
        if holds and len(there) < len(self.findings):
            return NotTestable(why=missing.why, here=here)
        return here, holds

    def compare(self, names: Sequence[str], values: Sequence[float]) -> ClaimOutcome:
        """Judge the findings that the replay has, in the order of the check."""
        raise NotImplementedError


class RisingCheck(_OfSeveral):
    """Each finding is above the one before it."""

    holds_if = "each above the one before"
    kind: Literal["rising"]
    places: list[str] = Field(default_factory=list)
    """The place of each finding, in words, such as a rate."""

    @model_validator(mode="after")
    def _a_place_each(self) -> Self:
        if self.places and len(self.places) != len(self.findings):
            raise ValueError("give a place for each of the findings, or none")
        return self

    def compare(self, names: Sequence[str], values: Sequence[float]) -> ClaimOutcome:
        """See `_OfSeveral.compare`."""
        low, high = _texts(names, values, 0, -1)
        for place, (before, after) in enumerate(pairwise(values)):
            if before >= after:
                texts = zip(_texts(names, values, place, place + 1), names[place : place + 2], strict=True)
                earlier, later = (f"{text}{self._place(name)}" for text, name in texts)
                return f"{low} to {high}, but {earlier} before {later}", False
        return f"{low} to {high}", True

    def _place(self, name: str) -> str:
        return f" at {self.places[self.findings.index(name)]}" if self.places else ""


class ExtremeCheck(_OfSeveral):
    """The first finding is below, or above, all others."""

    kind: Literal["smallest", "largest"]

    def tolerance(self, _fact: Fact) -> str:
        """See `Check.tolerance`."""
        return f"the first {'below' if self.kind == 'smallest' else 'above'} all others"

    def compare(self, names: Sequence[str], values: Sequence[float]) -> ClaimOutcome:
        """See `_OfSeveral.compare`."""
        sign = 1 if self.kind == "smallest" else -1
        next_to_it = min(range(1, len(values)), key=lambda place: sign * values[place])
        first, second = _texts(names, values, 0, next_to_it)
        return f"{first}, next {second}", sign * values[0] < sign * values[next_to_it]


def _texts(names: Sequence[str], values: Sequence[float], *places: int) -> list[str]:
    return [number_with_unit(names[place], values[place]) for place in places]


class RatioCheck(Check):
    """The ratio of one finding to another is within bounds."""

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

    @property
    def reads(self) -> Sequence[str]:
        """See `Check.reads`."""
        return [self.finding, self.over]

    @property
    def level(self) -> EvidenceLevel:
        """See `Check.level`. Bounds on both sides make it a number."""
        return "ordinal" if None in (self.at_least, self.at_most) else "quantitative"

    def tolerance(self, _fact: Fact) -> str:
        """See `Check.tolerance`."""
        if self.at_least is not None and self.at_most is not None:
            return f"{self.at_least:g} to {self.at_most:g} times"
        return (
            f"at least {self.at_least:g} times"
            if self.at_least is not None
            else f"at most {self.at_most:g} times"
        )

    def find(self, evidence: Evidence) -> Judgement:
        """See `Check.find`."""
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
    NearCheck | ComparisonCheck | RoundsToCheck | BetweenCheck | RisingCheck | ExtremeCheck | RatioCheck,
    Field(discriminator="kind"),
]


class FindingClaim(Claim):
    """A claim on findings."""

    check: FindingCheck


class FindingFigure(Figure):
    """Base of the documents of all figures that are judged by their findings."""

    claims: Sequence[FindingClaim] = Field(min_length=1)

    @property
    def read(self) -> Sequence[str]:
        """The names of the findings that decide the claims."""
        return [name for claim in self.claims for name in claim.check.reads]
