"""Draw tables."""

from __future__ import annotations

import re

from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from loko_testbed.reproduce.plots.canvas import LEFT, RIGHT, canvas
from loko_testbed.reproduce.result import FigureResult, TableResult


def draw_table(result: FigureResult, table: TableResult, captioned: bool) -> Figure:
    """Draw a table, with title and claims if `captioned`."""
    figure, (bottom, height, _) = canvas(
        result, 0.3 * (len(table.rows) + 1), captioned=captioned, footnote=False
    )
    axes = figure.add_axes((LEFT, bottom, RIGHT - LEFT, height))
    axes.axis("off")
    cells = [[value if isinstance(value, str) else f"{value:.4g}" for value in row] for row in table.rows]
    heads = [re.sub(r"_(ms|mbps|kB)$", r" [\1]", name) for name in table.columns]
    heads = [name.replace("_", " ").replace("mbps", "Mbit/s") for name in heads]
    # As wide as their longest text, but for a margin; the box scales them to its own width.
    widths = [2.0 + max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    drawn = axes.table(cells, colLabels=heads, colWidths=widths, bbox=Bbox.unit())
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8)
    for (row, _), cell in drawn.get_celld().items():
        cell.set_edgecolor("#c0c6d0")
        cell.set_facecolor("#eef1f6" if row == 0 else "white")
    return figure
