"""A chart with every kind of panel, and results that contain charts."""

from __future__ import annotations

from typing import Any

from loko_testbed.reproduce.chart import (
    BoxGroup,
    BoxPanel,
    BoxStatistics,
    Chart,
    ChartAxis,
    ChartCurve,
    Cloud,
    HeatPanel,
    HistogramPanel,
    HistogramSeries,
    LinePanel,
    PlacedLine,
    Reference,
    ScatterPanel,
    TimePanel,
)
from loko_testbed.reproduce.result import (
    AxisLabel,
    ClaimResult,
    FigureResult,
    HostResult,
    Provenance,
    TrafficResult,
)


def box(middle: float) -> BoxStatistics:
    return BoxStatistics(
        whisker_low=middle * 0.8,
        q1=middle * 0.9,
        median=middle,
        q3=middle * 1.1,
        whisker_high=middle * 1.2,
        min=middle * 0.5,
        max=middle * 1.6,
        mean=middle * 1.05,
    )


TIME = ChartAxis(label="time [us]")
BOXES = BoxPanel(
    x=ChartAxis(label="entries"),
    y=TIME,
    places=["1", "17", "33"],
    groups=[
        BoxGroup(label="one", boxes=[box(10), None, box(30)]),
        BoxGroup(label="two", boxes=[box(12)] * 3),
    ],
    whiskers="5 % and 95 %",
    references=[Reference(label="bound", value=60)],
    second=ChartAxis(label="throughput [Mbit/s]"),
    lines=[
        PlacedLine(label="least, most", y=[90, 80, None], dashed=True),
        PlacedLine(label="mean", y=[70, 60, 50]),
    ],
)
LINES = LinePanel(
    title="curves",
    x=ChartAxis(label="input [Mbit/s]"),
    y=ChartAxis(label="output [Mbit/s]", low=0),
    curves=[
        ChartCurve(label="with bars", x=[1, 2, 3], y=[1, None, 2.5], low=[0.8, 1, 2], high=[1.1, 2, 3]),
        ChartCurve(label="stairs", x=[1, 2, 3], y=[0.2, 0.5, 1], steps=True, marker=False, dashed=True),
    ],
    references=[Reference(label="equation 6", value=2), Reference(label="onset", value=1.5, axis="x")],
)
SCATTER = ScatterPanel(
    x=ChartAxis(label="measured", log=True),
    y=ChartAxis(label="computed", log=True),
    clouds=[
        Cloud(label="equation 5", x=[1, 10, 50], y=[0.8, 7, 30]),
        Cloud(label="equation 6", x=[1, 10, 50], y=[1, 10, 50]),
    ],
    diagonal=True,
)
HEAT = HeatPanel(
    x=ChartAxis(label="rate"),
    y=ChartAxis(label="burst"),
    value=ChartAxis(label="delay [ms]"),
    x_values=[1, 2, 3],
    y_values=[10, 20],
    cells=[[1, 2, 3], [2, None, None]],
)
SAMPLES = TimePanel(
    x=ChartAxis(label="time [s]"),
    y=TIME,
    clouds=[Cloud(label="echo", x=[i / 100 for i in range(3000)], y=[90 + i % 7 for i in range(3000)])],
)
COUNTS = HistogramPanel(
    x=TIME,
    y=ChartAxis(label="count"),
    edges=[0, 1, 2, 3],
    histograms=[HistogramSeries(label="a", counts=[1, 4, 2]), HistogramSeries(label="b", counts=[0, 2, 5])],
)
PANELS = [BOXES, LINES, SCATTER, HEAT, SAMPLES, COUNTS]


def traffic_result(chart: Chart | None, **counted: Any) -> TrafficResult:
    """Return the same as the result of a figure of traffic; `counted` has what that has in addition."""
    values = {**dict(chart_result(Chart(panels=[BOXES]))), "chart": chart}
    return TrafficResult(**{**values, "series": [], "boards": {}, **counted})


def chart_result(chart: Chart, *, findings: dict[str, float] | None = None) -> FigureResult:
    return FigureResult(
        figure="fig0",
        paper="loko",
        title="A figure with everything",
        mode="virtual",
        seed=1,
        x=AxisLabel(name="x", unit=""),
        chart=chart,
        findings=findings or {"p_us": 4.5},
        claims=[
            ClaimResult(claim="short", paper="4 us", here="4.5 us", holds=True, where="sec 1"),
            ClaimResult(
                claim="a claim that needs far more words than fit into a line of the picture's caption",
                paper="about as many as the paper has on this",
                here="not so",
                holds=False,
                where="sec 1",
            ),
        ],
        notes=[],
        provenance=Provenance(
            commit="0" * 12,
            profile="zodiac-fx",
            host=HostResult(),
            runs=1,
            seconds=0,
            versions={},
            assumptions={},
        ),
    )
