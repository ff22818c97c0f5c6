"""Building blocks of pictures: Vega-Lite marks, axes, legends, boxes."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from loko_testbed.reproduce.chart import ChartAxis, Reference
from loko_testbed.reproduce.plots.theme import FONT_WIDTH, PAPER, REFERENCE

Spec = dict[str, Any]
"""A Vega-Lite specification, or a part of one."""
Row = Mapping[str, Any]
Direction = Literal["x", "y"]

SHAPES: Final = {
    "circle": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
    "square": "M-.9,-.9L.9,-.9L.9,.9L-.9,.9Z",
    "triangle-up": "M0,-1L1,.8L-1,.8Z",
    "diamond": "M0,-1.2L1.2,0L0,1.2L-1.2,0Z",
    "triangle-down": "M0,1L1,-.8L-1,-.8Z",
    "triangle-left": "M-1,0L.8,1L.8,-1Z",
    "triangle-right": "M1,0L-.8,1L-.8,-1Z",
    "plus": "M-.3,-1L.3,-1L.3,-.3L1,-.3L1,.3L.3,.3L.3,1L-.3,1L-.3,.3L-1,.3L-1,-.3L-.3,-.3Z",
    "x": "M-.9,-.9L.9,.9M-.9,.9L.9,-.9",
    "dash": "M-1.2,0L1.2,0",
    "line": "M-2.2,0L2.2,0",
    "box": "M-1.8,-.9L1.8,-.9L1.8,.9L-1.8,.9Z",
    "none": "M0,0",
}
"""SVG paths of markers and of what stands in legends, about 1 in radius."""
_DASHES: Final = ([1, 0], [6, 2], [2, 1.5])
DASHED: Final = (4, 2)
"""Dash of a curve that is dashed for a meaning."""
_OF_CURVE: Final = (6, 2)
"""Dash of a reference line that belongs to a curve."""
NO_COLOURS: Final[Mapping[str, str]] = MappingProxyType({})
_LINES: Final = (REFERENCE, "#000000", "#7a7a7a")
"""Dashes and colours of reference lines; the dashes differ so that they work in grey, too."""
_AIR: Final = 1.1
"""Upper end of an axis that begins at 0, by the highest value."""
_ROOM: Final = 10
"""Room on other axes beyond the values, in pixels."""
_BEYOND: Final = 0.02
"""Room beyond the values of an axis that begins at a given one, by its length."""
_FORMAT: Final = ".7~g"
_NAME_FONTS: Final = (11, 9)
"""Font sizes of the names of places, and of those that are slanted."""
_SLANTED_APART: Final = 28
"""Distance of places from which on names that are slanted only a little do not touch, in pixels."""
_LEGEND_SYMBOL: Final = 40
"""Width in pixels of a legend's symbol and of the gaps beside it."""
_LEGEND_FONT: Final = 10
_LEGEND_CHANNELS: Final = ("shape", "fill", "stroke", "strokeDash")


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendEntry:
    """An entry of a legend: its text and the look of its symbol."""

    label: str
    shape: str
    """A name in `SHAPES`, or two that are joined by ``+``."""
    fill: str = "transparent"
    stroke: str = "transparent"
    dash: Sequence[float] = (1, 0)


def layer(mark: str, encoding: Spec, rows: Iterable[Row] | None = None, **look: Any) -> Spec:
    """Return a layer of marks; without `rows` its data are those of the layers around it."""
    spec: Spec = {"mark": {"type": mark, "clip": True, **look}, "encoding": encoding}
    return spec if rows is None else {"data": {"values": list(rows)}, **spec}


def group(layers: Sequence[Spec], rows: Iterable[Row]) -> Spec:
    """Return layers of marks that share their data."""
    return {"data": {"values": list(rows)}, "layer": list(layers)}


def field(name: str, **more: Any) -> Spec:
    """Return the encoding of a channel by a quantitative field."""
    return {"field": name, "type": "quantitative", **more}


def pixels(name: str) -> Spec:
    """Return the encoding of a place or an angle by a field in pixels or degrees."""
    return {"field": name, "type": "quantitative", "scale": None, "axis": None}


