"""Draw charts: grids of panels of several kinds."""

from __future__ import annotations

from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from loko_testbed.reproduce.chart import (
    BoxPanel,
    Chart,
    HeatPanel,
    HistogramPanel,
    LinePanel,
    Panel,
)
from loko_testbed.reproduce.plots.annotations import Annotations, annotations_of, caption_of
from loko_testbed.reproduce.plots.boxes import boxes_legend, draw_boxes, names_are_slanted
from loko_testbed.reproduce.plots.canvas import LEFT, RIGHT, WIDTH_INCHES, canvas, footnote
from loko_testbed.reproduce.plots.legend import legend_above, legend_inches
from loko_testbed.reproduce.plots.panels import (
    draw_heatmap,
    draw_histogram,
    draw_lines,
    draw_points,
    histogram_legend,
    lines_legend,
    points_legend,
)
from loko_testbed.reproduce.result import FigureResult

_ROW_INCHES: Final = {1: 3.5, 2: 2.9}
_NARROW_ROW_INCHES: Final = 2.4
_BETWEEN_COLUMNS: Final = 0.11
_TITLE_INCHES: Final = 0.22
_BELOW_INCHES: Final = 0.62
_BELOW_SLANTED_INCHES: Final = 0.85
_BELOW_TURNED_INCHES: Final = 1.1
"""Room below a panel for its axis: with names of places that are level, slanted, and vertical."""
_NAMES_BESIDE: Final = 0.06
"""Room beside a heatmap for the names of its rows, as a fraction of the figure's width."""


def draw_chart(result: FigureResult, chart: Chart, captioned: bool) -> Figure:
    """Draw all panels of a chart, with title and claims if `captioned`."""
    others = annotations_of(result)
    columns = min(chart.columns, len(chart.panels))
    rows = [chart.panels[at : at + columns] for at in range(0, len(chart.panels), columns)]
    row_inches = _ROW_INCHES.get(columns, _NARROW_ROW_INCHES)
    width = (RIGHT - LEFT - (columns - 1) * _BETWEEN_COLUMNS) / columns
    heads = [max(_head_inches(panel, others, width * WIDTH_INCHES) for panel in row) for row in rows]
    below = max(map(_below_inches, chart.panels))
    figure, (bottom, height, whole) = canvas(
        result,
        len(rows) * row_inches + (len(rows) - 1) * below + sum(heads[1:]),
        captioned=captioned,
        axis_inches=below,
        footnote=True,
        head_inches=heads[0],
    )
    top = bottom + height
    for row, head_inches in zip(rows, [0.0, *heads[1:]], strict=True):
        top -= head_inches / whole
        for column, panel in enumerate(row):
            indent = _NAMES_BESIDE if isinstance(panel, HeatPanel) and panel.y_names else 0.0
            left = LEFT + column * (width + _BETWEEN_COLUMNS) + indent
            taken = _share(panel, columns) * width - indent
            axes = figure.add_axes((left, top - row_inches / whole, taken, row_inches / whole))
            _draw_panel(axes, panel, others, width * WIDTH_INCHES)
        top -= (row_inches + below) / whole
    told = f"{chart.caption}, " if chart.caption else ""
    footnote(figure, f"{told}{result.setting} mode{caption_of(others.bands)}")
    return figure


def _head_inches(panel: Panel, others: Annotations, width_inches: float) -> float:
    """Return the room above a panel for its legend and title."""
    return legend_inches(_legend(panel, others), width_inches) + (_TITLE_INCHES if panel.title else 0.0)


def _draw_panel(axes: Axes, panel: Panel, others: Annotations, width_inches: float) -> None:
    legend = _legend(panel, others)
    if panel.title:
        pad = 72 * legend_inches(legend, width_inches) + 3
        axes.set_title(panel.title, fontsize=8.5, pad=pad, loc="left")
    if not (isinstance(panel, BoxPanel) and panel.second is not None):
        axes.spines["right"].set_visible(False)
    _draw(axes, panel, others)
    legend_above(axes, legend, width_inches)


def _below_inches(panel: Panel) -> float:
    if isinstance(panel, HeatPanel) and panel.x_names:
        return _BELOW_TURNED_INCHES
    is_slanted = isinstance(panel, BoxPanel) and names_are_slanted(panel)
    return _BELOW_SLANTED_INCHES if is_slanted else _BELOW_INCHES


def _share(panel: Panel, columns: int) -> float:
    """Return the fraction of its column's width that a panel takes; the rest is for what is on its right."""
    if isinstance(panel, HeatPanel):
        return 0.88 if columns == 1 else 0.84
    if isinstance(panel, HistogramPanel) and panel.overflow is not None:
        return 0.88 if columns == 1 else 0.82
    return 0.88 if columns > 1 and isinstance(panel, BoxPanel) and panel.second is not None else 1.0


def _draw(axes: Axes, panel: Panel, others: Annotations) -> None:
    if isinstance(panel, BoxPanel):
        draw_boxes(axes, panel)
    elif isinstance(panel, LinePanel):
        draw_lines(axes, panel)
    elif isinstance(panel, HeatPanel):
        draw_heatmap(axes, panel)
    elif isinstance(panel, HistogramPanel):
        draw_histogram(axes, panel, others)
    else:
        draw_points(axes, panel)


def _legend(panel: Panel, others: Annotations) -> list[Any]:
    """Return the entries of the legend above a panel."""
    if isinstance(panel, BoxPanel):
        return boxes_legend(panel)
    if isinstance(panel, LinePanel):
        return lines_legend(panel)
    if isinstance(panel, HeatPanel):
        return []
    if isinstance(panel, HistogramPanel):
        return histogram_legend(panel, others)
    return points_legend(panel)
