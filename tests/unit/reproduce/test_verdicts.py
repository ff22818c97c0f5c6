"""Verdicts: guarantees by system, claims by kind, each fact once; and what the report says about them."""

from __future__ import annotations

import itertools
import re
from html import unescape
from pathlib import Path

import pytest
from sample_charts import BOXES, chart_result

from loko.document import InputError
from loko_testbed.reproduce.chart import Chart
from loko_testbed.reproduce.claims import check_reference, is_circular, judge, kind_of, level_of
from loko_testbed.reproduce.facts import fact, facts, papers
from loko_testbed.reproduce.figure import Figure
from loko_testbed.reproduce.figure_types.attack.compute import compute
from loko_testbed.reproduce.figure_types.attack.document import AttackFigure, SearchBudget
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.finding_checks import FindingFigure
from loko_testbed.reproduce.guarantees import guarantee
from loko_testbed.reproduce.report import render
from loko_testbed.reproduce.result import (
    ClaimKind,
    ClaimResult,
    DelayQuantiles,
    EvidenceLevel,
    FigureResult,
    GuaranteeResult,
    PointResult,
)
from loko_testbed.reproduce.verdicts import ClaimCount, counts, evidence_ladder, sentences, stated_with
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import NoProgress

FIGURES = experiments()
CIRCULAR = {
    "sec4": None,
    "sec6": None,
    "fig6b": "fig6b/barrier",
    "fig7b": "fig7b/largest",
    "fig9a": "fig9_entries/largest-time",
    "fig10c": "fig10c/output",
    "fig10d": "fig10d/mean",
    "fig12b": "fig12b/equation-6-error",
}
"""Facts that were used to fit the profile, or that the emulator meets by construction; None: the whole
figure."""


def point(*, packets: int = 100, lost: int = 0, late: int = 0, explained: int = 0) -> PointResult:
    none = DelayQuantiles(**dict.fromkeys(("min", "p1", "p25", "p50", "p75", "p99", "max"), None))
    return PointResult(
        x=1,
        packets=packets,
        lost=lost,
        loss=0,
        late=late,
        explained=explained,
        guaranteed=True,
        delay_ms=none,
    )


def claim(
    holds: bool | None,
    *,
    kind: ClaimKind = "predicted",
    fact: str = "",
    level: EvidenceLevel = "ordinal",
    sentence: str = "",
) -> ClaimResult:
    return ClaimResult(
        claim="c",
        paper="p",
        here="h",
        holds=holds,
        where="sec 1",
        kind=kind,
        fact=fact,
        level=level,
        sentence=sentence,
    )


def result(
    figure: str, *claims: ClaimResult, guarantees: list[GuaranteeResult] | None = None
) -> FigureResult:
    drawn = chart_result(Chart(panels=[BOXES]))
    return drawn.model_copy(update={"figure": figure, "claims": list(claims), "guarantees": guarantees or []})


@pytest.mark.parametrize(
    ("sent", "verdict"),
    [
        (point(), "kept"),
        (point(lost=1), "broken"),
        (point(late=1), "broken"),
        (point(late=2, lost=1, explained=2), "broken"),
        (point(late=2, lost=1, explained=3), "kept"),
        (point(packets=0), "not tested"),
    ],
)
def test_a_guarantee_is_kept_broken_or_not_tested(sent: PointResult, verdict: str) -> None:
    judged = guarantee("Loko", {"H1->H3": [point()] if sent.packets else [], "H3->H1": [sent]}, ours=True)
    assert judged.verdict == verdict
    assert judged.flows == ["H1->H3", "H3->H1"]
    beyond = guarantee("Loko", {"H3->H1": [sent]}, ours=True, promised=False)
    assert beyond.verdict == "not promised"


