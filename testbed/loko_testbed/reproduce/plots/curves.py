"""Panels of curves. A curve that others hide is drawn wider than they are, so that its rim is seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko_testbed.reproduce.chart import ChartAxis, ChartCurve, LinePanel, ScaledAxes
from loko_testbed.reproduce.plots.marks import (
    DASHED,
    SHAPES,
    LegendEntry,
    Spec,
    axis_of,
    field,
    group,
    layer,
    legend,
    reference_entries,
    reference_lines,
    share_of,
    tooltip,
    with_room,
    zoomable,
)
from loko_testbed.reproduce.plots.printed import PrintedMark, entries_of, layers_of, reaching
from loko_testbed.reproduce.plots.theme import COLOURS

_MARKERS: Final = tuple(SHAPES)[:9]
_DASHES: Final = ((1, 0), (5, 1.5), (1.5, 1.5), (7, 2, 1.5, 2))
"""Dashes of curves without markers."""
_FEW: Final = 8
"""At most so many different whole numbers are the labels of their axis."""
_STROKE: Final = 1.3
"""Width of a curve, in pixels."""
_BULLET: Final = 26
"""Area of a curve's marker, in square pixels."""
_WIDER: Final = 2.2
"""How much wider a curve is drawn for each one that lies upon it, in pixels."""
_MOST_BELOW: Final = 5
_NEAR: Final = 0.01
"""Distance of two curves, by the length of an axis, below which one hides the other."""
_HIDDEN: Final = 0.85
"""Share of a curve's points through which later ones pass if they hide it."""
_UPON: Final = 0.25
"""Least share of its points with which one of the curves that hide it counts."""


def line_panel(panel: LinePanel, width: float, name: str, marks: Sequence[PrintedMark] = ()) -> Spec:
    """Return curves, with error bars where they have any, and lower ones wider than those that hide them."""
    ys = [y for curve in panel.curves for y in (*curve.y, *(curve.high or [])) if y is not None]
    ys += [line.value for line in panel.references if line.axis == "y"]
    ys += [mark.high for mark in marks if mark.place.of == "y"]
    is_from_0 = panel.y.low == 0 and panel.y.linear_to is None
    xs = [x for curve in panel.curves for x in curve.x]
    axes = {
        "x": axis_of(with_room(reaching(panel.x, "x", marks), xs)),
        "y": axis_of(reaching(panel.y, "y", marks), highest=max(ys, default=0.0) if is_from_0 else None),
    }
    if not panel.x.log and all(x.is_integer() for x in xs):
        few = sorted(set(xs))
        axes["x"]["axis"] |= {"values": few, "format": "d"} if len(few) <= _FEW else {"tickMinStep": 1}
    looks = _curve_looks(panel)
    layers = [
        _curve(panel, curve, looks[number], axes, name if number == 0 else "")
        for number, curve in enumerate(panel.curves)
    ]
    colours = {curve.label: look.colour for curve, look in zip(panel.curves, looks, strict=True)}
    layers += reference_lines(panel.references, axes, colours)
    layers += layers_of(marks, axes)
    entries = [look.entry(curve.label) for curve, look in zip(panel.curves, looks, strict=True)]
    entries += [*reference_entries(panel.references, colours), *entries_of(marks)]
    layers += legend(entries, width)
    return _with_scaled(panel.scaled, layers, axes) if panel.scaled else {"layer": layers}


def _with_scaled(scaled: ScaledAxes, layers: Sequence[Spec], axes: Mapping[str, Spec]) -> Spec:
    """Return layers with axes above and on the right that show the multiplied values of the other two."""
    label = f"format({scaled.factor!r} * datum.value, '.3~r')"
    titles = {"x": ("top", scaled.x), "y": ("right", scaled.y)}
    encoding = {
        of: field(of, **{**axes[of], "title": title, "axis": {"orient": orient, "labelExpr": label}})
        for of, (orient, title) in titles.items()
    }
    shadow = layer("point", encoding, [{"x": None, "y": None}], size=0)
    own = dict.fromkeys("xy", "independent")
    return {"layer": [{"layer": list(layers)}, shadow], "resolve": {"axis": own}}


@dataclass(frozen=True, slots=True, kw_only=True)
class _CurveLook:
    """Colour, dashes, marker and width of a curve; markers or dashes tell curves apart in grey."""

    colour: str
    dash: Sequence[float]
    marker: str | None
    below: int
    """How many curves lie on it, one upon the other. It is drawn wider than they are."""

    @property
    def width(self) -> float:
        """Width of the line, in pixels."""
        return _STROKE + _WIDER * self.below

    @property
    def size(self) -> float:
        """Area of a marker, in square pixels."""
        return (math.sqrt(_BULLET) + _WIDER * self.below) ** 2

    def entry(self, label: str) -> LegendEntry:
        """Return the curve's entry in a legend."""
        shape = f"line+{self.marker}" if self.marker else "line"
        return LegendEntry(label=label, shape=shape, fill=self.colour, stroke=self.colour, dash=self.dash)


