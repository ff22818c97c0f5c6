"""Pictures of charts: a grid of panels, each drawn by its kind."""

from __future__ import annotations

import math
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.chart import (
    BoxPanel,
    Chart,
    HeatPanel,
    HistogramPanel,
    LinePanel,
    Panel,
    ScatterPanel,
)
from evaluation.pictures.boxes import draw_boxes, names_are_slanted
from evaluation.pictures.canvas import canvas, footnote, title_of, title_points
from evaluation.pictures.panels import draw_heatmap, draw_histogram, draw_lines, draw_points
from evaluation.result import FigureResult

_ROW_INCHES: Final = {1: 3.5, 2: 2.9}
_NARROW_ROW_INCHES: Final = 2.4
_LEFT: Final = 0.085
_RIGHT: Final = 0.915
_BETWEEN_COLUMNS: Final = 0.11
_TITLES_INCHES: Final = 0.2
_TITLE_PAD: Final = 27
"""Above the plot: the legend comes between."""
_BETWEEN_ROWS_INCHES: Final = 1.0
"""Room between rows of panels, for the labels of the upper one and the legend of the lower one."""


def draw_chart(result: FigureResult, chart: Chart, captioned: bool) -> Figure:
    """All panels with title and claims."""
    columns = min(chart.columns, len(chart.panels))
    rows = math.ceil(len(chart.panels) / columns)
    row_inches = _ROW_INCHES.get(columns, _NARROW_ROW_INCHES)
    inches = rows * row_inches + (rows - 1) * _BETWEEN_ROWS_INCHES
    figure, (bottom, height, whole) = canvas(
        result,
        inches,
        captioned=captioned,
        axis_inches=0.85 if any(map(_has_slanted_names, chart.panels)) else 0.62,
        footnote=True,
        titles_inches=_TITLES_INCHES if any(panel.title for panel in chart.panels[:columns]) else 0.0,
    )
    width = (_RIGHT - _LEFT - (columns - 1) * _BETWEEN_COLUMNS) / columns
    for number, panel in enumerate(chart.panels):
        row, column = divmod(number, columns)
        top = bottom + height - row * (row_inches + _BETWEEN_ROWS_INCHES) / whole
        left = _LEFT + column * (width + _BETWEEN_COLUMNS)
        share = _share(panel) if columns > 1 else 1.0
        axes = figure.add_axes((left, top - row_inches / whole, share * width, row_inches / whole))
        if panel.title:
            axes.set_title(panel.title, fontsize=8.5, pad=_TITLE_PAD, loc="left")
        if not (isinstance(panel, BoxPanel) and panel.second is not None):
            axes.spines["right"].set_visible(False)
        _draw(figure, axes, panel)
    if captioned:
        title = title_of(result)
        points = title_points(title)
        figure.text(_LEFT, 1 - 0.22 / whole, title, fontsize=points, fontweight="bold", va="center")
    told = f"{chart.caption}, " if chart.caption else ""
    footnote(figure, f"{told}{result.setting} mode")
    return figure


def _has_slanted_names(panel: Panel) -> bool:
    return isinstance(panel, BoxPanel) and names_are_slanted(panel)


def _share(panel: Panel) -> float:
    """How much of its column a panel takes beside what it has on the right."""
    if isinstance(panel, HeatPanel):
        return 0.84
    return 0.88 if isinstance(panel, BoxPanel) and panel.second is not None else 1.0


def _draw(figure: Figure, axes: Axes, panel: Panel) -> None:
    if isinstance(panel, BoxPanel):
        draw_boxes(axes, panel)
    elif isinstance(panel, LinePanel):
        draw_lines(axes, panel)
    elif isinstance(panel, HeatPanel):
        draw_heatmap(figure, axes, panel)
    elif isinstance(panel, HistogramPanel):
        draw_histogram(axes, panel)
    else:
        draw_points(axes, panel, diagonal=isinstance(panel, ScatterPanel) and panel.diagonal)
