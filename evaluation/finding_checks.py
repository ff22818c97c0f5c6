"""Checks of claims on the named numbers of a figure (`FigureResult.findings`), for every kind that has any.

What a number is compared with is the check's own `value` or, without one, the number of the claim's fact. The
names of findings end with their units, such as ``p_fx_us``, by which they are written in reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from evaluation.figure import Check, Claim, Evidence, Figure, Finding

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
    unit = _UNITS.get(name.rpartition("_")[2], "")
    text = f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"
    return f"{text} {unit}".rstrip()


class _OfOne(Check):
    """A check of one finding against one number."""

    finding: str
    value: float | None = None
    """What it is compared with. Default: the fact's number."""

    @property
    def needs_number(self) -> bool:
        """As `Check.needs_number`."""
        return self.value is None

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        here = evidence.findings.get(self.finding)
        if here is None:
            return None
        expected = evidence.fact.number if self.value is None else self.value
        return number_with_unit(self.finding, here), self.holds(here, expected)

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

    def holds(self, here: float, expected: float) -> bool:
        """As `_OfOne.holds`."""
        if self.within is not None:
            return abs(here - expected) <= self.within
        return abs(here - expected) <= abs(expected) * (self.within_percent or 0.0) / 100


class AtMost(_OfOne):
    """Not above the number."""

    kind: Literal["at_most"]

    def holds(self, here: float, expected: float) -> bool:
        """As `_OfOne.holds`."""
        return here <= expected


class AtLeast(_OfOne):
    """Not below the number."""

    kind: Literal["at_least"]

    def holds(self, here: float, expected: float) -> bool:
        """As `_OfOne.holds`."""
        return here >= expected


class Below(_OfOne):
    """Less than the number."""

    kind: Literal["below"]

    def holds(self, here: float, expected: float) -> bool:
        """As `_OfOne.holds`."""
        return here < expected


class Above(_OfOne):
    """More than the number."""

    kind: Literal["above"]

    def holds(self, here: float, expected: float) -> bool:
        """As `_OfOne.holds`."""
        return here > expected


class RoundsTo(_OfOne):
    """Rounds to the number, which is printed with so many decimals."""

    kind: Literal["rounds"]
    decimals: int = Field(ge=0)

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

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        here = evidence.findings.get(self.finding)
        if here is None:
            return None
        return number_with_unit(self.finding, here), self.low <= here <= self.high


class _OfSeveral(Check):
    """A check of several findings against each other."""

    findings: list[str] = Field(min_length=2)

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`. Findings that are not there are left out, as long as there are two."""
        there = [name for name in self.findings if name in evidence.findings]
        if len(there) < 2:
            return None
        return self.compare(there, [evidence.findings[name] for name in there])

    def compare(self, names: Sequence[str], values: Sequence[float]) -> Finding:
        """Judge the findings that are there, in the check's order."""
        raise NotImplementedError


class Rising(_OfSeveral):
    """Each finding is above the one before it."""

    kind: Literal["rising"]

    def compare(self, names: Sequence[str], values: Sequence[float]) -> Finding:
        """As `_OfSeveral.compare`."""
        low, high = _texts(names, values, 0, -1)
        broken = [names[place + 1] for place, (one, two) in enumerate(pairwise(values)) if one >= two]
        if broken:
            return f"{low} to {high}, not at {', '.join(broken)}", False
        return f"{low} to {high}", True


class Smallest(_OfSeveral):
    """The first finding is below all others."""

    kind: Literal["smallest"]

    def compare(self, names: Sequence[str], values: Sequence[float]) -> Finding:
        """As `_OfSeveral.compare`."""
        least = min(range(1, len(values)), key=values.__getitem__)
        first, second = _texts(names, values, 0, least)
        return f"{first}, next {second}", values[0] < values[least]


class Largest(_OfSeveral):
    """The first finding is above all others."""

    kind: Literal["largest"]

    def compare(self, names: Sequence[str], values: Sequence[float]) -> Finding:
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

    def find(self, evidence: Evidence) -> Finding | None:
        """As `Check.find`."""
        here, base = evidence.findings.get(self.finding), evidence.findings.get(self.over)
        if here is None or base is None:
            return None
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
