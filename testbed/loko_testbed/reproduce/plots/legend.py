"""Legends above panels, in as many lines as they need to be neither cut nor cover anything."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

_POINTS: Final = 7.2
_HANDLE: Final = 1.5
_BETWEEN: Final = 1.3
"""Length of the handle before a text, and of the gap between two columns, in multiples of the font size."""
_AROUND_POINTS: Final = 10.0
"""Sum of the gaps between a handle and its text, and at both ends of a column."""
_LINE_INCHES: Final = 1.62 * _POINTS / 72
_MARGIN_INCHES: Final = 0.12
_HINTING: Final = 1.05
"""Width of text that is aligned to pixels relative to that of its outlines."""


def legend_inches(entries: Sequence[Any], width_inches: float) -> float:
    """Return the height of the legend above a panel of this width."""
    if not _named(entries):
        return 0.0
    labels, columns = _layout(entries, width_inches)
    lines = max(sum(label.count("\n") + 1 for label in column) for column in _columns(labels, columns))
    return lines * _LINE_INCHES + _MARGIN_INCHES


def legend_above(axes: Axes, entries: Sequence[Any], width_inches: float) -> None:
    """Put a legend above a panel of this width."""
    named = _named(entries)
    if not named:
        return
    labels, columns = _layout(entries, width_inches)
    axes.legend(
        handles=named,
        labels=labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        fontsize=_POINTS,
        handlelength=_HANDLE,
        columnspacing=_BETWEEN,
        borderpad=0.2,
        borderaxespad=0.3,
    )


def _named(entries: Sequence[Any]) -> list[Any]:
    return [entry for entry in entries if entry.get_label()]


def _layout(entries: Sequence[Any], width_inches: float) -> tuple[list[str], int]:
    """Return the labels, with lines broken where one is too long, and the number of columns."""
    room = 72 * width_inches
    width_points = room - _POINTS * _HANDLE - _AROUND_POINTS
    labels = [_broken(entry.get_label(), width_points) for entry in _named(entries)]
    for columns in range(len(labels), 0, -1):
        if _points(labels, columns) <= room:
            return labels, columns
    return labels, 1


def _broken(label: str, points: float) -> str:
    letters = len(label)
    while letters > 1 and _width(label) > points:
        letters -= 1
        broken = "\n".join(textwrap.wrap(label, letters, break_long_words=False))
        if _width(broken) <= points:
            return broken
    return label


def _columns(labels: Sequence[str], columns: int) -> list[Sequence[str]]:
    """Distribute labels evenly over columns; if that leaves a remainder, the first columns have one more."""
    least, more = divmod(len(labels), columns)
    ends = list(accumulate(least + (column < more) for column in range(columns)))
    return [labels[begin:end] for begin, end in pairwise([0, *ends])]


def _points(labels: Sequence[str], columns: int) -> float:
    """Return the width of a legend in points."""
    widths = [max(map(_width, column)) for column in _columns(labels, columns)]
    each = _POINTS * _HANDLE + _AROUND_POINTS
    return sum(widths) + len(widths) * each + (len(widths) - 1) * _POINTS * _BETWEEN


@cache
def _width(label: str) -> float:
    """Return the width of a text's longest line in points."""
    font = FontProperties(family="DejaVu Sans")
    lines = [line for line in label.split("\n") if line.strip()]
    widths = [TextPath((0, 0), line, size=_POINTS, prop=font).get_extents().width for line in lines]
    return _HINTING * float(max(widths, default=0.0))
