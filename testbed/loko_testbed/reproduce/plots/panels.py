"""Draw panels of curves, points, heatmaps and histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from loko_testbed.reproduce.chart import (
    ChartAxis,
    ChartCurve,
    HeatPanel,
    HistogramPanel,
    LinePanel,
    Overflow,
    ScatterPanel,
    TimePanel,
)
from loko_testbed.reproduce.plots.annotations import NO_ANNOTATIONS, Annotations
from loko_testbed.reproduce.plots.axes import COLOURS, name_decades, reference_entries, references, set_axis
from loko_testbed.reproduce.plots.canvas import PRINTED_NUMBER, SECOND

_ABOVE: Final = 1.08
"""Upper end of an axis over the highest mark on it."""
_BAND_BESIDE: Final = 0.45
"""Position of a band beside a column that spans -0.3 to 0.3."""
_BAND_LOOK: Final[Any] = {"color": SECOND, "linewidth": 1.2, "marker": "_", "markersize": 6}
_CELLS_WITH_NUMBERS: Final = 120
"""Heatmaps with at most this many cells show their numbers."""
_CELL_NAMES: Final = 11
"""Most labels on an axis of a heatmap."""
_MANY_POINTS: Final = 2000
"""More points than this are drawn as an image, even in an SVG."""
_CELL_POINTS: Final = 6.5
_ROOMY: Final = 5.5
"""Cells with room for this many characters may show numbers of any length."""
_CHARACTER: Final = 0.6
"""Width of a character relative to the font size."""
_FOUR_DIGITS: Final = 999.5
_TWO_DIGITS: Final = 9.95
_SMALL: Final = 0.1
"""Below it a number of three digits is wider than a cell."""
_MARKERS: Final = "os^Dv<>Pp*"
_DASHES: Final[Any] = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
"""Dashes of curves without markers."""
_DIAGONAL: Final[Any] = {"color": "black", "linewidth": 0.9, "zorder": 1}
_SCALE: Final = (1.03, 0.0, 0.035, 1.0)
_OVERFLOW_AT: Final = (1.04, 0.0, 0.09, 1.0)
"""Rectangles beside a panel in its coordinates: left, bottom, width, height."""
_OVERFLOW_LOOK: Final[Any] = {
    "facecolor": "#f0c48a",
    "edgecolor": "#92400e",
    "hatch": "////",
    "linewidth": 1.0,
}


def draw_lines(axes: Axes, panel: LinePanel) -> None:
    """Draw curves, with error bars where they have any."""
    for number, curve in enumerate(panel.curves):
        _draw_curve(axes, curve, _curve_look(panel, number))
    if not panel.x.log and all(float(x).is_integer() for curve in panel.curves for x in curve.x):
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    set_axis(axes, panel.x, "x")
    set_axis(axes, panel.y, "y")
    references(axes, panel.references)


def lines_legend(panel: LinePanel) -> list[Line2D]:
    """Return the legend entries of curves and references."""
    curves = [
        Line2D([], [], label=curve.label, **_curve_look(panel, number))
        for number, curve in enumerate(panel.curves)
    ]
    return curves + reference_entries(panel.references)


def _draw_curve(axes: Axes, curve: ChartCurve, look: dict[str, Any]) -> None:
    y = np.array([np.nan if value is None else value for value in curve.y], dtype=float)
    axes.plot(curve.x, y, drawstyle="steps-post" if curve.steps else "default", **look)
    if curve.low is not None and curve.high is not None:
        bars = np.maximum([y - curve.low, np.array(curve.high) - y], 0)
        axes.errorbar(curve.x, y, yerr=bars, fmt="none", ecolor=look["color"], elinewidth=0.9, capsize=2.5)


def _curve_look(panel: LinePanel, number: int) -> dict[str, Any]:
    """Return the style of a curve: colour and, to tell curves apart in grey, markers, else dashes."""
    curve = panel.curves[number]
    plain = not any(curve.marker or curve.dashed for curve in panel.curves)
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linewidth": 1.2,
        "linestyle": _DASHES[number % len(_DASHES)] if plain else "--" if curve.dashed else "-",
        "marker": _MARKERS[number % len(_MARKERS)] if curve.marker else None,
        "markersize": 3.5,
    }


def draw_points(axes: Axes, panel: ScatterPanel | TimePanel) -> None:
    """Draw clouds of points."""
    for number, cloud in enumerate(panel.clouds):
        look = _cloud_look(panel, number)
        axes.plot(cloud.x, cloud.y, rasterized=len(cloud.x) > _MANY_POINTS, **look)
    set_axis(axes, panel.x, "x")
    set_axis(axes, panel.y, "y")
    references(axes, panel.references)
    if isinstance(panel, ScatterPanel) and panel.diagonal:
        lows, highs = zip(axes.get_xlim(), axes.get_ylim(), strict=True)
        low = min(value for value in lows if value > 0) if panel.x.log else min(lows)
        ends = (low, max(highs))
        axes.plot(ends, ends, **_DIAGONAL)


def points_legend(panel: ScatterPanel | TimePanel) -> list[Line2D]:
    """Return the legend entries of clouds, references and the diagonal."""
    entries = [
        Line2D([], [], label=cloud.label, **{**_cloud_look(panel, number), "markersize": 4})
        for number, cloud in enumerate(panel.clouds)
    ]
    entries += reference_entries(panel.references)
    if isinstance(panel, ScatterPanel) and panel.diagonal:
        entries.append(Line2D([], [], label="equal", **_DIAGONAL))
    return entries


def _cloud_look(panel: ScatterPanel | TimePanel, number: int) -> dict[str, Any]:
    small = isinstance(panel, TimePanel)
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": "." if small else "ox^sdv"[number % 6],
        "markersize": 2 if small else 4,
        "linestyle": "none",
        "markerfacecolor": None if small else "none",
    }


def draw_heatmap(axes: Axes, panel: HeatPanel) -> None:
    """Draw coloured cells of equal size with a colour bar; cells without a value stay white.

    If the cells are few, they show their numbers.
    """
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
    if cells.size <= _CELLS_WITH_NUMBERS:
        _write_cells(axes, cells, mesh)
    beside = axes.inset_axes(_SCALE)
    cast("Figure", axes.figure).colorbar(mesh, cax=beside).set_label(panel.value.label)
    if panel.value.log:
        name_decades(beside.yaxis)
    _name_cells(axes, panel.x_names or [f"{value:g}" for value in panel.x_values], "x")
    _name_cells(axes, panel.y_names or [f"{value:g}" for value in panel.y_values], "y")
    axes.set_xlabel(panel.x.label)
    axes.set_ylabel(panel.y.label)


def _write_cells(axes: Axes, cells: NDArray[np.float64], mesh: QuadMesh) -> None:
    """Write its number into each cell, light on dark and dark on light."""
    colours = mesh.to_rgba(cells)
    room = _room(axes) / cells.shape[1]
    for (row, column), value in np.ndenumerate(cells):
        if not np.isnan(value):
            red, green, blue, _ = colours[row, column]
            dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
            colour = "white" if dark else "black"
            axes.text(
                column + 0.5,
                row + 0.5,
                _in_cell(value, is_narrow=room < _ROOMY),
                ha="center",
                va="center",
                fontsize=_CELL_POINTS,
                color=colour,
            )


def _room(axes: Axes) -> float:
    """Return the width of the axes in characters of a cell's font."""
    width_points = 72 * axes.get_position().width * cast("Figure", axes.figure).get_figwidth()
    return float(width_points / (_CHARACTER * _CELL_POINTS))