def test_no_green_word_for_a_system_that_fails() -> None:
    silo = guarantee("Silo", {"H1->H3": [point(lost=99)]}, ours=False)
    page = unescape(render([result("fig3a", guarantees=[silo])]))
    assert "Silo: broken" in page
    assert "The paper reports the same" in page
    kept = guarantee("Silo", {"H1->H3": [point()]}, ours=False)
    assert "The paper reports the same" not in render([result("fig3a", guarantees=[kept])])
    assert "No guarantee of Loko's was put to the test." in page
    assert "kept" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)


def test_each_system_of_a_figure_has_its_own_verdict() -> None:
    silo = guarantee("Silo", {"H1->H3": [point(lost=99)]}, ours=False)
    loko = guarantee("Loko", {"H1->H3": [point()]}, ours=True)
    both = result("fig15", guarantees=[silo, loko])
    assert not both.breaks_ours
    page = unescape(render([both]))
    assert "Silo: broken" in page
    assert "Loko: kept" in page
    assert "Every guarantee of Loko's that was put to the test was kept." in page
    late = result("fig15", guarantees=[silo, guarantee("Loko", {"H1->H3": [point(late=2)]}, ours=True)])
    assert late.breaks_ours
    assert "2 packets break a guarantee that Loko's admission gives." in unescape(render([late]))


def test_an_attack_judges_each_scheme(tmp_path: Path) -> None:
    figure = FIGURES["loko/attack"]
    assert isinstance(figure, AttackFigure)
    schemes = [scheme for scheme in figure.schemes if scheme.scheme in ("silo", "full-rate")]
    small = figure.model_copy(update={"schemes": schemes, "budget": SearchBudget(generations=2, seconds=0.2)})
    outcome, _ = compute(small, Options(mode="virtual", seed=1, out=tmp_path), NoProgress())
    silo, loko = outcome.guarantees
    assert (silo.system, silo.verdict, silo.ours) == ("Silo", "broken", False)
    assert (loko.system, loko.verdict, loko.ours) == ("Loko, full-rate", "kept", True)
    assert silo.late > 0
    assert loko.packets > 0


def counted(*results: FigureResult) -> dict[ClaimKind, ClaimCount]:
    return counts(sentences(results))


def test_claims_are_counted_by_kind() -> None:
    claims = [claim(True), claim(False), claim(None), claim(True, kind="calibrated")]
    by_kind = counted(result("a", *claims))
    assert by_kind == {
        "predicted": ClaimCount(hold=1, fail=1, untested=1),
        "calibrated": ClaimCount(hold=1, fail=0, untested=0),
    }
    assert str(by_kind["predicted"]) == "1 of 2 hold, 1 not testable here"
    assert str(ClaimCount(hold=0, fail=0, untested=2)) == "2 not testable here"
    assert ClaimCount(hold=0, fail=0, untested=2).of_tested == "-"


def test_circular_statements_are_counted_where_they_were_tested() -> None:
    one, other, open_one = (
        claim(holds, kind="calibrated").model_copy(update={"circular": True}) for holds in (True, True, None)
    )
    assert "and 1 is circular" in render([result("a", one, open_one)])
    assert "and 2 are circular" in render([result("a", one, other, open_one)])


def test_a_sentence_of_several_claims_and_figures_counts_once() -> None:
    first = result("a", claim(True, fact="f"), claim(True, fact="f"), claim(True, fact="g"))
    second = result("b", claim(True, fact="f"), claim(True, fact="h", sentence="g"))
    assert counted(first, second)["predicted"] == ClaimCount(hold=2, fail=0, untested=0)
    [one, two] = sentences([first, second])
    assert stated_with([one, two], first, first.claims[2]) == [(second, second.claims[1])]
    assert [figure.figure for figure, _ in stated_with([one, two], first, first.claims[0])] == ["a", "b"]


@pytest.mark.parametrize(
    ("verdicts", "holds"),
    [
        ((True, True), True),
        ((True, False), False),
        ((None, False), False),
        ((True, None), None),
        ((None, None), None),
    ],
)
def test_a_sentence_holds_only_if_all_of_its_claims_do(
    verdicts: tuple[bool | None, ...], holds: bool | None
) -> None:
    results = [result(name, claim(each, fact="f")) for name, each in zip(("a", "b"), verdicts, strict=True)]
    for order in itertools.permutations(results):
        [sentence] = sentences(order)
        assert sentence.holds is holds