def as_it_is(name: str) -> Spec:
    """Return the encoding of a colour or a text by a field that has it."""
    return {"field": name, "type": "nominal", "scale": None}


def tooltip(texts: Mapping[str, str], numbers: Mapping[str, str]) -> list[Spec]:
    """Return the lines of a tooltip: titles by the names of fields with texts, and of those with numbers."""
    lines = [{"field": name, "type": "nominal", "title": title} for name, title in texts.items()]
    return lines + [field(name, title=title, format=_FORMAT) for name, title in numbers.items()]


def axis_of(axis: ChartAxis, *, highest: float | None = None, **more: Any) -> Spec:
    """Return scale, title and labels of a channel on a numeric axis, which Vega fits to the values.

    With `highest`, a linear axis begins at 0 and ends above that. The axis's own limits win.
    """
    scale: Spec = {"nice": False}
    drawn: Spec = {}
    low, high = axis.low, axis.high
    if axis.log:
        scale["type"] = "log"
        drawn = {"format": _FORMAT, "labelSeparation": 6}
    else:
        scale["zero"] = False
    if axis.linear_to is not None:
        scale |= {"type": "symlog", "constant": axis.linear_to}
        far = [axis.linear_to * step * 10.0**power for power in range(5) for step in (1, 2, 5)]
        values = [-value for value in far[::-1]] + [0.0, *far]
        drawn = {
            "values": values,
            "format": _FORMAT,
            "labelBound": True,
            "ticks": False,
            "labelOverlap": True,
        }
    if highest is not None and not axis.log:
        low, high = low or 0.0, _AIR * highest or 1.0 if high is None else high
    ends = {"domainMin": low, "domainMax": high}
    limits = {name: end for name, end in ends.items() if end is not None}
    scale |= limits or {"padding": _ROOM}
    return {"scale": scale, "title": axis.label or None, "axis": {**drawn, **more}}


def with_room(axis: ChartAxis, values: Sequence[float]) -> ChartAxis:
    """Return a linear axis that begins where it must and ends a little beyond the values."""
    if axis.low is None or axis.high is not None or axis.log or axis.linear_to is not None or not values:
        return axis
    return axis.model_copy(update={"high": max(values) + _BEYOND * (max(values) - axis.low)})


def share_of(value: float, reach: tuple[float, float], *, is_log: bool) -> float:
    """Return where a value stands between two ends, from 0 to 1."""
    low, high = reach
    if is_log:
        value, low, high = (math.log(max(each, 1e-300)) for each in (value, low, high))
    return (value - low) / (high - low) if high > low else 0.0


def places(names: Sequence[str], title: str, *, apart: float, width: float) -> Spec:
    """Return the encoding of a channel by the field `place`: the numbers of named places.

    `apart` is the gap between two places, by their distance; `width` is that of the panel. Names that would
    touch each other are slanted.
    """
    upright, slanted = _NAME_FONTS
    longest = max((len(line) for name in names for line in name.split("\n")), default=0)
    room = width / max(len(names), 1)
    is_long = FONT_WIDTH * upright * (longest + 1) > room
    return {
        "field": "place",
        "type": "ordinal",
        "scale": {"domain": list(range(len(names))), "paddingInner": apart, "paddingOuter": apart / 2},
        "title": title or None,
        "axis": {
            "labelExpr": f"split({json.dumps(list(names))}[datum.value], '\\n')",
            "labelOverlap": False,
            "labelAngle": 0 if not is_long else -20 if room > _SLANTED_APART else -45,
            "labelFontSize": slanted if is_long else upright,
        },
    }


def zoomable(layer: Spec, name: str, encodings: Sequence[Direction] = ("x", "y")) -> Spec:
    """Return a layer whose axes are movable and stretchable; a double click resets them.

    `name` is unique within the picture.
    """
    zoom = {"type": "interval", "zoom": "wheel![event.ctrlKey]", "encodings": list(encodings)}
    return {**layer, "params": [{"name": name, "select": zoom, "bind": "scales"}]}