def _in_cell(value: float, *, is_narrow: bool) -> str:
    if is_narrow:  # three characters
        return f"{value:.0f}" if value >= _TWO_DIGITS else f"{value:.1f}"
    if value >= _FOUR_DIGITS:
        return f"{value:.0f}"
    return f"{value:.3f}" if 0 < value < _SMALL else f"{value:.3g}"


def _name_cells(axes: Axes, all_names: Sequence[str], which: Literal["x", "y"]) -> None:
    """Label the middles of the cells, as many as can be read."""
    step = -(-len(all_names) // _CELL_NAMES)
    places = range(0, len(all_names), step)
    set_ticks = axes.set_xticks if which == "x" else axes.set_yticks
    names = [all_names[place] for place in places]
    turned = 90.0 if which == "x" and sum(len(name) + 1 for name in names) > _room(axes) else 0.0
    set_ticks([place + 0.5 for place in places], names, fontsize=_CELL_POINTS, rotation=turned)


def draw_histogram(axes: Axes, panel: HistogramPanel, others: Annotations = NO_ANNOTATIONS) -> None:
    """Draw histograms, and beyond the end of the axis a column for the count that has no place on it.

    `others` has the paper's values and predicted bands of the panel's shares.
    """
    for number, histogram in enumerate(panel.histograms):
        colour = COLOURS[number % len(COLOURS)]
        axes.stairs(histogram.counts, panel.edges, color=colour, fill=True, alpha=0.45)
        axes.stairs(histogram.counts, panel.edges, color=colour, linewidth=1.0)
    set_axis(axes, panel.x, "x")
    set_axis(axes, panel.y, "y")
    references(axes, panel.references)
    if panel.overflow is not None:
        finding = panel.shares[0].finding if panel.shares else ""
        paper, band = others.printed.get(finding), others.bands.get(finding)
        marked = [paper.value] if paper is not None and paper.value is not None else []
        reach = (band.least[0], band.most[0]) if band is not None else None
        highest = max([*marked, *(reach or ())], default=0.0)
        axes.set_ylim(top=max(axes.get_ylim()[1], min(_ABOVE * highest, 100 * _ABOVE)))
        _draw_overflow(axes, panel.overflow, panel.y, marked, reach)


def _draw_overflow(
    axes: Axes, overflow: Overflow, y: ChartAxis, marked: Sequence[float], reach: tuple[float, float] | None
) -> None:
    """Draw a column with its own axis of the same scale, marked with the paper's share and the band."""
    other = axes.inset_axes(_OVERFLOW_AT)
    set_axis(other, y, "y")
    other.set_ylabel("")
    other.tick_params(axis="y", left=False, labelleft=False)
    for side in ("left", "right"):
        other.spines[side].set_visible(False)
    other.set_ylim(axes.get_ylim())
    other.bar([0], [overflow.count], width=0.6, **_OVERFLOW_LOOK)
    other.plot([0] * len(marked), marked, clip_on=False, **PRINTED_NUMBER)
    if reach is not None:
        other.plot([_BAND_BESIDE] * 2, reach, **_BAND_LOOK)
    other.set_xlim(-0.6, 0.6)
    other.set_xticks([0], [f"{overflow.label}\n{overflow.text}"], fontsize=7.5)


def histogram_legend(panel: HistogramPanel, others: Annotations = NO_ANNOTATIONS) -> list[Any]:
    """Return the legend entries of the histograms, the references, and the paper's values and bands."""
    entries = [
        Patch(
            facecolor=COLOURS[number % len(COLOURS)],
            alpha=0.45,
            edgecolor=COLOURS[number % len(COLOURS)],
            label=histogram.label,
        )
        for number, histogram in enumerate(panel.histograms)
    ]
    if panel.overflow is not None:
        entries.append(Patch(label=f"{panel.overflow.label} ({panel.overflow.text})", **_OVERFLOW_LOOK))
    return [*entries, *reference_entries(panel.references), *_share_entries(panel, others)]


def _share_entries(panel: HistogramPanel, others: Annotations) -> list[Line2D]:
    """Return an entry for each share with a paper's value or a band; only that of `overflow` is marked."""
    entries = []
    for place, share in enumerate(panel.shares):
        text = others.annotate(share.finding, share.text)
        if text is None:
            continue
        has_overflow = place == 0 and panel.overflow is not None
        printed = share.finding in others.printed and others.printed[share.finding].value is not None
        look: dict[str, Any] = {"linestyle": "none"}
        if has_overflow:
            look = PRINTED_NUMBER if printed else _BAND_LOOK
        entries.append(Line2D([], [], label=f"{share.name}: {text}", **look))
    return entries