def test_a_sentence_has_the_strongest_level_of_its_claims() -> None:
    strong = result("a", claim(True, fact="f", level="quantitative"), claim(True, fact="f", level="ordinal"))
    weak = result("b", claim(False, fact="g", level="arithmetic", kind="calibrated"))
    assert evidence_ladder(sentences([strong, weak])) == {
        "loko": {
            "quantitative": {"predicted": ClaimCount(hold=1, fail=0, untested=0)},
            "arithmetic": {"calibrated": ClaimCount(hold=0, fail=1, untested=0)},
        }
    }


def test_claims_of_other_kinds_or_papers_on_the_same_fact_count_apart() -> None:
    first, second = result("a", claim(True, fact="f")), result("b", claim(False, kind="ours", fact="f"))
    other = result("a", claim(True, fact="f")).model_copy(update={"paper": "tssdn"})
    assert counted(first, second, other) == {
        "predicted": ClaimCount(hold=2, fail=0, untested=0),
        "ours": ClaimCount(hold=0, fail=1, untested=0),
    }


def test_the_report_says_of_each_claim_its_kind_and_when_it_holds() -> None:
    told = claim(None, kind="calibrated").model_copy(
        update={"tolerance": "within 3 %", "because": "nothing was sent at 7", "kind_because": "fitted to it"}
    )
    page = render([result("fig1", told)])
    for words in ("within 3 %", "Not testable here: nothing was sent at 7", "fitted to it", "– not testable"):
        assert words in page
    assert "✗" not in page
    assert "✓" not in page


def test_a_result_of_an_earlier_version_counts_as_no_reproduction() -> None:
    values = {"claim": "c", "paper": "p", "here": "h", "holds": True, "where": "sec 1"}
    assert ClaimResult.model_validate(values).kind == "ours"


@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda figure: figure.figure)
def test_only_what_the_paper_saw_of_whole_networks_is_predicted(figure: Figure) -> None:
    for claim in figure.claims:
        stated = check_reference(figure, claim)
        kind = kind_of(figure, claim, stated)
        if kind == "predicted":
            assert stated.role == "validation"
            assert not stated.recomputed
            assert not figure.ours
        assert claim.check.tolerance(stated)
    if figure.title.startswith("Ours"):
        assert figure.ours


@pytest.mark.parametrize(("name", "reference"), CIRCULAR.items())
def test_what_was_fitted_says_so(name: str, reference: str | None) -> None:
    figure = FIGURES[f"loko/{name}"]
    claims = [claim for claim in figure.claims if reference in (None, claim.fact)]
    assert claims
    for claim in claims:
        assert kind_of(figure, claim, fact("loko", claim.fact)) != "predicted"
    assert claims[0].kind_because


def made(**claim: object) -> FindingFigure:
    check = {"kind": "near", "finding": "a_us", "value": 1, "within": 0}
    return FindingFigure.model_validate(
        {
            "kind": "made-up",
            "figure": "fig0",
            "paper": "loko",
            "title": "t",
            "modes": ["virtual"],
            "claims": [{"claim": "c", "paper": "p", "check": check, **claim}],
        }
    )


def test_a_kind_can_be_lowered_only_and_with_a_reason() -> None:
    lowered = made(fact="fig3a/lost", kind="calibrated", kind_because="fitted")
    assert judge(lowered)[0].kind == "calibrated"
    with pytest.raises(InputError, match="say why in kind_because"):
        judge(made(fact="fig3a/lost", kind="ours"))
    with pytest.raises(InputError, match="a kind can be lowered only"):
        judge(made(fact="fig6b/barrier", kind="predicted", kind_because="I wish"))
    with pytest.raises(InputError, match="a kind can be lowered only"):
        judge(made(fact="qjump_bound_bpi", kind="calibrated", kind_because="I wish"))


