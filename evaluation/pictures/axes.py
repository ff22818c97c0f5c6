"""Axes of panels, and the straight lines across them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from evaluation.chart import ChartAxis, Reference
from evaluation.pictures.canvas import REFERENCE

COLOURS: Final = (
    "#1d4ed8",
    "#d97706",
    "#15803d",
    "#7c3aed",
    "#0891b2",
    "#be185d",
    "#4d7c0f",
    "#2b2d42",
    "#92400e",
    "#64748b",
)
"""Of curves, clouds and histograms, in this order."""
_LINES: Final = (REFERENCE, "#000000", "#7a7a7a")


def set_axis(axes: Axes, axis: ChartAxis, which: Literal["x", "y"]) -> None:
    """Name an axis and set what it shows."""
    if which == "x":
        axes.set_xlabel(axis.label)
        if axis.log:
            axes.set_xscale("log")
        if axis.low is not None or axis.high is not None:
            axes.set_xlim(axis.low, axis.high)
        return
    axes.set_ylabel(axis.label)
    if axis.log:
        axes.set_yscale("log")
    if axis.low is not None or axis.high is not None:
        axes.set_ylim(axis.low, axis.high)


def is_wide(axes: Axes) -> bool:
    """Whether a panel takes most of the picture's width."""
    return bool(axes.get_position().width > 0.5)


def references(axes: Axes, lines: Sequence[Reference]) -> list[Any]:
    """Draw the lines; what stands for them in the legend."""
    entries = []
    for number, line in enumerate(lines):
        colour = _LINES[number % len(_LINES)]
        across = axes.axhline if line.axis == "y" else axes.axvline
        across(line.value, color=colour, linewidth=1.2, zorder=1)
        entries.append(Line2D([], [], color=colour, linewidth=1.2, label=line.label))
    return entries
