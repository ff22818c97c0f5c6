"""Checks the papers' claims, which experiments state as data, against what was found here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.experiments import check_reference
from evaluation.figure import Evidence, Figure
from evaluation.result import ClaimResult, Series, TableResult


def judge(
    figure: Figure,
    *,
    series: Sequence[Series] = (),
    table: TableResult | None = None,
    findings: Mapping[str, float] | None = None,
    largest_loss: Mapping[str, float] | None = None,
) -> list[ClaimResult]:
    """Judge every claim of the figure that can be judged.

    `largest_loss` is that of other figures of the same run by full name; a claim that compares with a figure
    which is not there is left out. A claim on what was not measured (``--quick``) is left out too.
    """
    results = []
    for claim in figure.claims:
        fact = check_reference(figure, claim)
        finding = claim.check.find(
            Evidence(
                fact=fact,
                series=series,
                table=table,
                findings=findings or {},
                largest_loss=largest_loss or {},
            )
        )
        if finding is None:
            continue
        here, holds = finding
        results.append(
            ClaimResult(
                claim=claim.claim,
                paper=claim.paper,
                here=here,
                holds=holds,
                where=fact.where,
                because="" if holds else claim.if_not,
            )
        )
    return results
