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
from evaluation.pictures.boxes import draw_boxes
from evaluation.pictures.canvas import canvas, footnote, title_of
from evaluation.pictures.panels import draw_heatmap, draw_histogram, draw_lines, draw_points
from evaluation.result import FigureResult

_ROW_INCHES: Final = {1: 3.5, 2: 2.9}
_NARROW_ROW_INCHES: Final = 2.4
_LEFT: Final = 0.085
_RIGHT: Final = 0.915
_BETWEEN_COLUMNS: Final = 0.1
_BETWEEN_ROWS_INCHES: Final = 0.95
"""Room between rows of panels, for the labels of the upper one and the legend of the lower one."""


def draw_chart(result: FigureResult, chart: Chart, captioned: bool) -> Figure:
    """All panels with title and claims."""
    columns = min(chart.columns, len(chart.panels))
    rows = math.ceil(len(chart.panels) / columns)
    row_inches = _ROW_INCHES.get(columns, _NARROW_ROW_INCHES)
    inches = rows * row_inches + (rows - 1) * _BETWEEN_ROWS_INCHES
    figure, (bottom, height, whole) = canvas(
        result, inches, captioned=captioned, axis_inches=0.62, footnote=True
    )
    gap = _BETWEEN_COLUMNS + (0.04 if any(_has_right_axis(panel) for panel in chart.panels) else 0)
    width = (_RIGHT - _LEFT - (columns - 1) * gap) / columns
    for number, panel in enumerate(chart.panels):
        row, column = divmod(number, columns)
        top = bottom + height - row * (row_inches + _BETWEEN_ROWS_INCHES) / whole
        place = (_LEFT + column * (width + gap), top - row_inches / whole, width, row_inches / whole)
        axes = figure.add_axes(place)
        if panel.title:
            axes.set_title(panel.title, fontsize=8.5, fontweight="normal", pad=26, loc="left")
        _draw(figure, axes, panel)
    if captioned:
        figure.text(_LEFT, 1 - 0.22 / whole, title_of(result), fontsize=10.5, fontweight="bold", va="center")
    told = f"{chart.caption}, " if chart.caption else ""
    footnote(figure, f"{told}{result.setting} mode")
    return figure


def _has_right_axis(panel: Panel) -> bool:
    return isinstance(panel, HeatPanel) or (isinstance(panel, BoxPanel) and panel.second is not None)


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
