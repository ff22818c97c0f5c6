"""The texts around the panels of a picture: title, claims, and a line that says how much was measured."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from typing import Final

from loko_testbed.reproduce.folder import short_name
from loko_testbed.reproduce.plots.marks import Spec, as_it_is, layer, pixels
from loko_testbed.reproduce.plots.theme import FONT_WIDTH, HOLDS, REFERENCE, SOFT, WHOLE, WIDTH
from loko_testbed.reproduce.result import ClaimResult, FigureResult

_LEFT: Final = -48
"""Where texts begin: left of the panels, below the names of their axis."""
_RIGHT: Final = WIDTH + 48
_COLUMNS: Final = (_LEFT + 16, 250, 392, _RIGHT)
"""Left ends of the three texts of a claim, and the right end of the last."""
_FONT: Final = 9.5
_LINE: Final = 12
_BETWEEN: Final = 6
"""Height of a line, and of the gap between two claims, in pixels."""
_TITLE_FONT: Final = 14
_FOOTNOTE_FONT: Final = 8.5
_MARKS: Final[Mapping[bool | None, tuple[str, str]]] = {
    True: ("M-4,0L-1,3.5L4,-4", HOLDS),
    False: ("M-3.5,-3.5L3.5,3.5M-3.5,3.5L3.5,-3.5", REFERENCE),
    None: ("M-3.5,0L3.5,0", SOFT),
}
"""Path and colour of the mark of a claim that holds, does not hold, or (None) is not testable here."""


def picture(result: FigureResult, panels: list[Spec], footnote: str, *, captioned: bool) -> Spec:
    """Return the whole picture, with title and claims if `captioned`."""
    views = [*panels, *_foot(result.claims if captioned else [], footnote)]
    spec: Spec = {**WHOLE, "spacing": 14, "vconcat": views}
    if captioned:
        room = int((_RIGHT - _LEFT) / (_TITLE_FONT * FONT_WIDTH * 1.1))
        lines = textwrap.wrap(title_of(result), room)
        spec["title"] = {"text": lines, "fontSize": _TITLE_FONT, "offset": 12}
    return spec


def title_of(result: FigureResult) -> str:
    """Return the title of a result's picture."""
    name = re.sub(r"(?<![a-z])sec(?=\d)", "Sec. ", short_name(result.name))
    name = name.replace("fig", "Fig. ").replace("table", "Table ")
    return f"{name}: {result.title}"


def _foot(claims: list[ClaimResult], footnote: str) -> list[Spec]:
    """Return the claims as rows, and the footnote below them on the right; empty without either."""
    texts: list[Spec] = []
    marks: list[Spec] = []
    top = 0
    for claim in claims:
        path, colour = _MARKS[claim.holds]
        if claim.holds and claim.kind != "predicted":
            colour = SOFT  # only predictions count as reproduction
        marks.append({"y": top + 4, "path": path, "colour": colour})
        kind = "" if claim.kind == "predicted" else f" [{claim.kind}]"
        cells = (f"{claim.claim}{kind}", f"paper: {claim.paper}", f"here: {claim.here}")
        heights = []
        for number, (cell, ink) in enumerate(zip(cells, ("black", "#444444", colour), strict=True)):
            room = int((_COLUMNS[number + 1] - _COLUMNS[number] - 6) / (_FONT * FONT_WIDTH))
            lines = textwrap.wrap(cell, room)
            heights.append(len(lines))
            texts.append({"x": _COLUMNS[number], "y": top, "text": "\n".join(lines), "colour": ink})
        top += max(heights) * _LINE + _BETWEEN
    at, y = {"x": pixels("x")}, {"y": pixels("y")}
    look = {"text": as_it_is("text"), "color": as_it_is("colour")}
    shape = {"shape": as_it_is("path"), "color": as_it_is("colour")}
    lines = textwrap.wrap(footnote, int((_RIGHT - _LEFT) / (_FOOTNOTE_FONT * FONT_WIDTH)))
    last = [{"x": _RIGHT, "y": top, "text": "\n".join(lines), "colour": SOFT}] if lines else []
    common = {"baseline": "top", "lineBreak": "\n", "clip": False}
    layers = [layer("text", at | y | look, texts, align="left", fontSize=_FONT, lineHeight=_LINE, **common)]
    layers.append(
        layer("point", {"x": {"value": _LEFT + 4}} | y | shape, marks, size=4, strokeWidth=1.6, clip=False)
    )
    layers.append(layer("text", at | y | look, last, align="right", fontSize=_FOOTNOTE_FONT, **common))
    if not claims and not lines:
        return []
    return [{"width": WIDTH, "height": max(1, top + _LINE * len(lines)), "layer": layers}]
