"""Axes of panels, and reference lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, SymmetricalLogLocator

from loko_testbed.reproduce.chart import ChartAxis, Reference
from loko_testbed.reproduce.plots.canvas import REFERENCE

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
"""Colours of successive curves, clouds and histograms."""
_LINES: Final = (REFERENCE, "#000000", "#7a7a7a")
_DASHES: Final = ("-", (0, (6, 2)), (0, (2, 1.5)))
"""Dashes of reference lines; `_LINES` has their colours."""
_NAMED_RATIO: Final = 1000
"""A logarithmic axis with a larger ratio of its ends has labels at powers of ten only."""
_FEW_RATIO: Final = 4
"""One with a smaller ratio has labels at all multiples of powers of ten, not just 1, 2 and 5."""


def set_axis(axes: Axes, axis: ChartAxis, which: Literal["x", "y"]) -> None:
    """Set label, scale and limits of an axis."""
    drawn, set_scale, set_limits = (
        (axes.xaxis, axes.set_xscale, axes.set_xlim)
        if which == "x"
        else (axes.yaxis, axes.set_yscale, axes.set_ylim)
    )
    drawn.set_label_text(axis.label)
    if axis.log:
        set_scale("log")
    elif axis.linear_to is not None:
        set_scale("symlog", linthresh=axis.linear_to)
    if axis.low is not None or axis.high is not None:
        set_limits(axis.low, axis.high)
    if axis.log:
        name_decades(drawn)
    elif axis.linear_to is not None:
        drawn.set_major_locator(SymmetricalLogLocator(base=10, linthresh=axis.linear_to, subs=(1, 2, 5)))
        drawn.set_major_formatter(_as_written)


def name_decades(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers, at 1, 2 and 5 times powers of ten; skip long axes."""
    low, high = sorted(axis.get_view_interval())
    if low <= 0 or high > _NAMED_RATIO * low:
        return
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > _FEW_RATIO * low else range(1, 10)))
    axis.set_major_formatter(_as_written)
    axis.set_minor_formatter(NullFormatter())


def _as_written(value: float, _place: float) -> str:
    return f"{value:g}"


def references(axes: Axes, lines: Sequence[Reference]) -> None:
    """Draw reference lines."""
    for line in lines:
        across = axes.axhline if line.axis == "y" else axes.axvline
        across(line.value, **_reference_look(_labels(lines).index(line.label)))


def reference_entries(lines: Sequence[Reference]) -> list[Line2D]:
    """Return the legend entries of reference lines."""
    return [
        Line2D([], [], label=label, **_reference_look(number)) for number, label in enumerate(_labels(lines))
    ]


def _labels(lines: Sequence[Reference]) -> list[str]:
    return list(dict.fromkeys(line.label for line in lines))


def _reference_look(number: int) -> dict[str, Any]:
    """Return colour and dashes of a reference line; the dashes differ so that it works in grey, too."""
    return {
        "color": _LINES[number % len(_LINES)],
        "linestyle": _DASHES[number % len(_DASHES)],
        "linewidth": 1.2,
        "zorder": 1,
    }
