"""Summarise the results of a folder: guarantees by system, claims by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loko_testbed.reproduce.result import ClaimKind, ClaimResult, FigureResult, GuaranteeResult

KINDS: Final[Mapping[ClaimKind, str]] = {
    "predicted": "predictions",
    "calibrated": "calibrated",
    "ours": "ours",
}
"""Names of the kinds of claims in summaries. Only predictions count as reproduction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCount:
    """Numbers of claims that hold, do not hold, and are not testable here."""

    hold: int
    fail: int
    untested: int

    @classmethod
    def of(cls, claims: Sequence[ClaimResult]) -> ClaimCount:
        """Count these claims, each once."""
        return cls(
            hold=sum(claim.holds is True for claim in claims),
            fail=sum(claim.holds is False for claim in claims),
            untested=sum(claim.holds is None for claim in claims),
        )

    @property
    def tested(self) -> int:
        """Number of claims that could be tested."""
        return self.hold + self.fail

    def __bool__(self) -> bool:
        """Return whether there is any claim."""
        return self.tested + self.untested > 0

    def __str__(self) -> str:
        """Return a text such as "5 of 7 hold, 2 not testable here"."""
        untested = f"{self.untested} not testable here"
        if not self.tested:
            return untested
        tested = f"{self.hold} of {self.tested} hold"
        return f"{tested}, {untested}" if self.untested else tested


def counts(claims: Sequence[ClaimResult]) -> dict[ClaimKind, ClaimCount]:
    """Count claims by kind; kinds without any are left out."""
    counts = {kind: ClaimCount.of([claim for claim in claims if claim.kind == kind]) for kind in KINDS}
    return {kind: count for kind, count in counts.items() if count}


def counts_of_all(results: Sequence[FigureResult]) -> dict[ClaimKind, ClaimCount]:
    """Count the claims of all figures by kind. A fact that several figures share counts in only one."""
    return counts(
        [claim for result in results for claim in result.claims if not counted_with(results, result, claim)]
    )


def counted_with(results: Sequence[FigureResult], result: FigureResult, claim: ClaimResult) -> str:
    """Return the other figure in which a claim's fact is counted; empty if it is counted in `result`.

    That is the figure in which most claims on the fact fail, so that no failure is hidden; among several, the
    one with most claims on the fact. The order of the figures does not matter.
    """
    if not claim.fact:
        return ""
    resting = {
        other.name: (-sum(each.holds is False for each in alike), -len(alike), other.name)
        for other in results
        if other.paper == result.paper and (alike := _same_group(other, claim))
    }
    chosen = min(resting, key=resting.__getitem__)
    return "" if chosen == result.name else chosen


def _same_group(result: FigureResult, claim: ClaimResult) -> list[ClaimResult]:
    return [each for each in result.claims if (each.fact, each.kind) == (claim.fact, claim.kind)]


def guarantees(results: Sequence[FigureResult]) -> Iterator[tuple[FigureResult, GuaranteeResult]]:
    """Yield every guarantee with its figure, except those that were not promised."""
    for result in results:
        for guarantee in result.guarantees:
            if guarantee.verdict != "not promised":
                yield result, guarantee
