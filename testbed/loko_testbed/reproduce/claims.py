"""Check the papers' claims, which experiments state as data, against the results of a replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from loko.document import InputError
from loko_testbed.reproduce.facts import Fact, fact
from loko_testbed.reproduce.figure import NOT_MEASURED, Claim, Evidence, Figure, Judgement, NotTestable
from loko_testbed.reproduce.result import (
    ClaimKind,
    ClaimResult,
    EvidenceLevel,
    FigureResult,
    Replication,
    SeedVerdict,
    Series,
    TableResult,
    TrafficResult,
)
from loko_testbed.reproduce.seed_share import verdict_of
from loko_testbed.simulation.options import Options

_BY_ROLE: Final[Mapping[str, ClaimKind]] = {"validation": "predicted", "calibration": "calibrated"}
"""The kind of a claim by the role of its fact; claims on facts of any other role are ours."""
_FALLING: Final[Sequence[ClaimKind]] = ("predicted", "calibrated", "ours")
"""The kinds of claims in order of evidential weight: predictions say most about the reproduction."""


def evaluate_claims(
    figure: Figure, result: FigureResult, together: Iterable[FigureResult], options: Options
) -> list[ClaimResult]:
    """Judge the claims of a figure's result, with comparable results of the same folder at hand.

    `options` are those of the replay; they decide whether it is smaller than the paper's.
    """
    return judge(
        figure,
        series=result.series if isinstance(result, TrafficResult) else (),
        table=result.table,
        findings=result.findings,
        others={
            other.name: other.series
            for other in together
            if isinstance(other, TrafficResult)
            and other.series
            and other.name != result.name
            and _have_same_scale(other, result)
        },
        shorter=figure.shorter(options),
        replications=result.replications,
    )


def _have_same_scale(near: FigureResult, other: FigureResult) -> bool:
    """Return whether two figures were replayed in the same mode and backend, as often and for as long."""
    one, another = (
        (result.mode, result.provenance.backend, result.provenance.runs, result.provenance.seconds)
        for result in (near, other)
    )
    return one == another


def judge(
    figure: Figure,
    *,
    series: Sequence[Series] = (),
    table: TableResult | None = None,
    findings: Mapping[str, float] | None = None,
    others: Mapping[str, Sequence[Series]] | None = None,
    shorter: str = "",
    replications: Sequence[Replication] = (),
) -> list[ClaimResult]:
    """Judge every claim of the figure: it holds, does not hold, is undecided, or is not testable here.

    For `others` and `shorter` see `Evidence`. A replay on a smaller scale than the paper's tests only claims
    that do not depend on the scale: arithmetic, and those that a single counterexample denies
    (`Check.denied_by_one_case`). No other claim could fail there, so none holds there either. A claim whose
    verdict depends on chance is judged by its share of seeds: that of the figure, and those of
    `replications`.
    """
    results = []
    for claim in figure.claims:
        stated = check_reference(figure, claim)
        level = level_of(figure, claim)
        evidence = Evidence(
            fact=stated,
            series=series,
            table=table,
            findings=findings or {},
            planned=figure.planned,
            others=others or {},
            shorter=shorter,
        )
        judgement = _judgement(claim, level, evidence)
        by_seed, tested = None, ""
        if isinstance(judgement, NotTestable):
            here, holds = judgement.here, None
            missing = claim.if_missing if here == NOT_MEASURED else ""
            because = "; ".join(filter(None, (judgement.why, missing)))
        else:
            here, holds = judgement
            if by_seed := _by_seed(claim, evidence, figure, replications, holds=holds):
                holds = by_seed.holds
                here = f"undecided: {by_seed}" if holds is None else f"{here}; {by_seed}"
            because = "" if holds else claim.if_not
            tested = "" if holds else _tested(figure, claim, stated)
        results.append(
            ClaimResult(
                claim=claim.claim,
                paper=claim.paper,
                here=here,
                holds=holds,
                where=stated.where,
                because=because,
                tested=tested,
                kind=kind_of(figure, claim, stated),
                kind_because=claim.kind_because,
                level=level,
                circular=is_circular(figure, claim),
                deviation=claim.check.deviation(evidence),
                tolerance=claim.check.tolerance(stated),
                fact=claim.fact,
                sentence=stated.sentence,
                by_seed=by_seed,
            )
        )
    return results


def _by_seed(
    claim: Claim, evidence: Evidence, figure: Figure, replications: Sequence[Replication], *, holds: bool
) -> SeedVerdict | None:
    """Judge a claim by its share of seeds; None if it needs one seed only, or others were not replayed.

    `holds` is the verdict at the figure's seed, and `evidence` that of this seed.
    """
    part = figure.for_replication() or figure
    others = [
        claim.check.find(
            replace(evidence, series=each.series, findings=each.findings, table=None, planned=part.planned)
        )
        for each in replications[: claim.seeds - 1]
    ]
    outcomes = [holds, *(each[1] for each in others if not isinstance(each, NotTestable))]
    if claim.seeds == 1 or len(outcomes) < claim.seeds:
        return None
    return verdict_of(sum(outcomes), len(outcomes))


def _tested(figure: Figure, claim: Claim, stated: Fact) -> str:
    """Return in words what speaks for the claim's reason, or against it; empty if nothing does."""
    words = [
        f"with {experiment.using} it {'holds' if experiment.holds else 'does not hold either'}"
        for experiment in claim.tested_by
    ]
    if claim.contradicts:
        places = f"{stated.where}, and {fact(figure.paper, claim.contradicts).where} ({claim.contradicts})"
        words.insert(0, f"the {figure.reference} contradicts itself: {places}")
    return "; ".join(words)