def test_a_circular_claim_is_no_prediction_and_says_why() -> None:
    stated = {"fact": "fig3a/lost", "circular": True}
    with pytest.raises(InputError, match="a circular claim is no prediction"):
        judge(made(**stated))
    with pytest.raises(InputError, match="a circular claim is no prediction"):
        judge(made(fact="fig3a/lost", level="profile"))
    with pytest.raises(InputError, match="circular: say why in kind_because"):
        judge(made(fact="fig6b/barrier", circular=True))
    [judged] = judge(made(**stated, kind="calibrated", kind_because="fitted"))
    assert judged.circular


def test_the_level_is_that_of_the_check_unless_the_document_says_otherwise() -> None:
    assert judge(made(fact="fig3a/lost"))[0].level == "quantitative"
    assert judge(made(fact="fig3a/lost", level="invariant"))[0].level == "invariant"
    below = {"kind": "below", "finding": "a_us", "value": 1}
    assert judge(made(fact="fig3a/lost", check=below))[0].level == "ordinal"
    ratio = {"kind": "ratio", "finding": "a_us", "over": "b_us", "at_least": 1}
    assert judge(made(fact="fig3a/lost", check=ratio))[0].level == "ordinal"
    assert judge(made(fact="fig3a/lost", check={**ratio, "at_most": 2}))[0].level == "quantitative"


@pytest.mark.parametrize(
    ("figure", "reference"),
    [
        ("predictability/table4", "bps64/HP E3800/gbps"),
        ("predictability/fig7", "fig7/hp-2920-at-line-rate-from"),
        ("predictability/table1", "q10"),
    ],
)
def test_what_follows_from_the_profile_is_circular(figure: str, reference: str) -> None:
    document = FIGURES[figure]
    claims = [claim for claim in document.claims if claim.fact == reference]
    of_the_paper = [
        claim for claim in claims if kind_of(document, claim, fact("predictability", reference)) != "ours"
    ]
    assert of_the_paper
    assert all(is_circular(document, claim) for claim in of_the_paper)


def test_invariants_are_what_admission_promises() -> None:
    for figure in FIGURES.values():
        for claim in figure.claims:
            if level_of(figure, claim) == "invariant":
                assert claim.check.ordinal, f"{figure.name}: {claim.claim}"


@pytest.mark.parametrize("paper", papers())
def test_facts_of_one_sentence_have_one_role(paper: str) -> None:
    known = facts(paper)
    for stated in known.values():
        if stated.counted_with:
            assert stated.role == known[stated.counted_with].role


def test_a_smaller_replay_treats_what_holds_and_what_fails_alike() -> None:
    holds, fails = {"a_us": 1.0}, {"a_us": 2.0}
    anywhere, full = made(fact="fig3a/lost"), made(fact="fig3a/lost", full_scale=True)
    for figure in (anywhere, full):
        assert judge(figure, findings=holds)[0].holds is True
        assert judge(figure, findings=fails)[0].holds is False
        for findings in (holds, fails):
            assert judge(figure, findings=findings, shorter="short")[0].holds is None


def test_a_smaller_replay_tests_what_one_case_denies_and_what_is_only_arithmetic() -> None:
    holds, fails = {"a_us": 1.0}, {"a_us": 2.0}
    most = {"check": {"kind": "at_most", "finding": "a_us", "value": 1}, "fact": "fig3a/lost"}
    for figure in (made(**most), made(fact="fig3a/lost", level="arithmetic")):
        assert judge(figure, findings=holds, shorter="short")[0].holds is True
        assert judge(figure, findings=fails, shorter="short")[0].holds is False
    full = made(**most, full_scale=True)
    assert judge(full, findings=holds, shorter="short")[0].holds is None
    assert judge(full, findings=fails, shorter="short")[0].holds is False
