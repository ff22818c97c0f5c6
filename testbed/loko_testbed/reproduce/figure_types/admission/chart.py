"""The charts of admission figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from loko_testbed.reproduce.analysis import box_of
from loko_testbed.reproduce.chart import (
    BoxGroup,
    BoxPanel,
    Chart,
    ChartAxis,
    ChartCurve,
    LinePanel,
    Panel,
    Reference,
)
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure_types.admission.batch import RunRow
from loko_testbed.reproduce.figure_types.admission.ceilings import CEILINGS
from loko_testbed.reproduce.figure_types.admission.document import AdmissionFigure, SchemeSeries
from loko_testbed.reproduce.figure_types.admission.reservations import RESERVATIONS

_HOPS: Final = ChartAxis(label="path length [hops]")
_Values = Callable[[RunRow], Sequence[float]]
_Places = Mapping[tuple[SchemeSeries, int], Sequence[RunRow]]


def chart_of(figure: AdmissionFigure, rows: _Places, hops: Sequence[int], runs: int) -> Chart:
    """Return the chart that `figure.shows` selects."""
    caption = f"{runs} run{'s' if runs > 1 else ''} of {figure.requests} requests for each path length"
    if figure.shows == "use":
        return _use_chart(figure, rows, hops, caption)
    return Chart(panels=_accepted_panels(figure, rows, hops), columns=2, caption=caption)


def _use_chart(figure: AdmissionFigure, rows: _Places, hops: Sequence[int], caption: str) -> Chart:
    """Return the chart of uses as in the paper: boxes over all switches of all runs."""
    here = {length: rows[figure.series[0], length] for length in hops}
    shown = _with_flows(here)
    if shown != list(hops):
        ends = dict.fromkeys((hops[len(shown)], hops[-1]))
        caption += f"; on longer paths ({' to '.join(map(str, ends))} hops) no flow is accepted"
    switches = len(here[shown[0]][0].rate_uses_percent)
    printed = fact(figure.paper, figure.printed_rate_use).number if figure.printed_rate_use else None
    panels: tuple[tuple[str, Sequence[tuple[str, _Values]], list[Reference]], ...] = (
        (
            "all requests and all switches",
            (
                ("rejection rate", lambda row: [row.rejection_percent]),
                (f"rate use of each of the {switches} switches", lambda row: row.rate_uses_percent),
            ),
            [Reference(label=f"paper: at most {printed:g} %", value=printed)] if printed else [],
        ),
        (
            "the bottleneck switch",
            (
                ("burst use", lambda row: [row.bottleneck_burst_percent]),
                ("rate use", lambda row: [row.bottleneck_rate_percent]),
            ),
            [],
        ),
    )
    drawn: list[Panel] = [
        BoxPanel(
            title=title,
            x=ChartAxis(label="path length [hops]"),
            y=ChartAxis(label="per cent", low=0, high=105),
            places=[str(length) for length in shown],
            whiskers="1 % and 99 %",
            groups=[
                BoxGroup(
                    label=label,
                    boxes=[
                        box_of([value for row in here[length] for value in values(row)]) for length in shown
                    ],
                )
                for label, values in groups
            ],
            references=references,
        )
        for title, groups, references in panels
    ]
    return Chart(panels=drawn, caption=caption)


def _with_flows(here: Mapping[int, Sequence[RunRow]]) -> list[int]:
    """Return the path lengths up to the longest on which any run accepts a flow."""
    some = [length for length, rows in here.items() if any(row.accepted for row in rows)]
    return [length for length in here if length <= max(some, default=min(here))]


def _accepted_panels(figure: AdmissionFigure, rows: _Places, hops: Sequence[int]) -> list[Panel]:
    here = [series for series in figure.series if series.reservation == figure.reservations[0]]
    given = [series for series in here if series.scheme not in CEILINGS]
    if len(figure.reservations) == 1:
        compared = [_accepted(rows, hops, here, "flows accepted"), _ratio(figure, rows, hops, here)]
    else:  # where the first scheme accepts next to nothing, a ratio hides all the rest
        compared = [
            _accepted(
                rows,
                hops,
                [SchemeSeries(scheme, reservation) for scheme in figure.schemes],
                f"reserved: {RESERVATIONS[reservation].meaning}",
                log=True,
            )
            for reservation in figure.reservations
        ]
        meaning = RESERVATIONS[figure.reservations[0]].meaning
        compared.append(_accepted(rows, hops, given, f"all schemes: {meaning}", log=True))
    guaranteed = LinePanel(
        title="guarantee",
        x=_HOPS,
        y=ChartAxis(label="ms a switch", low=0),
        curves=[
            ChartCurve(
                label=series.scheme,
                x=[float(length) for length in hops],
                y=[_guarantee_ms(rows[series, length]) for length in hops],
            )
            for series in given
        ],
    )
    return [*compared, guaranteed]


def _accepted(
    rows: _Places,
    hops: Sequence[int],
    shown: Sequence[SchemeSeries],
    title: str,
    *,
    log: bool = False,
) -> LinePanel:
    return LinePanel(
        title=title,
        x=_HOPS,
        y=ChartAxis(label="flows in the ring", log=log, low=None if log else 0),
        curves=[
            ChartCurve(
                label=series.scheme,
                x=[float(length) for length in hops],
                y=[mean if mean or not log else None for mean in _means(rows, series, hops)],
            )
            for series in shown
        ],
    )


def _ratio(
    figure: AdmissionFigure, rows: _Places, hops: Sequence[int], shown: Sequence[SchemeSeries]
) -> LinePanel:
    """Return ratios to the first scheme; it is included so that schemes have one colour in all panels."""
    return LinePanel(
        title=f"times as many as {figure.schemes[0]}",
        x=_HOPS,
        y=ChartAxis(label="ratio", low=0),
        curves=[
            ChartCurve(
                label=series.scheme,
                x=[float(length) for length in hops],
                y=[
                    mean / base if base else None
                    for mean, base in zip(
                        _means(rows, series, hops), _means(rows, shown[0], hops), strict=True
                    )
                ],
            )
            for series in shown
        ],
    )


def _means(rows: _Places, series: SchemeSeries, hops: Sequence[int]) -> list[float]:
    return [float(np.mean([row.accepted for row in rows[series, length]])) for length in hops]


def _guarantee_ms(rows: Sequence[RunRow]) -> float | None:
    """Return the largest guarantee of any flow per switch of its path; None without flows."""
    return max(row.guarantee_ns / (row.hops + 1) for row in rows) / 1e6 or None
