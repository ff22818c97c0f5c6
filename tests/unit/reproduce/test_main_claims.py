"""The claims that reviewers check are chosen by rule."""

from __future__ import annotations

from itertools import groupby

from loko_testbed.reproduce.claims import is_circular, kind_of, level_of
from loko_testbed.reproduce.facts import fact, papers
from loko_testbed.reproduce.figure_types.experiments import experiments, select
from loko_testbed.reproduce.main_claims import main_claims
from loko_testbed.reproduce.result import in_order

KNOWN = experiments()
DEFAULT = select([], KNOWN)
MAIN = main_claims()


def stated(paper: str) -> set[str]:
    """Return the sentences of a paper that are predicted on a level that can fail."""
    return {
        fact(paper, claim.fact).sentence
        for figure in DEFAULT
        for claim in figure.claims
        if figure.paper == paper
        and kind_of(figure, claim, fact(paper, claim.fact)) == "predicted"
        and level_of(figure, claim) in {"invariant", "ordinal", "quantitative"}
    }


def test_every_predicted_sentence_of_a_paper_has_one_claim() -> None:
    assert MAIN.keys() == set(papers()) - {"studies"}
    predicted = {paper: claims for paper, claims in MAIN.items() if stated(paper)}
    assert {"loko", "slicing", "tssdn"} <= predicted.keys()
    for paper, claims in predicted.items():
        sentences = [main.unmeasured.sentence for main in claims]
        assert len(sentences) == len(set(sentences))
        assert set(sentences) == stated(paper)


def test_a_paper_without_predictions_has_calibrated_claims_that_can_fail() -> None:
    without = {paper: claims for paper, claims in MAIN.items() if not stated(paper)}
    assert without
    for claims in without.values():
        assert claims
        for main in claims:
            [figure] = main.figures
            assert main.unmeasured.kind == "calibrated"
            assert not is_circular(figure, main.claim)


def test_the_claims_are_those_of_the_figures_in_their_order() -> None:
    for paper, claims in MAIN.items():
        names = [name for name, _ in groupby(main.figures[0].figure for main in claims)]
        ordered = [figure.figure for figure in DEFAULT if figure.paper == paper and figure.figure in names]
        assert set(names) == set(ordered)
        assert all(main.claim in main.figures[0].claims for main in claims)
        assert in_order(paper, names[0]) <= in_order(paper, names[-1])


def test_a_command_replays_all_that_the_claim_needs_in_minutes() -> None:
    commands = {main.command for claims in MAIN.values() for main in claims}
    assert {"loko evaluate fig17a", "loko evaluate fig18a fig17a"} <= commands
    for command in commands:
        assert select(command.split()[2:], KNOWN)
    for claims in MAIN.values():
        assert all(1 <= main.minutes <= 10 for main in claims)
