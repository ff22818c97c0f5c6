"""The chart of a comparison: one column of panels for each lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from loko_testbed.reproduce.chart import (
    BoxGroup,
    BoxPanel,
    BoxStatistics,
    Chart,
    ChartAxis,
    ChartCurve,
    LinePanel,
    Panel,
    Reference,
)
from loko_testbed.reproduce.figure_types.comparison.document import (
    ComparisonBudget,
    ComparisonFigure,
    ComparisonLab,
)
from loko_testbed.reproduce.figure_types.comparison.replay import ALONE, WHISKERS

_PERCENT_LINEAR_TO: Final = 1.0


def chart(
    figure: ComparisonFigure,
    budget: ComparisonBudget,
    findings: Mapping[str, float],
    over_guarantee: Mapping[tuple[str, str], BoxStatistics],
) -> Chart:
    """Return the chart; `over_guarantee` has boxes of delays over guarantees, by keys of lab and system."""
    rows = [
        [
            _accepted(figure, comparison_lab, budget.rates_kbps, findings),
            _delays(figure, comparison_lab, over_guarantee),
            _others(figure, comparison_lab, "misbehaving", budget.excess_factors, findings),
            _others(figure, comparison_lab, "best_effort", budget.best_effort_kbps, findings),
            _best_effort(figure, comparison_lab, budget.best_effort_kbps, findings),
            *_times(figure, comparison_lab, sorted({*budget.rates_kbps, figure.rate_kbps}), findings),
        ]
        for comparison_lab in figure.labs
    ]
    return Chart(
        panels=[panel for across in zip(*rows, strict=True) for panel in across],
        columns=len(figure.labs),
        caption=f"below row 1: flows of {figure.rate_kbps:g} kbit/s, {budget.seconds:g} s each",
    )


def _curves(
    figure: ComparisonFigure,
    comparison_lab: ComparisonLab,
    x: Sequence[float],
    findings: Mapping[str, float],
    name: str,
) -> list[ChartCurve]:
    return [
        ChartCurve(
            label=compared.label,
            x=list(x),
            y=[findings[f"{comparison_lab.key}_{compared.key}_{name.format(at)}"] for at in x],
        )
        for compared in figure.systems
    ]


def _accepted(
    figure: ComparisonFigure,
    comparison_lab: ComparisonLab,
    rates_kbps: Sequence[float],
    findings: Mapping[str, float],
) -> Panel:
    return LinePanel(
        title=f"{comparison_lab.label}: flows accepted",
        x=ChartAxis(label="rate of each flow [kbit/s]", log=True),
        y=ChartAxis(label="flows", low=0),
        curves=_curves(figure, comparison_lab, rates_kbps, findings, "flows_at_{:g}_kbps"),
        references=[Reference(label="requested", value=comparison_lab.requests)],
    )


def _delays(
    figure: ComparisonFigure,
    comparison_lab: ComparisonLab,
    over_guarantee: Mapping[tuple[str, str], BoxStatistics],
) -> Panel:
    return BoxPanel(
        title=f"{comparison_lab.label}: everybody does as promised",
        x=ChartAxis(label=""),
        y=ChartAxis(label="delay / guarantee", log=True, low=0.05, high=20),
        places=[compared.label for compared in figure.systems],
        groups=[
            BoxGroup(
                label="delays over their guarantees",
                boxes=[over_guarantee.get((comparison_lab.key, compared.key)) for compared in figure.systems],
            )
        ],
        whiskers=WHISKERS,
        references=[Reference(label="guarantee", value=1.0)],
    )


def _others(
    figure: ComparisonFigure,
    comparison_lab: ComparisonLab,
    kind: str,
    sizes: Sequence[float],
    findings: Mapping[str, float],
) -> Panel:
    titles = {
        "misbehaving": ("a sender breaks its contract", "times the rate that it may send"),
        "best_effort": ("best effort that nobody polices", "best effort [kbit/s]"),
    }
    title, x = titles[kind]
    return LinePanel(
        title=f"{comparison_lab.label}: {title}",
        x=ChartAxis(label=x, log=True),
        y=ChartAxis(label="others, late or lost [%]", linear_to=_PERCENT_LINEAR_TO, low=0, high=105),
        curves=_curves(figure, comparison_lab, sizes, findings, f"{kind}_{{:g}}_others_percent"),
    )


def _best_effort(
    figure: ComparisonFigure,
    comparison_lab: ComparisonLab,
    sizes: Sequence[float],
    findings: Mapping[str, float],
) -> Panel:
    name = "best_effort_{:g}_mean_ms"
    alone = [findings[f"{comparison_lab.key}_{ALONE}_{name.format(kbps)}"] for kbps in sizes]
    return LinePanel(
        title=f"{comparison_lab.label}: what best effort suffers",
        x=ChartAxis(label="best effort [kbit/s]", log=True),
        y=ChartAxis(label="its mean delay [ms]", low=0),
        curves=[
            *_curves(figure, comparison_lab, sizes, findings, name),
            ChartCurve(label="nobody else", x=list(sizes), y=[*alone], dashed=True),
        ],
    )


def _times(
    figure: ComparisonFigure,
    comparison_lab: ComparisonLab,
    rates_kbps: Sequence[float],
    findings: Mapping[str, float],
) -> list[Panel]:
    """Return the panel of times to answer, if they were measured."""
    name = "answer_at_{:g}_kbps_ms"
    if f"{comparison_lab.key}_{figure.systems[0].key}_{name.format(figure.rate_kbps)}" not in findings:
        return []
    return [
        LinePanel(
            title=f"{comparison_lab.label}: time to answer, on this machine",
            x=ChartAxis(label="rate of each flow [kbit/s]", log=True),
            y=ChartAxis(label=f"all {comparison_lab.requests} requests [ms]", log=True),
            curves=_curves(figure, comparison_lab, rates_kbps, findings, name),
        )
    ]