def _curve_looks(panel: LinePanel) -> list[_CurveLook]:
    plain = not any(curve.marker or curve.dashed for curve in panel.curves)
    own = [curve.label for curve in panel.curves if not curve.curve]
    colours = {label: COLOURS[number % len(COLOURS)] for number, label in enumerate(own)}
    looks: list[_CurveLook] = []
    for number, (curve, below) in enumerate(zip(panel.curves, _below(panel), strict=True)):
        looks.append(
            _CurveLook(
                colour=colours[curve.curve or curve.label],
                dash=_DASHES[number % len(_DASHES)] if plain else DASHED if curve.dashed else (1, 0),
                marker=_MARKERS[number % len(_MARKERS)] if curve.marker else None,
                below=below,
            )
        )
    return looks


def _below(panel: LinePanel) -> list[int]:
    """Return for each curve how many later ones lie upon it, one upon the other; 0 unless they hide it.

    A curve without markers, such as a fitted line, does not hide one with markers.
    """
    curves = [_shares(panel, curve) for curve in panel.curves]
    below = [0] * len(curves)
    for number in range(len(curves) - 1, -1, -1):
        upon = {
            later: _passed(curves[number], curves[later])
            for later in range(number + 1, len(curves))
            if panel.curves[later].marker or not panel.curves[number].marker
        }
        if len(curves[number]) and upon and np.any(list(upon.values()), axis=0).mean() >= _HIDDEN:
            levels = [below[later] + 1 for later, passed in upon.items() if passed.mean() >= _UPON]
            below[number] = min(max(levels, default=1), _MOST_BELOW)
    return below


def _shares(panel: LinePanel, curve: ChartCurve) -> NDArray[np.float64]:
    """Return a curve's points as shares of the axes."""
    ends = {
        "x": _reach([x for each in panel.curves for x in each.x], panel.x),
        "y": _reach([y for each in panel.curves for y in each.y if y is not None], panel.y),
    }
    shares = [
        (share_of(x, ends["x"], is_log=panel.x.log), share_of(y, ends["y"], is_log=panel.y.log))
        for x, y in zip(curve.x, curve.y, strict=True)
        if y is not None
    ]
    return np.array(shares).reshape(-1, 2)


def _passed(points: NDArray[np.float64], curve: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which points a curve passes through, both in shares of the axes."""
    near = np.zeros(len(points), dtype=bool)
    for of, value in ((0, 1), (1, 0)) if len(curve) else ():
        order = np.argsort(curve[:, of], kind="stable")
        places, values = curve[order, of], curve[order, value]
        within = (points[:, of] >= places[0] - _NEAR) & (points[:, of] <= places[-1] + _NEAR)
        near |= within & (np.abs(np.interp(points[:, of], places, values) - points[:, value]) < _NEAR)
    return near


def _reach(values: Sequence[float], axis: ChartAxis) -> tuple[float, float]:
    low = min(values, default=0.0) if axis.low is None else axis.low
    return low, max(values, default=1.0) if axis.high is None else axis.high


def _curve(
    panel: LinePanel, curve: ChartCurve, look: _CurveLook, axes: Mapping[str, Spec], zoom: str
) -> Spec:
    """Return a curve; with `zoom`, the name of the zoom, its axes are movable."""
    nothing: list[float | None] = [None] * len(curve.x)
    columns = (curve.x, curve.y, curve.low or nothing, curve.high or nothing)
    rows = [
        {"x": x, "y": y, "curve": curve.label, "at": at}
        | ({"low": low, "high": high} if y is not None and low is not None else {})
        for at, (x, y, low, high) in enumerate(zip(*columns, strict=True))
    ]
    numbers = {"x": panel.x.label, "y": panel.y.label}
    if curve.low is not None:
        numbers |= {"low": "from", "high": "to"}
    tips = {"tooltip": tooltip({"curve": "curve"} if curve.label else {}, numbers)}
    xy = {of: field(of, **axes[of]) for of in "xy"} | tips
    drawn: Spec = {"color": look.colour, "strokeWidth": look.width}
    steps: Spec = {"interpolate": "step-after"} if curve.steps else {}
    # Points that are not seen have the tooltips of curves without markers.
    seen: Spec = {"opacity": 0}
    if look.marker:
        seen = {"shape": SHAPES[look.marker], "filled": look.marker != "x", "size": look.size}
    line = layer("line", xy | {"order": field("at")}, strokeDash=look.dash, **steps, **drawn)
    layers = [zoomable(line, zoom) if zoom else line]
    if curve.low is not None:
        bar = {**xy, "y": field("low", **axes["y"]), "y2": {"field": "high"}}
        layers.append(layer("errorbar", bar, color=look.colour, ticks={"size": 6}))
    layers.append(layer("point", xy, color=look.colour, **{"opacity": 1, **seen}))
    return group(layers, rows)
