"""Tables as Vega-Lite specifications."""

from __future__ import annotations

import re
from typing import Final

from loko_testbed.reproduce.plots.annotations import annotations_of
from loko_testbed.reproduce.plots.caption import picture
from loko_testbed.reproduce.plots.marks import Spec, as_it_is, layer, pixels
from loko_testbed.reproduce.plots.theme import PAPER, WIDTH
from loko_testbed.reproduce.result import FigureResult, TableResult

_ROW: Final = 26
_LINE: Final = 13
"""Height that a row with numbers of the paper has in addition, in pixels."""
_FONT: Final = 10.5
_LARGE: Final = 10_000
_EDGE: Final = "#c0c6d0"


def table_spec(result: FigureResult, table: TableResult, *, captioned: bool) -> Spec:
    """Return a table, with title and claims if `captioned`."""
    cells = [[value if isinstance(value, str) else _number(value) for value in row] for row in table.rows]
    heads = [re.sub(r"_(ms|mbps|kB)$", r" [\1]", name) for name in table.columns]
    heads = [name.replace("_", " ").replace("mbps", "Mbit/s") for name in heads]
    printed = annotations_of(result).printed
    names = table.findings or [[""] * len(table.columns) for _ in table.rows]
    papers = [[f"paper {printed[name].text}" if name in printed else "" for name in row] for row in names]
    # As wide as their longest text, but for a margin; scaled to the width of the picture.
    widths = [2.0 + max(map(len, column)) for column in zip(heads, *cells, *papers, strict=True)]
    ends = [WIDTH * sum(widths[:at]) / sum(widths) for at in range(len(widths) + 1)]
    font = min(_FONT, 1.7 * WIDTH / sum(widths))
    blank = [""] * len(heads)
    heights = [_ROW + (_LINE if any(texts) else 0) for texts in [blank, *papers]]
    tops = [sum(heights[:row]) for row in range(len(heights) + 1)]
    rows = [
        {
            "x": ends[column],
            "x2": ends[column + 1],
            "y": tops[row],
            "y2": tops[row + 1],
            "middle": (ends[column] + ends[column + 1]) / 2,
            "line": (tops[row] + tops[row + 1] - (_LINE if paper else 0)) / 2,
            "below": (tops[row] + tops[row + 1] + _LINE) / 2,
            "text": text,
            "paper": paper,
            "colour": "white" if row else "#eef1f6",
        }
        for row, (texts, below) in enumerate(zip([heads, *cells], [blank, *papers], strict=True))
        for column, (text, paper) in enumerate(zip(texts, below, strict=True))
    ]
    of_paper = [row for row in rows if row["paper"]]

    fill = {"fill": as_it_is("colour")}
    box = {"x": pixels("x"), "x2": {"field": "x2"}, "y": pixels("y"), "y2": {"field": "y2"}, **fill}
    text = {"x": pixels("middle"), "y": pixels("line"), "text": as_it_is("text")}
    below = {"x": pixels("middle"), "y": pixels("below"), "text": as_it_is("paper")}
    layers = [layer("rect", box, rows, stroke=_EDGE, clip=False), layer("text", text, rows, fontSize=font)]
    layers.append(layer("text", below, of_paper, fontSize=0.9 * font, color=PAPER))
    view = {"width": WIDTH, "height": tops[-1], "layer": layers}
    return picture(result, [view], "", captioned=captioned)


def _number(value: float) -> str:
    """Format a number with four significant digits; a large one without an exponent."""
    return f"{value:.4g}" if abs(value) < _LARGE else f"{value:.0f}"
