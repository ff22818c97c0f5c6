"""Draw the results of the comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS: Final = {
    "virtual": "#7f7f7f",
    "live": "#1f77b4",
    "timed": "#2ca02c",
    "stand-in": "#ff7f0e",
    "mininet": "#d62728",
}
_MARKERS: Final = {"virtual": "x", "live": "o", "timed": "D", "stand-in": "s", "mininet": "^"}
_FLOOR_US: Final = 1e-3
"""Smaller values are drawn here: a nanosecond."""
_FLOOR_PERCENT: Final = 1e-3


def draw(summary: dict[str, Any], folder: Path) -> list[Path]:
    """Draw all pictures as SVG and PNG; return the paths of the SVG files."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "fidelity-processing": _processing,
        "fidelity-corners": _corners,
        "fidelity-throughput-buffer": _throughput_and_buffer,
    }
    paths = []
    with mpl.rc_context({"svg.hashsalt": "loko", "font.size": 9}):
        for name, picture in pictures.items():
            figure = picture(summary)
            for kind in ("svg", "png"):
                # No date, so that the same numbers give the same file.
                metadata = {"Date": None} if kind == "svg" else None
                figure.savefig(folder / f"{name}.{kind}", dpi=120, metadata=metadata)
            paths.append(folder / f"{name}.svg")
    return paths


def _processing(summary: dict[str, Any]) -> Figure:
    """Draw the distribution of the processing time's error, from the median into the tail."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for name, system in summary["systems"].items():
        curve = [(share, max(size / 1e3, _FLOOR_US)) for share, size in system["all"]["curve"] if share < 1]
        axes.plot(
            [size for _, size in curve],
            [1 - share for share, _ in curve],
            color=COLOURS[name],
            label=system["title"],
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="error of the processing time (us)",
        ylabel="share of frames with a larger error",
    )
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    return figure


def _corners(summary: dict[str, Any]) -> Figure:
    """Draw median and 99 % quantile of the processing time's error at each corner."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.add_subplot()
    names = _names(summary)
    for name, system in summary["systems"].items():
        for quantile, filled in (("p50", False), ("p99", True)):
            values = [
                max(system["corners"][corner]["processing"][quantile] / 1e3, _FLOOR_US) for corner in names
            ]
            axes.plot(
                range(len(names)),
                values,
                linestyle="none",
                marker=_MARKERS[name],
                color=COLOURS[name],
                markerfacecolor=COLOURS[name] if filled else "none",
                label=f"{system['title']}, {'99 %' if filled else 'median'}",
            )
    _corner_axis(axes, names)
    axes.set(yscale="log", ylabel="error of the processing time (us)")
    axes.legend(ncols=4, fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _throughput_and_buffer(summary: dict[str, Any]) -> Figure:
    """Draw the errors of throughput and of the number of frames that pass in a burst, at each corner."""
    figure = Figure(figsize=(9, 8), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    names = _names(summary)
    for name, system in summary["systems"].items():
        points = [system["corners"][corner] for corner in names]
        style = {
            "linestyle": "none",
            "marker": _MARKERS[name],
            "color": COLOURS[name],
            "label": system["title"],
        }
        above.plot(
            range(len(names)),
            [max(100 * abs(point["throughput"]), _FLOOR_PERCENT) for point in points],
            **style,
        )
        below.plot(
            range(len(names)),
            [
                sum(passed - expected for expected, passed in point["bursts"]) / len(point["bursts"])
                for point in points
            ],
            **style,
        )
    above.set(yscale="log", ylabel="error of the throughput (%)")
    above.grid(visible=True, alpha=0.3)
    below.set(yscale="symlog", ylabel="frames of a burst that pass,\nmore than the profile says")
    _corner_axis(below, names)
    above.legend(ncols=4, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _names(summary: dict[str, Any]) -> list[str]:
    return list(next(iter(summary["systems"].values()))["corners"])


def _corner_axis(axes: Axes, names: list[str]) -> None:
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    axes.grid(visible=True, alpha=0.3)
