"""Reasons of claims: what tests them, how that reads, and which are refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from loko.document import InputError
from loko_testbed.reproduce.claims import check_reference, judge, kind_of
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure import NOT_KNOWN, Claim, Experiment, Figure
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.reasons import with_values

FIGURES = experiments()
TABLE2 = FIGURES["tssdn/table2"]
FAILS = next(claim for claim in TABLE2.claims if claim.fact == "tab2/maximum")


def failing(**values: object) -> str:
    """Return how the reason of a failing claim of table 2 is said to be tested."""
    claim = type(FAILS).model_validate({**FAILS.model_dump(), "tested_by": [], **values})
    (judged,) = judge(TABLE2.model_copy(update={"claims": [claim]}), findings={"five_most_us": 99.0})
    assert judged.holds is False
    return judged.tested


def test_a_failing_claim_says_what_its_experiments_found() -> None:
    turned = {"using": "seed 2", "options": {"seed": 2}, "holds": True}
    assert failing() == ""
    assert failing(tested_by=[turned]) == "with seed 2 it holds"
    assert failing(tested_by=[turned, {**turned, "holds": False}]) == (
        "with seed 2 it holds; with seed 2 it does not hold either"
    )


def test_a_claim_that_another_place_of_the_paper_contradicts_names_both() -> None:
    assert failing(contradicts="T10") == "the paper contradicts itself: table 2, and sec 5.1.1 (T10)"
    claim = FAILS.model_copy(update={"contradicts": "T99"})
    with pytest.raises(InputError, match="there is no fact 'T99'"):
        check_reference(TABLE2, claim)


def test_a_claim_that_holds_needs_no_reason() -> None:
    claims = judge(TABLE2.model_copy(update={"claims": [FAILS]}), findings={"five_most_us": 9.0})
    assert [(claim.because, claim.tested) for claim in claims] == [("", "")]


def test_an_experiment_changes_something() -> None:
    with pytest.raises(ValidationError, match="has to change something"):
        Experiment.model_validate({"using": "nothing", "holds": True})


def test_values_of_a_document_are_replaced_by_path() -> None:
    changed = with_values(TABLE2, {"hosts.mean_us": 8.5, "cases.1.flows": 4})
    assert (changed.hosts.mean_us, changed.cases[1].flows) == (8.5, 4)
    assert (changed.hosts.least_us, changed.cases[0]) == (TABLE2.hosts.least_us, TABLE2.cases[0])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"cases.9.flows": 1}, "its document has no cases.9.flows"),
        ({"nothing.at_all": 1}, "its document has no nothing.at_all"),
        ({"hosts.mean_us": 1}, "hosts.mean_us: Value error, mean_us must be above least_us"),
    ],
)
def test_values_that_a_document_does_not_have_are_refused(values: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        with_values(TABLE2, values)
    assert "\n" not in str(caught.value)


def test_no_claim_of_a_paper_has_an_untested_reason() -> None:
    untested = [
        f"{figure.name}: {claim.claim}"
        for figure in FIGURES.values()
        if "virtual" in figure.modes and not figure.ours
        for claim in figure.claims
        if claim.if_not and not is_tested(figure, claim)
    ]
    assert untested == []


def is_tested(figure: Figure, claim: Claim) -> bool:
    """Return whether a claim's reason is tested, or needs no test: it says so, or speaks of real time."""
    real_time = claim.claim.startswith("live, ") or claim.if_not.startswith("in real time")
    not_the_paper_s = kind_of(figure, claim, fact(figure.paper, claim.fact)) == "ours"
    return bool(
        claim.tested_by
        or claim.contradicts
        or claim.if_not.startswith(NOT_KNOWN)
        or real_time
        or not_the_paper_s
    )
