"""Draw our figure 12a: output by input rate, with a line through the points beyond the maximum."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.sensitivity import LARGEST_INPUT_MBPS, OverloadCurve
from loko_testbed.reproduce.plots.canvas import STYLE

_COLOURS: Final = ("#1d4ed8", "#c2410c")
_PAPER: Final = (
    "Paper, section 3.4.2: output equals input up to the maximum; beyond it the output falls linearly\n"
    "with the input. The plot's numbers are not printed, so the slope is not known."
)


def pictures(curves: Sequence[OverloadCurve]) -> dict[str, bytes]:
    """Return the picture by file suffix, without date and with reproducible identifiers."""
    with mpl.rc_context(STYLE):
        figure = _draw(curves)
        return {
            ".svg": _encode(figure, "svg", Date=None, Creator=None),
            ".png": _encode(figure, "png", Software=None),
        }


def _encode(figure: Figure, kind: str, **metadata: None) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, facecolor="white", dpi=160, metadata=metadata)
    return buffer.getvalue()


def _draw(curves: Sequence[OverloadCurve]) -> Figure:
    figure = Figure(figsize=(7.6, 4.7))
    axes = figure.add_axes((0.085, 0.2, 0.885, 0.725))
    axes.spines["right"].set_visible(False)
    axes.set_title("Fig. 12a: output of one switch over its input, 64-byte packets", loc="left")
    axes.plot([0, 12], [0, 12], color="#8d99ae", linewidth=0.8, linestyle=":", label="output = input")
    for curve, colour in zip(curves, _COLOURS, strict=True):
        measured = f"{curve.entries} entries"
        axes.plot(curve.input_mbps, curve.output_mbps, "o", markersize=3, color=colour, label=measured)
        ends = np.array([curve.maximum_mbps, LARGEST_INPUT_MBPS])
        axes.plot(
            ends,
            curve.slope * ends + curve.intercept_mbps,
            color=colour,
            linewidth=1,
            label=f"line beyond {curve.maximum_mbps:.2f} Mbit/s: slope {curve.slope:.3f},"
            f" R² = {curve.determination:.4f}",
        )
    axes.set_xlim(0, LARGEST_INPUT_MBPS)
    axes.set_ylim(0, 12)
    axes.set_xlabel("input [Mbit/s]")
    axes.set_ylabel("output [Mbit/s]")
    axes.legend(loc="upper right", fontsize=7.5, frameon=False)
    figure.text(0.085, 0.035, _PAPER, fontsize=7.5, color="#444444", linespacing=1.4)
    return figure
