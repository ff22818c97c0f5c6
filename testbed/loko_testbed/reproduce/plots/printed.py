"""Marks of the numbers that the paper prints, at the places of their findings in a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loko_testbed.reproduce.chart import ChartAxis, FindingPlace
from loko_testbed.reproduce.plots.annotations import Annotations
from loko_testbed.reproduce.plots.marks import (
    PRINTED,
    PRINTED_ENTRY,
    LegendEntry,
    Spec,
    field,
    layer,
    tooltip,
)
from loko_testbed.reproduce.plots.theme import PAPER

_AIR: Final = 1.1
"""Ratio of an axis's end to the printed number that lies beyond its own limits."""
_LINE: Final[Spec] = {"color": PAPER, "strokeDash": [1.5, 2], "strokeWidth": 1.4}
_MOST_TEXTS: Final = 4
"""Most numbers that a legend's entry repeats."""


@dataclass(frozen=True, slots=True)
class PrintedMark:
    """A number that the paper prints, in the unit of its axis, and its place in a panel."""

    place: FindingPlace
    text: str
    low: float
    high: float
    """Upper end of a printed range; equal to `low` for a single number."""

    @property
    def shape(self) -> str:
        """Kind of mark: ``cell``, ``line`` over the whole panel, ``range``, or ``point``."""
        if self.place.of == "cell":
            return "cell"
        if (self.place.y if self.place.of == "x" else self.place.x) is None:
            return "line"
        return "point" if self.low == self.high else "range"


def marks_of(places: Sequence[FindingPlace], others: Annotations) -> list[PrintedMark]:
    """Return the marks of a panel: its places whose findings the paper prints a number of."""
    marks = []
    for place in places:
        printed = others.printed.get(place.finding)
        if printed is not None and printed.value is not None:
            ends = (printed.value, printed.value if printed.high is None else printed.high)
            low, high = sorted(place.scale * end + place.offset for end in ends)
            marks.append(PrintedMark(place, f"{printed.text} {place.words}".rstrip(), low, high))
    return marks


def reaching(axis: ChartAxis, of: str, marks: Sequence[PrintedMark]) -> ChartAxis:
    """Return an axis whose own limits include all marks on it."""
    on_it = [mark for mark in marks if mark.place.of == of]
    ends: dict[str, float] = {}
    if axis.high is not None and (beyond := max((mark.high for mark in on_it), default=0.0)) > axis.high:
        ends["high"] = _AIR * beyond
    if axis.low is not None and (before := min((mark.low for mark in on_it), default=axis.low)) < axis.low:
        ends["low"] = before / _AIR
    return axis.model_copy(update=ends)


def layers_of(marks: Sequence[PrintedMark], axes: Mapping[str, Spec], *, across: str = "x") -> list[Spec]:
    """Return the layers of marks of one axis; `axes` has the channels' axes.

    `across` is the field of positions on the horizontal axis: that of named places, where there are such.
    """
    layers = []
    for mark in marks:
        of = "x" if mark.place.of == "x" else "y"
        ends = dict.fromkeys((mark.low, mark.high))
        tips = tooltip({"text": "paper"}, {})
        if mark.shape == "line":
            rows: list[dict[str, Any]] = [{of: end, "text": mark.text} for end in ends]
            layers.append(layer("rule", {of: field(of, **axes[of]), "tooltip": tips}, rows, **_LINE))
            continue
        x = {"field": across, **axes["x"]} if across != "x" else field("x", **axes["x"])
        at = {"x": x, "y": field("y", **axes["y"]), "tooltip": tips}
        position = mark.place.y if of == "x" else mark.place.x
        other, name = ("y", "x") if of == "x" else (across, "y")
        rows = [{name: end, other: position, "text": mark.text} for end in ends]
        if mark.shape == "range":
            layers.append(layer("line", at, rows, color=PAPER, strokeWidth=1.4))
        layers.append(layer("point", at, rows, **PRINTED, clip=False))
    return layers


def cell_frames(
    marks: Sequence[PrintedMark], x_names: Sequence[str], y_names: Sequence[str], xy: Spec
) -> list[Spec]:
    """Return frames around the cells of a heatmap that have a number in the paper, with a white rim."""
    rows = [
        {"x": x_names[int(mark.place.x or 0)], "y": y_names[int(mark.place.y or 0)], "text": mark.text}
        for mark in marks
    ]
    encoding = {"x": xy["x"], "y": xy["y"], "tooltip": tooltip({"text": "paper"}, {})}
    frame: Spec = {"filled": False, "clip": False}
    return [
        layer("rect", encoding, rows, stroke=colour, strokeWidth=width, **frame)
        for colour, width in (("white", 5), (PAPER, 2.5))
    ]


def in_words(marks: Sequence[PrintedMark]) -> str:
    """Return the paper's words on all marks, if these are few."""
    words = dict.fromkeys(mark.text for mark in marks)
    return f"paper: {'; '.join(words)}" if len(words) <= _MOST_TEXTS else "printed in the paper"


def entries_of(marks: Sequence[PrintedMark]) -> list[LegendEntry]:
    """Return a legend's entries: one for points and ranges, one for lines."""
    lines = [mark for mark in marks if mark.shape == "line"]
    points = [mark for mark in marks if mark.shape != "line"]
    line: Mapping[str, Any] = {"shape": "line", "stroke": PAPER, "dash": _LINE["strokeDash"]}
    looks = ((points, PRINTED_ENTRY), (lines, line))
    return [LegendEntry(label=in_words(alike), **look) for alike, look in looks if alike]