def _judgement(claim: Claim, level: EvidenceLevel, evidence: Evidence) -> Judgement:
    finding = claim.check.find(evidence)
    if isinstance(finding, NotTestable) or not evidence.shorter or level == "arithmetic":
        return finding
    here, holds = finding
    if claim.check.denied_by_one_case and claim.seeds == 1 and not (holds and claim.full_scale):
        return finding
    return NotTestable(why=f"{evidence.shorter}; the claim needs the paper's scale", here=here)


def kind_of(figure: Figure, claim: Claim, stated: Fact) -> ClaimKind:
    """Return whether a claim is predicted, calibrated or ours: by its fact's role, or as the claim lowers it.

    A measurement of a device alone may have gone into the profile, so agreement with it is no prediction. A
    value that the paper does not print but that follows from it is ours.
    """
    return "ours" if figure.ours else claim.kind or _by_role(stated)


def level_of(figure: Figure, claim: Claim) -> EvidenceLevel:
    """Return a claim's level of evidence: as the claim or its figure states, or by its check."""
    return claim.level or figure.level or claim.check.level


def is_circular(figure: Figure, claim: Claim) -> bool:
    """Return whether a claim was an input or follows from one, so that holding says nothing."""
    return claim.circular or level_of(figure, claim) == "profile"


def _by_role(stated: Fact) -> ClaimKind:
    return "ours" if stated.recomputed else _BY_ROLE.get(stated.role, "ours")


def check_reference(figure: Figure, claim: Claim) -> Fact:
    """Return the fact behind a claim. Raises `InputError` if the fact cannot support the claim.

    That is the case if the fact is missing, lacks the number that the check needs, or does not allow a kind
    as strong as the claim states, and if a circular claim is called a prediction or gives no reason. A claim
    that compares with another figure has one seed only.
    """
    stated = fact(figure.paper, claim.fact)
    if claim.contradicts:
        _ = fact(figure.paper, claim.contradicts)
    if claim.check.needs_number:
        _ = stated.number
    if claim.seeds > 1 and claim.check.compared_with:
        raise InputError(
            f"claim '{claim.claim}': seeds: it compares with {claim.check.compared_with}, which is replayed"
            " at one seed; leave it out"
        )
    if claim.kind is not None:
        most = _by_role(stated)
        if _FALLING.index(claim.kind) < _FALLING.index(most):
            raise InputError(
                f"claim '{claim.claim}': kind {claim.kind}: its fact {claim.fact} makes it {most};"
                " a kind can be lowered only"
            )
        if claim.kind != most and not claim.kind_because:
            raise InputError(f"claim '{claim.claim}': kind {claim.kind}: say why in kind_because")
    if is_circular(figure, claim):
        if kind_of(figure, claim, stated) == "predicted":
            raise InputError(f"claim '{claim.claim}': a circular claim is no prediction; lower its kind")
        if not claim.kind_because:
            raise InputError(f"claim '{claim.claim}': circular: say why in kind_because")
    return stated