def legend(entries: Sequence[LegendEntry], width: float) -> list[Spec]:
    """Return a layer that draws nothing but a legend above the panel, in as many columns as fit into it."""
    named = [entry for entry in entries if entry.label]
    if not named:
        return []
    room = int((width - _LEGEND_SYMBOL) / (FONT_WIDTH * _LEGEND_FONT))
    labels = ["\n".join(textwrap.wrap(entry.label, room, break_long_words=False)) for entry in named]
    widths = [
        _LEGEND_SYMBOL + FONT_WIDTH * _LEGEND_FONT * max(map(len, label.split("\n"))) for label in labels
    ]
    columns = next((count for count in range(len(labels), 1, -1) if _legend_width(widths, count) <= width), 1)
    legend: Spec = {
        "orient": "top",
        "direction": "horizontal",
        "columns": columns,
        "title": None,
        "symbolSize": 60,
        "symbolStrokeWidth": 1.3,
        "labelExpr": "split(datum.label, '\\n')",
        "symbolOpacity": 1,
        "labelOffset": 10,
        "columnPadding": 12,
        "rowPadding": 2,
        "offset": 8,
    }
    looks: dict[str, list[Any]] = {
        "shape": ["".join(SHAPES[part] for part in entry.shape.split("+")) for entry in named],
        "fill": [entry.fill for entry in named],
        "stroke": [entry.stroke for entry in named],
        "strokeDash": [list(entry.dash) for entry in named],
    }
    encoding = {
        channel: {
            "field": "label",
            "type": "nominal",
            "scale": {"domain": labels, "range": looks[channel]},
            "legend": legend,
        }
        for channel in _LEGEND_CHANNELS
    }
    # Vega-Lite draws legends of encodings only; marks of size 0 are invisible.
    rows = [{"label": label} for label in labels]
    return [layer("point", {**encoding, "size": {"value": 0}}, rows)]


def _legend_width(widths: Sequence[float], columns: int) -> float:
    """Return the width of a legend that is filled row by row."""
    return sum(max(widths[column::columns]) for column in range(columns))


INDEPENDENT: Final[Spec] = {"scale": dict.fromkeys((*_LEGEND_CHANNELS, "color", "xOffset"), "independent")}
"""Lets each panel of a picture have its own legend and its own boxes."""


def reference_lines(
    lines: Sequence[Reference], axes: Mapping[str, Spec], colours: Mapping[str, str] = NO_COLOURS
) -> list[Spec]:
    """Return reference lines; `axes` has the channels' axes, `colours` those of curves by their labels."""
    looks = {entry.label: entry for entry in reference_entries(lines, colours)}
    return [
        layer(
            "rule",
            {
                line.axis: field("value", **axes[line.axis]),
                "tooltip": tooltip({"label": "line"}, {"value": "at"}),
            },
            [{"label": line.label, "value": line.value}],
            color=looks[line.label].stroke,
            strokeDash=looks[line.label].dash,
            strokeWidth=1.3,
        )
        for line in lines
    ]


def reference_entries(
    lines: Sequence[Reference], colours: Mapping[str, str] = NO_COLOURS
) -> list[LegendEntry]:
    """Return the legend entries of reference lines; lines of one label share one.

    A line that belongs to a curve has its colour and is dashed.
    """
    labels = {line.label: line.curve for line in lines}
    return [
        line_entry(label, colours[curve], _OF_CURVE)
        if curve
        else line_entry(label, _LINES[number % len(_LINES)], _DASHES[number % len(_DASHES)])
        for number, (label, curve) in enumerate(labels.items())
    ]


def line_entry(label: str, colour: str, dash: Sequence[float] = (1, 0)) -> LegendEntry:
    """Return the legend entry of a line."""
    return LegendEntry(label=label, shape="line", stroke=colour, dash=dash)


PRINTED: Final[Spec] = {
    "shape": SHAPES["diamond"],
    "fill": "white",
    "stroke": PAPER,
    "strokeWidth": 1.6,
    "size": 64,
    "opacity": 1,
}
"""Marker of a number that the paper prints: larger than our bullet."""
PRINTED_ENTRY: Final[Mapping[str, Any]] = {"shape": "diamond", "fill": "white", "stroke": PAPER}
