"""Panels of lines, points, colours and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from evaluation.chart import Curve, HeatPanel, HistogramPanel, LinePanel, ScatterPanel, TimePanel
from evaluation.pictures.axes import COLOURS, is_wide, references, set_axis
from evaluation.pictures.canvas import legend_above

_IN_ONE_LINE: Final = 4
"""So many entries of a legend fit above a panel."""
_CELLS_WITH_NUMBERS: Final = 120
"""So many cells of a heatmap have room for their numbers."""
_CELL_NAMES: Final = 10
"""So many values beside an axis of a heatmap can be read."""
_NARROW: Final = 0.3
"""A heatmap below this part of the picture's width has small numbers."""
_MANY_POINTS: Final = 2000
"""So many points are drawn as an image, also in an SVG."""


def draw_lines(axes: Axes, panel: LinePanel) -> None:
    """Curves, with error bars where they have any."""
    entries = [
        _draw_curve(axes, curve, COLOURS[number % len(COLOURS)]) for number, curve in enumerate(panel.curves)
    ]
    set_axis(axes, panel.x, "x")
    set_axis(axes, panel.y, "y")
    _legend(axes, entries + references(axes, panel.references))


def _draw_curve(axes: Axes, curve: Curve, colour: str) -> Line2D:
    look: dict[str, Any] = {
        "color": colour,
        "linewidth": 1.2,
        "linestyle": "--" if curve.dashed else "-",
        "marker": "o" if curve.marker else None,
        "markersize": 3.5,
        "drawstyle": "steps-post" if curve.steps else "default",
    }
    y = np.array([np.nan if value is None else value for value in curve.y], dtype=float)
    axes.plot(curve.x, y, **look)
    if curve.low is not None and curve.high is not None:
        bars = np.maximum([y - curve.low, np.array(curve.high) - y], 0)
        axes.errorbar(curve.x, y, yerr=bars, fmt="none", ecolor=colour, elinewidth=0.9, capsize=2.5)
    return Line2D([], [], label=curve.label, **{**look, "drawstyle": "default"})


def draw_points(axes: Axes, panel: ScatterPanel | TimePanel, *, diagonal: bool) -> None:
    """Clouds of points."""
    small = isinstance(panel, TimePanel)
    entries = []
    for number, cloud in enumerate(panel.clouds):
        look: dict[str, Any] = {
            "color": COLOURS[number % len(COLOURS)],
            "marker": "." if small else "ox^sdv"[number % 6],
            "markersize": 2 if small else 4,
            "linestyle": "none",
            "markerfacecolor": None if small else "none",
        }
        axes.plot(cloud.x, cloud.y, rasterized=len(cloud.x) > _MANY_POINTS, **look)
        entries.append(Line2D([], [], label=cloud.label, **{**look, "markersize": 4}))
    set_axis(axes, panel.x, "x")
    set_axis(axes, panel.y, "y")
    lines = references(axes, panel.references)
    if diagonal:
        lows, highs = zip(axes.get_xlim(), axes.get_ylim(), strict=True)
        low = min(value for value in lows if value > 0) if panel.x.log else min(lows)
        ends = (low, max(highs))
        axes.plot(ends, ends, color="black", linewidth=0.9, zorder=1)
        lines.append(Line2D([], [], color="black", linewidth=0.9, label="equal"))
    _legend(axes, entries + lines)


def draw_heatmap(figure: Figure, axes: Axes, panel: HeatPanel) -> None:
    """Cells of one size in colours, with the scale beside; cells without a value stay white."""
    cells = np.array([[np.nan if cell is None else cell for cell in row] for row in panel.cells], dtype=float)
    norm = LogNorm(panel.value.low, panel.value.high) if panel.value.log else None
    limits: dict[str, Any] = {} if norm else {"vmin": panel.value.low, "vmax": panel.value.high}
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(cells),
        cmap="viridis_r",
        norm=norm,
        rasterized=cells.size > _MANY_POINTS,
        **limits,
    )
    box = axes.get_position()
    few = cells.size <= _CELLS_WITH_NUMBERS
    if few:
        # The numbers in the cells need the room more than a scale does.
        axes.set_position((box.x0, box.y0, box.width * (1.27 if box.width < _NARROW else 1), box.height))
        _write_cells(axes, cells, mesh)
    else:
        axes.set_position((box.x0, box.y0, box.width * 0.8, box.height))
        beside = figure.add_axes((box.x0 + box.width * 0.82, box.y0, 0.015, box.height))
        figure.colorbar(mesh, cax=beside).set_label(panel.value.label)
    axes.set_title(panel.title or (panel.value.label if few else ""), fontsize=8)
    _name_cells(axes, panel.x_values, "x")
    _name_cells(axes, panel.y_values, "y")
    axes.set_xlabel(panel.x.label)
    axes.set_ylabel(panel.y.label)


def _write_cells(axes: Axes, cells: NDArray[np.float64], mesh: QuadMesh) -> None:
    """The number of each cell, light on dark and dark on light."""
    wide = axes.get_position().width > _NARROW
    size = 7 if wide else 5.4
    colours = mesh.to_rgba(cells)
    for (row, column), value in np.ndenumerate(cells):
        if not np.isnan(value):
            red, green, blue, _ = colours[row, column]
            dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
            colour = "white" if dark else "black"
            text = f"{value:.3g}".replace("0.", ".") if value < 1 else f"{value:.3g}"
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=size, color=colour)


def _name_cells(axes: Axes, values: Sequence[float], which: Literal["x", "y"]) -> None:
    """The values at the middle of the cells, as many as can be read."""
    step = -(-len(values) // _CELL_NAMES)
    places = range(0, len(values), step)
    set_ticks = axes.set_xticks if which == "x" else axes.set_yticks
    names = [f"{values[place]:g}" for place in places]
    size = 6.5 if axes.get_position().width > _NARROW else 5.4
    set_ticks([place + 0.5 for place in places], names, fontsize=size)


def draw_histogram(axes: Axes, panel: HistogramPanel) -> None:
    """Counts between edges."""
    entries = []
    for number, one in enumerate(panel.histograms):
        colour = COLOURS[number % len(COLOURS)]
        axes.stairs(one.counts, panel.edges, color=colour, fill=True, alpha=0.45)
        axes.stairs(one.counts, panel.edges, color=colour, linewidth=1.0)
        entries.append(Patch(facecolor=colour, alpha=0.45, edgecolor=colour, label=one.label))
    set_axis(axes, panel.x, "x")
    set_axis(axes, panel.y, "y")
    _legend(axes, entries + references(axes, panel.references))


def _legend(axes: Axes, entries: list[Any]) -> None:
    """Above the plot if it fits there, else within it."""
    named = [entry for entry in entries if entry.get_label()]
    if not named:
        return
    if len(named) <= _IN_ONE_LINE and is_wide(axes):
        legend_above(axes, named)
    else:
        axes.legend(handles=named, fontsize=7, framealpha=0.85, loc="best")
