"""The chart of a comparison: one column of panels for each lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from evaluation.chart import (
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
from evaluation.figure_types.comparison.document import ComparisonBudget, ComparisonFigure, ComparisonLab
from evaluation.figure_types.comparison.replay import ALONE, WHISKERS

_PERCENT_LINEAR_TO: Final = 1.0


def chart(
    figure: ComparisonFigure,
    budget: ComparisonBudget,
    findings: Mapping[str, float],
    over_guarantee: Mapping[tuple[str, str], BoxStatistics],
) -> Chart:
    """Return the chart; `over_guarantee` has boxes of delays over guarantees, by keys of arena and system."""
    rows = [
        [
            _accepted(figure, arena, budget.rates_kbps, findings),
            _delays(figure, arena, over_guarantee),
            _others(figure, arena, "rogue", budget.excess_factors, findings),
            _others(figure, arena, "best_effort", budget.best_effort_kbps, findings),
            _best_effort(figure, arena, budget.best_effort_kbps, findings),
            *_times(figure, arena, sorted({*budget.rates_kbps, figure.rate_kbps}), findings),
        ]
        for arena in figure.arenas
    ]
    return Chart(
        panels=[panel for across in zip(*rows, strict=True) for panel in across],
        columns=len(figure.arenas),
        caption=f"below row 1: flows of {figure.rate_kbps:g} kbit/s, {budget.seconds:g} s each",
    )


def _curves(
    figure: ComparisonFigure,
    arena: ComparisonLab,
    x: Sequence[float],
    findings: Mapping[str, float],
    name: str,
) -> list[ChartCurve]:
    return [
        ChartCurve(
            label=contender.label,
            x=list(x),
            y=[findings[f"{arena.key}_{contender.key}_{name.format(at)}"] for at in x],
        )
        for contender in figure.contenders
    ]


def _accepted(
    figure: ComparisonFigure, arena: ComparisonLab, rates_kbps: Sequence[float], findings: Mapping[str, float]
) -> Panel:
    return LinePanel(
        title=f"{arena.label}: flows accepted",
        x=ChartAxis(label="rate of each flow [kbit/s]", log=True),
        y=ChartAxis(label="flows", low=0),
        curves=_curves(figure, arena, rates_kbps, findings, "flows_at_{:g}_kbps"),
        references=[Reference(label="requested", value=arena.requests)],
    )


def _delays(
    figure: ComparisonFigure, arena: ComparisonLab, over_guarantee: Mapping[tuple[str, str], BoxStatistics]
) -> Panel:
    return BoxPanel(
        title=f"{arena.label}: everybody does as promised",
        x=ChartAxis(label=""),
        y=ChartAxis(label="delay / guarantee", log=True, low=0.05, high=20),
        places=[contender.label for contender in figure.contenders],
        groups=[
            BoxGroup(
                label="delays over their guarantees",
                boxes=[over_guarantee.get((arena.key, contender.key)) for contender in figure.contenders],
            )
        ],
        whiskers=WHISKERS,
        references=[Reference(label="guarantee", value=1.0)],
    )


def _others(
    figure: ComparisonFigure,
    arena: ComparisonLab,
    kind: str,
    sizes: Sequence[float],
    findings: Mapping[str, float],
) -> Panel:
    titles = {
        "rogue": ("a sender breaks its contract", "times the rate that it may send"),
        "best_effort": ("best effort that nobody polices", "best effort [kbit/s]"),
    }
    title, x = titles[kind]
    return LinePanel(
        title=f"{arena.label}: {title}",
        x=ChartAxis(label=x, log=True),
        y=ChartAxis(label="others, late or lost [%]", linear_to=_PERCENT_LINEAR_TO, low=0, high=105),
        curves=_curves(figure, arena, sizes, findings, f"{kind}_{{:g}}_others_percent"),
    )


def _best_effort(
    figure: ComparisonFigure, arena: ComparisonLab, sizes: Sequence[float], findings: Mapping[str, float]
) -> Panel:
    name = "best_effort_{:g}_mean_ms"
    alone = [findings[f"{arena.key}_{ALONE}_{name.format(kbps)}"] for kbps in sizes]
    return LinePanel(
        title=f"{arena.label}: what best effort suffers",
        x=ChartAxis(label="best effort [kbit/s]", log=True),
        y=ChartAxis(label="its mean delay [ms]", low=0),
        curves=[
            *_curves(figure, arena, sizes, findings, name),
            ChartCurve(label="nobody else", x=list(sizes), y=[*alone], dashed=True),
        ],
    )


def _times(
    figure: ComparisonFigure, arena: ComparisonLab, rates_kbps: Sequence[float], findings: Mapping[str, float]
) -> list[Panel]:
    """Return the panel of times to answer, if they were measured."""
    name = "answer_at_{:g}_kbps_ms"
    if f"{arena.key}_{figure.contenders[0].key}_{name.format(figure.rate_kbps)}" not in findings:
        return []
    return [
        LinePanel(
            title=f"{arena.label}: time to answer, on this machine",
            x=ChartAxis(label="rate of each flow [kbit/s]", log=True),
            y=ChartAxis(label=f"all {arena.requests} requests [ms]", log=True),
            curves=_curves(figure, arena, rates_kbps, findings, name),
        )
    ]
