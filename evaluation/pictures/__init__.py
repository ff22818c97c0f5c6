"""Draw results as the paper does. The same result always gives the same bytes.

`canvas` has what all pictures share; `sweep` and `table` draw sweeps and tables, `chart` draws all other
results, panel by panel.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl

from evaluation.pictures.canvas import STYLE
from evaluation.pictures.chart import draw_chart
from evaluation.pictures.sweep import draw_sweep
from evaluation.pictures.table import draw_table
from evaluation.result import FigureResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The pictures of one result."""

    svg: bytes
    png: bytes
    uncaptioned_svg: bytes
    """Without title and claims, for a page that has them itself."""


def draw(result: FigureResult) -> Drawn:
    """Draw all pictures of a result."""
    return Drawn(svg=svg(result), png=png(result), uncaptioned_svg=svg(result, captioned=False))


def svg(result: FigureResult, *, captioned: bool = True) -> bytes:
    """Draw a result as SVG, without date and with reproducible identifiers.

    If `captioned`, the picture has title and claims, so that it can stand alone.
    """
    return _save(result, "svg", captioned=captioned, dpi=160, metadata={"Date": None, "Creator": None})


def png(result: FigureResult) -> bytes:
    """Draw a result as PNG with 160 dots per inch."""
    return _save(result, "png", captioned=True, dpi=160, metadata={"Software": None})


def _save(result: FigureResult, kind: str, *, captioned: bool, **options: Any) -> bytes:
    with mpl.rc_context(STYLE):
        if result.chart is not None:
            figure = draw_chart(result, result.chart, captioned)
        elif result.table is not None:
            figure = draw_table(result, result.table, captioned)
        else:
            figure = draw_sweep(result, captioned)
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, facecolor="white", **options)
    return buffer.getvalue()
