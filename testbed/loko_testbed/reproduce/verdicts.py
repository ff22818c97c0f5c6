"""Summarise the results of a folder: guarantees by system, claims by paper, level of evidence and kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol, get_args

from loko_testbed.reproduce.result import (
    ClaimKind,
    ClaimResult,
    EvidenceLevel,
    FigureResult,
    GuaranteeResult,
)

KINDS: Final[Mapping[ClaimKind, str]] = {
    "predicted": "predictions",
    "calibrated": "calibrated",
    "ours": "ours",
}
"""Names of the kinds of claims in summaries. Only predictions count as reproduction."""

LEVELS: Final[Sequence[EvidenceLevel]] = get_args(EvidenceLevel)
"""The levels of evidence, the weakest first."""


class Judged(Protocol):
    """Anything with a verdict."""

    @property
    def holds(self) -> bool | None:
        """Whether it holds; None: undecided, or not testable here."""

    @property
    def is_undecided(self) -> bool:
        """Whether it was tested, but chance left open whether it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCount:
    """Numbers of claims that hold, do not hold, are undecided, and are not testable here."""

    hold: int
    fail: int
    untested: int
    undecided: int = 0

    @classmethod
    def of(cls, claims: Sequence[Judged]) -> ClaimCount:
        """Count these claims or sentences, each once."""
        return cls(
            hold=sum(claim.holds is True for claim in claims),
            fail=sum(claim.holds is False for claim in claims),
            untested=sum(claim.holds is None and not claim.is_undecided for claim in claims),
            undecided=sum(claim.is_undecided for claim in claims),
        )

    @property
    def tested(self) -> int:
        """Number of claims that could be tested."""
        return self.hold + self.fail + self.undecided

    @property
    def of_tested(self) -> str:
        """A text such as "5 of 7", for tables; "-" if none could be tested."""
        return f"{self.hold} of {self.tested}" if self.tested else "-"

    def __bool__(self) -> bool:
        """Return whether there is any claim."""
        return self.tested + self.untested > 0

    def __str__(self) -> str:
        """Return a text such as "5 of 8 hold, 1 undecided, 2 not testable here"."""
        parts = {
            f"{self.hold} of {self.tested} hold": self.tested,
            f"{self.undecided} undecided": self.undecided,
            f"{self.untested} not testable here": self.untested,
        }
        return ", ".join(text for text, count in parts.items() if count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """All claims of one kind that rest on one sentence of a paper: the unit in which claims are counted."""

    paper: str
    kind: ClaimKind
    claims: tuple[tuple[FigureResult, ClaimResult], ...]
    """At least one claim, each with its figure."""

    @property
    def level(self) -> EvidenceLevel:
        """The strongest level of evidence among its claims."""
        return max((claim.level for _, claim in self.claims), key=LEVELS.index)

    @property
    def holds(self) -> bool | None:
        """Whether all of its claims hold; None: none fails, but not all of them are decided here."""
        verdicts = {claim.holds for _, claim in self.claims}
        return False if False in verdicts else None if None in verdicts else True

    @property
    def is_undecided(self) -> bool:
        """Whether none of its claims fails, and chance leaves open whether one holds."""
        return self.holds is None and any(claim.is_undecided for _, claim in self.claims)


def sentences(results: Sequence[FigureResult]) -> list[Sentence]:
    """Return the sentences that the claims of these figures rest on, in their order."""
    grouped: dict[tuple[str, str, ClaimKind], list[tuple[FigureResult, ClaimResult]]] = {}
    for result in results:
        for place, claim in enumerate(result.claims):
            stated = claim.sentence or claim.fact or f"{result.figure}, claim {place}"
            grouped.setdefault((result.paper, stated, claim.kind), []).append((result, claim))
    return [
        Sentence(paper=paper, kind=kind, claims=tuple(claims)) for (paper, _, kind), claims in grouped.items()
    ]


def stated_with(
    counted: Sequence[Sentence], result: FigureResult, claim: ClaimResult
) -> list[tuple[FigureResult, ClaimResult]]:
    """Return the other claims on the sentence of this one, each with its figure."""
    for sentence in counted:
        if any(each is claim for _, each in sentence.claims):
            return [
                (figure, each)
                for figure, each in sentence.claims
                if not (each is claim and figure.name == result.name)
            ]
    return []


def counts(counted: Sequence[Sentence]) -> dict[ClaimKind, ClaimCount]:
    """Count sentences by kind; kinds without any are left out."""
    counts = {kind: ClaimCount.of([each for each in counted if each.kind == kind]) for kind in KINDS}
    return {kind: count for kind, count in counts.items() if count}


EvidenceLadder = Mapping[str, Mapping[EvidenceLevel, Mapping[ClaimKind, ClaimCount]]]
"""Counts by paper, level and kind, without those that have none."""


def evidence_ladder(counted: Sequence[Sentence]) -> EvidenceLadder:
    """Count sentences by paper, level of evidence and kind."""
    by_paper = {
        paper: {
            level: counts([each for each in counted if (each.paper, each.level) == (paper, level)])
            for level in LEVELS
        }
        for paper in dict.fromkeys(each.paper for each in counted)
    }
    return {
        paper: {level: count for level, count in levels.items() if count}
        for paper, levels in by_paper.items()
    }


def ladder_values(ladder: EvidenceLadder) -> dict[str, Any]:
    """Return the counts as plain values, for JSON."""
    return {
        paper: {
            level: {kind: asdict(count) for kind, count in kinds.items()} for level, kinds in levels.items()
        }
        for paper, levels in ladder.items()
    }


def ladder_rows(ladder: EvidenceLadder, kinds: Iterable[ClaimKind]) -> list[list[str]]:
    """Return the rows of a table with the columns paper, kind, and each of `LEVELS`."""
    rows = []
    for paper, levels in ladder.items():
        for kind in kinds:
            cells = [levels.get(level, {}).get(kind) for level in LEVELS]
            if any(cells):
                rows.append([paper, KINDS[kind], *("" if cell is None else cell.of_tested for cell in cells)])
    return rows


def guarantees(results: Sequence[FigureResult]) -> Iterator[tuple[FigureResult, GuaranteeResult]]:
    """Yield every guarantee with its figure, except those that were not promised."""
    for result in results:
        for guarantee in result.guarantees:
            if guarantee.verdict != "not promised":
                yield result, guarantee
