"""What is drawn of an admission figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from evaluation.chart import BoxGroup, BoxPanel, BoxStatistics, Chart, ChartAxis, Curve, LinePanel, Panel
from evaluation.kinds.admission.ceilings import CEILINGS
from evaluation.kinds.admission.document import AdmissionFigure, Series
from evaluation.kinds.admission.reservations import RESERVATIONS
from evaluation.kinds.admission.trial import RunRow

_HOPS: Final = ChartAxis(label="path length [hops]")
_Places = Mapping[tuple[Series, int], Sequence[RunRow]]


def chart_of(figure: AdmissionFigure, rows: _Places, hops: Sequence[int], runs: int) -> Chart:
    """The picture: `figure.shows` says which."""
    caption = f"{runs} runs of {figure.requests} requests for each path length"
    if figure.shows == "use":
        return Chart(panels=_use_panels(figure.series[0], rows, hops), caption=caption)
    return Chart(panels=_accepted_panels(figure, rows, hops), columns=2, caption=caption)


def _use_panels(series: Series, rows: _Places, hops: Sequence[int]) -> list[Panel]:
    panels = (
        (
            "all requests and all switches",
            (("rejection rate", "rejection_percent"), ("rate use, mean of all switches", "rate_use_percent")),
        ),
        (
            "the bottleneck switch",
            (("burst use", "bottleneck_burst_percent"), ("rate use", "bottleneck_rate_percent")),
        ),
    )
    return [
        BoxPanel(
            title=title,
            x=ChartAxis(label="path length [hops]"),
            y=ChartAxis(label="per cent", low=0, high=105),
            places=[str(length) for length in hops],
            whiskers="1 % and 99 %",
            groups=[
                BoxGroup(
                    label=label,
                    boxes=[_box([getattr(row, column) for row in rows[series, length]]) for length in hops],
                )
                for label, column in groups
            ],
        )
        for title, groups in panels
    ]


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
                [Series(scheme, reservation) for scheme in figure.schemes],
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
            Curve(
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
    shown: Sequence[Series],
    title: str,
    *,
    log: bool = False,
) -> LinePanel:
    return LinePanel(
        title=title,
        x=_HOPS,
        y=ChartAxis(label="flows in the ring", log=log, low=None if log else 0),
        curves=[
            Curve(
                label=series.scheme,
                x=[float(length) for length in hops],
                y=[mean if mean or not log else None for mean in _means(rows, series, hops)],
            )
            for series in shown
        ],
    )


def _ratio(figure: AdmissionFigure, rows: _Places, hops: Sequence[int], shown: Sequence[Series]) -> LinePanel:
    """The first scheme too: so each has one colour in all panels."""
    return LinePanel(
        title=f"times as many as {figure.schemes[0]}",
        x=_HOPS,
        y=ChartAxis(label="ratio", low=0),
        curves=[
            Curve(
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


def _means(rows: _Places, series: Series, hops: Sequence[int]) -> list[float]:
    return [float(np.mean([row.accepted for row in rows[series, length]])) for length in hops]


def _guarantee_ms(rows: Sequence[RunRow]) -> float | None:
    """The largest of any flow, for each switch of its path; none without any flow."""
    return max(row.guarantee_ns / (row.hops + 1) for row in rows) / 1e6 or None


def _box(values: Sequence[float]) -> BoxStatistics:
    low, q1, median, q3, high = (float(value) for value in np.percentile(values, [1, 25, 50, 75, 99]))
    return BoxStatistics(
        whisker_low=low,
        q1=q1,
        median=median,
        q3=q3,
        whisker_high=high,
        min=float(min(values)),
        max=float(max(values)),
        mean=float(np.mean(values)),
    )
