"""What is drawn of an admission figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evaluation.chart import BoxGroup, BoxPanel, BoxStatistics, Chart, ChartAxis, Curve, LinePanel, Panel
from evaluation.kinds.admission.document import AdmissionFigure, SchemeName
from evaluation.kinds.admission.trial import RunRow

_Places = Mapping[tuple[SchemeName, int], Sequence[RunRow]]


def chart_of(figure: AdmissionFigure, rows: _Places, hops: Sequence[int], runs: int) -> Chart:
    """The picture: `figure.shows` says which."""
    caption = f"{runs} runs of {figure.requests} requests for each path length"
    if figure.shows == "use":
        return Chart(panels=_use_panels(figure.schemes[0], rows, hops), caption=caption)
    return Chart(panels=_accepted_panels(figure, rows, hops), columns=2, caption=caption)


def _use_panels(scheme: SchemeName, rows: _Places, hops: Sequence[int]) -> list[Panel]:
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
                    boxes=[_box([getattr(row, column) for row in rows[scheme, length]]) for length in hops],
                )
                for label, column in groups
            ],
        )
        for title, groups in panels
    ]


def _accepted_panels(figure: AdmissionFigure, rows: _Places, hops: Sequence[int]) -> list[Panel]:
    x = [float(length) for length in hops]
    means = {
        scheme: [float(np.mean([row.accepted for row in rows[scheme, length]])) for length in hops]
        for scheme in figure.schemes
    }
    first = figure.schemes[0]
    accepted = LinePanel(
        title="flows accepted",
        x=ChartAxis(label="path length [hops]"),
        y=ChartAxis(label="flows in the ring", low=0),
        curves=[Curve(label=scheme, x=x, y=list(means[scheme])) for scheme in figure.schemes],
    )
    ratio = LinePanel(
        title=f"times as many as {first}",
        x=ChartAxis(label="path length [hops]"),
        y=ChartAxis(label="ratio", low=0),
        curves=[
            Curve(
                label=scheme,
                x=x,
                y=[
                    mean / base if base else None
                    for mean, base in zip(means[scheme], means[first], strict=True)
                ],
            )
            for scheme in figure.schemes  # the first too: so each has one colour in all panels
        ],
    )
    guaranteed = LinePanel(
        title="guarantee",
        x=ChartAxis(label="path length [hops]"),
        y=ChartAxis(label="ms a switch", low=0),
        curves=[
            Curve(label=scheme, x=x, y=[_guarantee_ms(rows[scheme, length]) for length in hops])
            for scheme in figure.schemes
        ],
    )
    return [accepted, ratio, guaranteed]


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
