"""Coverage of the papers' facts: by claims and notes of figures, by other uses, or not, with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loko_testbed.reproduce.facts import Fact, facts
from loko_testbed.reproduce.figure import Figure


def is_statement(fact: Fact) -> bool:
    """Return whether a paper states the fact of a device or a system, so that it has to be covered.

    Definitions are no results, and recomputed numbers are not the paper's.
    """
    return fact.role in ("calibration", "validation") and not fact.recomputed


def cited_by(figures: Iterable[Figure]) -> Mapping[str, frozenset[str]]:
    """Return, by paper, the references of the facts that claims or notes of these figures name."""
    cited: dict[str, set[str]] = {}
    for figure in figures:
        of_paper = cited.setdefault(figure.paper, set())
        of_paper |= {claim.fact for claim in figure.claims} | {note.fact for note in figure.notes}
    return {paper: frozenset(references) for paper, references in cited.items()}


def not_covered(paper: str) -> list[Fact]:
    """Return a paper's facts that nothing here uses, models or checks, in the order of its document."""
    return [fact for fact in facts(paper).values() if fact.not_covered]
