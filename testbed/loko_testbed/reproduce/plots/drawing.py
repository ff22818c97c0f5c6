"""Drawings of boxes, lines, arrows and texts as Vega-Lite specifications, in pixels from the upper left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loko_testbed.reproduce.plots.marks import Row, Spec, as_it_is, layer, pixels
from loko_testbed.reproduce.plots.rendering import png_of, svg_of
from loko_testbed.reproduce.plots.theme import EDGE, FONT_WIDTH, WHOLE

Point = tuple[float, float]
Line = tuple[Point, Point]
HEAD: Final = "M0,0L-2,-.7L-2,.7Z"
"""Path of an arrow's head that points to the right, with its tip at the origin."""
_FONT: Final = 11
"""Font size of a box's text, in pixels."""
_LINE_HEIGHT: Final = 1.25
"""Height of a line of text by that of the font."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A text in a box around its middle."""

    middle: Point
    text: str
    fill: str = "white"
    stroke: str = EDGE
    padding: float = 6

    @property
    def width(self) -> float:
        """Width in pixels: that of the longest line, as far as it is known without the font."""
        return 1.1 * FONT_WIDTH * _FONT * max(map(len, self.text.split("\n"))) + 2 * self.padding

    @property
    def height(self) -> float:
        """Height in pixels."""
        return _LINE_HEIGHT * _FONT * (self.text.count("\n") + 1) + 2 * self.padding


def drawing(layers: Iterable[Spec]) -> Spec:
    """Return a whole picture; it becomes as large as what is drawn."""
    return {**WHOLE, "width": 1, "height": 1, "layer": list(layers)}


def texts(placed: Iterable[tuple[Point, str]], *, font: float = _FONT, **look: Any) -> Spec:
    """Return texts around their middles, or where `look` aligns them."""
    height = _LINE_HEIGHT * font
    rows = [{"x": x, "y": y - text.count("\n") * height / 2, "text": text} for (x, y), text in placed]
    encoding = {"x": pixels("x"), "y": pixels("y"), "text": as_it_is("text")}
    look = {"baseline": "middle", "color": EDGE, **look}
    return layer("text", encoding, rows, fontSize=font, lineBreak="\n", lineHeight=height, clip=False, **look)


def lines(ends: Iterable[Line], **look: Any) -> Spec:
    """Return straight lines."""
    rows = [{"x": x, "y": y, "x2": x2, "y2": y2} for (x, y), (x2, y2) in ends]
    encoding = {"x": pixels("x"), "y": pixels("y"), "x2": {"field": "x2"}, "y2": {"field": "y2"}}
    return layer("rule", encoding, rows, clip=False, **{"color": EDGE, **look})


def arrows(ends: Iterable[Line], **look: Any) -> list[Spec]:
    """Return lines with heads at their second ends."""
    ends = list(ends)
    heads = [
        {"x": x2, "y": y2, "angle": math.degrees(math.atan2(y2 - y, x2 - x))} for (x, y), (x2, y2) in ends
    ]
    encoding = {"x": pixels("x"), "y": pixels("y"), "angle": pixels("angle")}
    drawn: Spec = {"shape": HEAD, "filled": True, "opacity": 1, "size": 64, "color": EDGE, "clip": False}
    return [lines(ends, **look), layer("point", encoding, heads, **drawn)]


def dots(places: Iterable[Point], **look: Any) -> Spec:
    """Return a marker at each place."""
    rows = [{"x": x, "y": y} for x, y in places]
    look = {"stroke": EDGE, "opacity": 1, "clip": False, **look}
    return layer("point", {"x": pixels("x"), "y": pixels("y")}, rows, **look)


def frames(rows: Iterable[Row], **look: Any) -> Spec:
    """Return rectangles with the fields `x`, `y`, `x2`, `y2`, `fill` and `stroke`."""
    ends = {"x": pixels("x"), "y": pixels("y"), "x2": {"field": "x2"}, "y2": {"field": "y2"}}
    colours = {"fill": as_it_is("fill"), "stroke": as_it_is("stroke")}
    return layer("rect", ends | colours, rows, clip=False, **look)


def boxes(placed: Sequence[Box], **look: Any) -> list[Spec]:
    """Return boxes with their texts."""
    rows = [
        {
            "x": box.middle[0] - box.width / 2,
            "x2": box.middle[0] + box.width / 2,
            "y": box.middle[1] - box.height / 2,
            "y2": box.middle[1] + box.height / 2,
            "fill": box.fill,
            "stroke": box.stroke,
        }
        for box in placed
    ]
    return [frames(rows, **look), texts([(box.middle, box.text) for box in placed], font=_FONT)]


def write(spec: Spec, path: Path) -> None:
    """Write a drawing to `path` as SVG, and beside it as PNG."""
    drawn = svg_of(spec)
    path.with_suffix(".svg").write_bytes(drawn)
    path.with_suffix(".png").write_bytes(png_of(drawn))
