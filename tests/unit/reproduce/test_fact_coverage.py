"""Every statement of the papers is claimed, noted, used elsewhere, or named as not covered with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from loko_testbed.reproduce.facts import Fact, facts, papers
from loko_testbed.reproduce.figure_types.experiments import experiments

ROOT = Path(__file__).resolve().parents[3]
FIGURES = experiments()
CITED = {
    (figure.paper, cited.fact) for figure in FIGURES.values() for cited in (*figure.claims, *figure.notes)
}


def is_cited(paper: str, fact: Fact) -> bool:
    return (paper, fact.reference) in CITED


def is_statement(fact: Fact) -> bool:
    """Definitions are no results, and recomputed numbers are not the paper's."""
    return fact.role in ("calibration", "validation") and not fact.recomputed


@pytest.mark.parametrize("paper", papers())
def test_every_statement_is_covered_or_named_with_a_reason(paper: str) -> None:
    left_out = [
        reference
        for reference, fact in facts(paper).items()
        if is_statement(fact) and not (is_cited(paper, fact) or fact.used_in or fact.not_covered)
    ]
    assert left_out == [], "add a claim, a note, used_in or not_covered"


@pytest.mark.parametrize("paper", papers())
def test_what_is_not_covered_is_used_nowhere(paper: str) -> None:
    left_out = [fact for fact in facts(paper).values() if fact.not_covered]
    assert [fact.reference for fact in left_out if fact.used_in or is_cited(paper, fact)] == []


@pytest.mark.parametrize("paper", papers())
def test_where_a_fact_is_used_exists(paper: str) -> None:
    named = {place for fact in facts(paper).values() for place in fact.used_in}
    assert sorted(place for place in named if place not in FIGURES and not (ROOT / place).exists()) == []
