"""Curves that hide each other, belong to each other, or have scaled axes; columns and bars over time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import vl_convert
from picture_texts import beyond_the_edges, colours_of, overlapping
from sample_charts import BOXES, COUNTS, HEAT, LINES, PANELS, chart_result

from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.chart import (
    Chart,
    ChartAxis,
    ChartCurve,
    Panel,
    Reference,
    ScaledAxes,
    TimelineBar,
    TimelineInstant,
    TimelinePanel,
    TimelineRow,
)
from loko_testbed.reproduce.plots.marks import Spec
from loko_testbed.reproduce.plots.rendering import VEGA_LITE
from loko_testbed.reproduce.plots.theme import COLOURS

TIMELINE = TimelinePanel(
    x=ChartAxis(label="time [us]", low=0),
    rows=[
        TimelineRow(
            name=f"case {name}",
            bars=[
                TimelineBar(label=label, begin=10 * place, end=10 * place + 8)
                for place, label in enumerate(("data", "command", "data"))
            ],
            instants=[TimelineInstant(label=f"{part} delivered", at=28) for part in ("data", "command")],
        )
        for name in "abc"
    ],
)


def curves_of(*curves: list[float | None], **changed: Any) -> Spec:
    """Return the picture of curves over 1, 2, 3, … with labels a, b, c, …"""
    drawn = [
        ChartCurve(label="abcdef"[number], x=[1.0 + at for at in range(len(y))], y=y)
        for number, y in enumerate(curves)
    ]
    panel = LINES.model_copy(update={"curves": drawn, "references": [], **changed})
    return pictures.specification(chart_result(Chart(panels=[panel])), captioned=False)


def layers(part: Spec, kind: str) -> list[Spec]:
    """Return the looks of all marks of a kind."""
    found = [part["mark"]] if part.get("mark", {}).get("type") == kind else []
    for name in ("vconcat", "concat", "layer"):
        found += [mark for inner in part.get(name, []) for mark in layers(inner, kind)]
    return found


def widths(spec: Spec) -> list[float]:
    return [mark["strokeWidth"] for mark in layers(spec, "line")]


def test_a_curve_below_others_is_wider_than_they_are() -> None:
    lowest, middle, highest = widths(curves_of([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5]))
    assert lowest > middle > highest
    points = layers(curves_of([1, 2], [1, 2]), "point")
    sizes = [mark["size"] for mark in points if mark.get("opacity") == 1 and "size" in mark]
    assert sizes[0] > sizes[1]


@pytest.mark.parametrize(
    "curves",
    [([1, 2, 3], [3, 2, 1]), ([1, None, 3], [2, None, 4]), ([None], [1]), ([1, 2, 3, 9], [1, 2, 3, 4])],
)
def test_curves_that_are_seen_anyway_have_the_same_width(curves: tuple[list[float | None], ...]) -> None:
    assert len(set(widths(curves_of(*curves)))) == 1


def test_a_line_through_points_leaves_them_as_they_are() -> None:
    points = ChartCurve(label="points", x=[1, 2, 3], y=[1, 2, 3])
    fitted = ChartCurve(label="fitted", x=[1, 3], y=[1, 3], marker=False, dashed=True)
    assert len(set(widths(curves_of(curves=[points, fitted])))) == 1


def test_steps_that_coincide_along_the_other_axis_are_told_apart() -> None:
    shares: list[float | None] = [0, 50, 100]
    curves = [ChartCurve(label=label, x=[5, 5, 5.01], y=shares, steps=True, marker=False) for label in "ab"]
    apart = ChartCurve(label="c", x=[5, 9, 10], y=shares, steps=True, marker=False)
    below, above, alone = widths(curves_of(curves=[*curves, apart]))
    assert below > above == alone


def test_what_belongs_to_a_curve_has_its_colour() -> None:
    curves = [
        ChartCurve(label="ours", x=[1, 2], y=[1, 2]),
        ChartCurve(label="equation of ours", x=[1, 2], y=[2, 3], dashed=True, curve="ours"),
        ChartCurve(label="other", x=[1, 2], y=[5, 6]),
    ]
    line = Reference(label="bound of other", value=4, curve="other")
    spec = curves_of(curves=curves, references=[line])
    assert [mark["color"] for mark in layers(spec, "line")] == [COLOURS[0], COLOURS[0], COLOURS[1]]
    assert [mark["color"] for mark in layers(spec, "rule")] == [COLOURS[1]]


def test_scaled_axes_show_the_multiplied_values() -> None:
    panel = LINES.model_copy(update={"scaled": ScaledAxes(factor=48, x="all ports", y="all received")})
    drawn = pictures.svg(chart_result(Chart(panels=[panel])), captioned=False).decode()
    assert ">all ports<" in drawn
    assert ">all received<" in drawn
    assert f">{48 * 2}<" in drawn


def test_a_curve_that_begins_at_the_end_of_its_axis_is_whole() -> None:
    spec = curves_of([1, 2, 3], x=ChartAxis(label="x", low=0))
    scenegraph = vl_convert.vegalite_to_scenegraph(spec, vl_version=VEGA_LITE)["scenegraph"]

    def places(item: Any) -> list[float]:
        here = [
            inner["x"]
            for inner in item.get("items", [])
            if item.get("marktype") == "symbol" and inner.get("x")
        ]
        return here + [x for inner in item.get("items", []) for x in places(inner)]

    assert 0 < max(places(scenegraph)) < spec["vconcat"][0]["concat"][0]["width"] - 3


def test_columns_of_several_histograms_stand_side_by_side() -> None:
    spec = pictures.specification(chart_result(Chart(panels=[COUNTS])), captioned=False)
    bars = [part for part in spec["vconcat"][0]["concat"][0]["layer"] if part["mark"]["type"] == "bar"]
    ends = sorted((row["begin"], row["end"]) for part in bars for row in part["data"]["values"])
    assert len(ends) == sum(len(each.counts) for each in COUNTS.histograms)
    assert all(end <= begin + 1e-9 for (_, end), (begin, _) in pairwise(ends))


def test_a_timeline_has_every_bar_and_every_instant() -> None:
    spec = pictures.specification(chart_result(Chart(panels=[TIMELINE])), captioned=False)
    parts = spec["vconcat"][0]["concat"][0]["layer"]
    rows = {part["mark"]["type"]: [] for part in parts}
    for part in parts:
        rows[part["mark"]["type"]] += part["data"]["values"]
    assert [(row["row"], row["begin"]) for row in rows["bar"]] == [
        (row.name, bar.begin) for row in TIMELINE.rows for bar in row.bars
    ]
    assert len([row for row in rows["point"] if "at" in row]) == 6
    offsets = {part["mark"]["yOffset"] for part in parts if "yOffset" in part["mark"]}
    assert len(offsets) == 2


LONG = [f"set-nw-{number}-address" for number in range(9)]
CROWDED: dict[str, Panel] = {
    "long names": BOXES.model_copy(
        update={
            "places": LONG,
            "groups": [BOXES.groups[1].model_copy(update={"boxes": [BOXES.groups[1].boxes[0]] * 9})],
            "lines": [],
            "second": None,
        }
    ),
    "numbers": BOXES.model_copy(update={"places": ["64", "306", "548"]}),
    "cells": HEAT.model_copy(update={"cells": [[6620, 4410, 1000], [1900, 1010, 6620]]}),
    "scaled": LINES.model_copy(update={"scaled": ScaledAxes(factor=48, x="all ports", y="all received")}),
    "thousands": LINES.model_copy(
        update={
            "curves": [ChartCurve(label="long", x=[0, 1049], y=[0, 99_000])],
            "x": ChartAxis(label="t", low=0),
        }
    ),
    "timeline": TIMELINE,
}


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("name", CROWDED)
def test_no_text_overlaps_another_or_leaves_the_picture(name: str, columns: int) -> None:
    panel = CROWDED[name].model_copy(
        update={"title": "A switch with long queues, frames of 1516 bytes, and more"}
    )
    drawn = pictures.svg(chart_result(Chart(panels=[panel] * 2, columns=columns)), captioned=False)
    assert not overlapping(drawn)
    assert not beyond_the_edges(drawn)


def test_texts_that_overlap_are_found() -> None:
    text = '<text transform="translate({},20)" font-size="11px">processing time</text>'
    both = "".join(text.format(x) for x in (5, 30))
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="100" height="40">{both}</svg>'.encode()
    assert overlapping(svg) == [("processing time", "processing time")]
    assert beyond_the_edges(svg) == ["processing time"]


@pytest.mark.parametrize(
    "panel", [each for each in (*PANELS, TIMELINE) if each.kind != "heatmap"], ids=lambda panel: panel.kind
)
def test_a_legend_has_every_colour_of_the_marks(panel: Panel) -> None:
    drawn = pictures.svg(chart_result(Chart(panels=[panel])), captioned=False)
    shown = colours_of(drawn, legend=False)
    assert shown
    assert shown <= colours_of(drawn, legend=True)
