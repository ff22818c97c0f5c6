"""Tables as Vega-Lite specifications."""

from __future__ import annotations

import re
from typing import Final

from loko_testbed.reproduce.plots.caption import picture
from loko_testbed.reproduce.plots.marks import Spec, as_it_is, layer, pixels
from loko_testbed.reproduce.plots.theme import WIDTH
from loko_testbed.reproduce.result import FigureResult, TableResult

_ROW: Final = 26
_FONT: Final = 10.5
_EDGE: Final = "#c0c6d0"


def table_spec(result: FigureResult, table: TableResult, *, captioned: bool) -> Spec:
    """Return a table, with title and claims if `captioned`."""
    cells = [[value if isinstance(value, str) else f"{value:.4g}" for value in row] for row in table.rows]
    heads = [re.sub(r"_(ms|mbps|kB)$", r" [\1]", name) for name in table.columns]
    heads = [name.replace("_", " ").replace("mbps", "Mbit/s") for name in heads]
    # As wide as their longest text, but for a margin; scaled to the width of the picture.
    widths = [2.0 + max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    ends = [WIDTH * sum(widths[:at]) / sum(widths) for at in range(len(widths) + 1)]
    font = min(_FONT, 1.7 * WIDTH / sum(widths))
    rows = [
        {
            "x": ends[column],
            "x2": ends[column + 1],
            "y": _ROW * row,
            "y2": _ROW * (row + 1),
            "middle": (ends[column] + ends[column + 1]) / 2,
            "line": _ROW * (row + 0.5),
            "text": text,
            "colour": "white" if row else "#eef1f6",
        }
        for row, texts in enumerate([heads, *cells])
        for column, text in enumerate(texts)
    ]

    fill = {"fill": as_it_is("colour")}
    box = {"x": pixels("x"), "x2": {"field": "x2"}, "y": pixels("y"), "y2": {"field": "y2"}, **fill}
    text = {"x": pixels("middle"), "y": pixels("line"), "text": as_it_is("text")}
    layers = [layer("rect", box, rows, stroke=_EDGE, clip=False), layer("text", text, rows, fontSize=font)]
    view = {"width": WIDTH, "height": _ROW * (len(cells) + 1), "layer": layers}
    return picture(result, [view], "", captioned=captioned)
