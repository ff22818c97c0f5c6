"""Panels of bars over time."""

from __future__ import annotations

from typing import Final

from loko_testbed.reproduce.chart import TimelinePanel
from loko_testbed.reproduce.plots.marks import (
    SHAPES,
    LegendEntry,
    Spec,
    as_it_is,
    axis_of,
    field,
    layer,
    legend,
    tooltip,
    with_room,
    zoomable,
)
from loko_testbed.reproduce.plots.theme import COLOURS

ROW: Final = 64
"""Height of a row of a timeline, in pixels."""


def timeline_panel(panel: TimelinePanel, width: float, name: str) -> Spec:
    """Return bars over time in named rows, with a caret below them at each instant."""
    bars = dict.fromkeys(bar.label for row in panel.rows for bar in row.bars)
    instants = dict.fromkeys(instant.label for row in panel.rows for instant in row.instants)
    colours = {label: COLOURS[number % len(COLOURS)] for number, label in enumerate([*bars, *instants])}
    x = axis_of(with_room(panel.x, [bar.end for row in panel.rows for bar in row.bars]))
    named: Spec = {"scale": {"domain": [row.name for row in panel.rows]}, "title": None}
    named["axis"] = {"ticks": False, "domain": False}
    y: Spec = {"field": "row", "type": "ordinal", **named}
    bar_rows = [
        {"row": row.name, "begin": bar.begin, "end": bar.end, "label": bar.label, "fill": colours[bar.label]}
        for row in panel.rows
        for bar in row.bars
    ]
    ends = {"begin": "from", "end": "to"}
    bar_encoding = {
        "x": field("begin", **x),
        "x2": {"field": "end"},
        "y": y,
        "fill": as_it_is("fill"),
        "tooltip": tooltip({"label": "packet of"}, ends),
    }
    thin: Spec = {"stroke": "white", "strokeWidth": 0.6, "height": {"band": 0.4}}
    layers = [zoomable(layer("bar", bar_encoding, bar_rows, **thin), name, ["x"])]
    instant_encoding = {
        "x": field("at", **x),
        "y": y,
        "fill": as_it_is("fill"),
        "tooltip": tooltip({"label": "instant"}, {"at": "at"}),
    }
    for number, label in enumerate(instants):
        instant_rows = [
            {"row": row.name, "at": instant.at, "label": label, "fill": colours[label]}
            for row in panel.rows
            for instant in row.instants
            if instant.label == label
        ]
        caret: Spec = {"yOffset": (0.28 + 0.14 * number) * ROW, "opacity": 1, "size": 80}
        look = {"shape": SHAPES["triangle-up"], "stroke": None}
        layers.append(layer("point", instant_encoding, instant_rows, **look, **caret))
    entries = [LegendEntry(label=label, shape="box", fill=colours[label]) for label in bars]
    entries += [LegendEntry(label=label, shape="triangle-up", fill=colours[label]) for label in instants]
    return {"layer": [*layers, *legend(entries, width)]}
