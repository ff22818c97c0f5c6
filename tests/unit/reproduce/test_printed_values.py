"""The values from the paper that pictures mark: the numbers of its facts, by the claims that use them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loko_testbed.reproduce import facts
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.flow_figure import SendingFigure
from loko_testbed.reproduce.result import Printed

FIGURES = experiments()


def printed(figure: str) -> dict[str, Printed]:
    return {value.finding: value for value in FIGURES[f"loko/{figure}"].printed()}


@pytest.mark.parametrize(
    ("figure", "finding", "reference"),
    [
        ("fig17a", "loss_starts", "fig17a/loss-onset"),
        ("fig17b", "loss_starts", "fig17b/loss-onset"),
        ("fig18a", "late_at", "fig18a/delay-violation"),
        ("fig18b", "loss_starts", "fig18b/loss-onset"),
        ("fig18b", "late_starts", "fig18b/delay-violation-onset"),
        ("fig19a", "loss_starts", "fig19a/loss-onset"),
        ("fig19b", "loss_beyond", "fig19b/no-loss-up-to"),
    ],
)
def test_an_onset_is_where_the_fact_says(figure: str, finding: str, reference: str) -> None:
    onset = printed(figure)[finding]
    stated = facts.fact("loko", reference).number
    assert (onset.x, onset.value, onset.fact) == (stated, None, reference)
    assert f"{stated:g}" in onset.text


@pytest.mark.parametrize(
    ("figure", "finding", "reference"),
    [
        ("fig17a", "loss_percent", "fig17a/loss-at-11"),
        ("fig3a", "silo_lost_percent", "fig3a/lost"),
        ("fig3a", "silo_late_percent", "fig3a/late"),
        ("fig3b", "silo_late_percent", "fig3b/late"),
        ("fig3c", "qjump_lost_percent", "fig3c/lost"),
        ("fig3c", "qjump_late_percent", "fig3c/late"),
        ("fig3c", "qjump_in_time_percent", "fig3c/in-time"),
        ("fig3d", "qjump_lost_percent", "fig3d/lost"),
    ],
)
def test_a_number_is_the_facts(figure: str, finding: str, reference: str) -> None:
    value = printed(figure)[finding]
    assert (value.value, value.fact) == (facts.fact("loko", reference).number, reference)


def test_a_mark_moves_with_its_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = {**facts.facts("loko")}
    for reference in ("fig17a/loss-onset", "fig3c/late"):
        moved[reference] = replace(moved[reference], value=7)
    monkeypatch.setattr(facts, "facts", lambda _paper: moved)
    assert printed("fig17a")["loss_starts"].x == 7
    assert printed("fig3c")["qjump_late_percent"].value == 7


def test_a_fact_in_words_is_told_in_words_and_each_fact_of_a_sweep_once() -> None:
    assert printed("fig15")["silo_in_time_percent"].value is None
    assert printed("fig15")["loko_lost_percent"].value == 0
    for name in ("fig17a", "fig18a", "fig18b", "fig19a"):
        references = [value.fact for value in FIGURES[f"loko/{name}"].printed()]
        assert len(references) == len(set(references)) > 0


def test_nothing_is_printed_of_a_figure_that_is_ours_or_of_a_number_that_we_recomputed() -> None:
    assert not FIGURES["loko/fig19bmeasured"].printed()
    for figure in (each for each in FIGURES.values() if isinstance(each, SendingFigure)):
        for value in figure.printed():
            assert not facts.fact(figure.paper, value.fact).recomputed
            assert not figure.ours
