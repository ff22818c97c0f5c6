"""Draw results as the paper does. The same result always gives the same bytes.

`canvas` has what all pictures share; `sweep` and `table` draw sweeps and tables, `chart` draws all other
results, panel by panel.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Final

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from loko_testbed.reproduce.plots.canvas import STYLE
from loko_testbed.reproduce.plots.chart import draw_chart
from loko_testbed.reproduce.plots.sweep import draw_sweep
from loko_testbed.reproduce.plots.table import draw_table
from loko_testbed.reproduce.result import FigureResult, TrafficResult

_METADATA: Final = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
"""Metadata left out of pictures: when, and by which program, they were made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPictures:
    """The pictures of one result."""

    svg: bytes
    png: bytes
    uncaptioned_svg: bytes
    """Without title and claims, for a page that has them itself."""


def draw(result: FigureResult) -> RenderedPictures:
    """Draw all pictures of a result."""
    with mpl.rc_context(STYLE):
        figure = _figure(result, captioned=True)
        return RenderedPictures(
            svg=_saved(figure, "svg"),
            png=_saved(figure, "png"),
            uncaptioned_svg=_saved(_figure(result, captioned=False), "svg"),
        )


def svg(result: FigureResult, *, captioned: bool = True) -> bytes:
    """Draw a result as SVG, without date and with reproducible identifiers.

    If `captioned`, the picture has title and claims, so that it can stand alone.
    """
    with mpl.rc_context(STYLE):
        return _saved(_figure(result, captioned=captioned), "svg")


def inline_svg(drawn: bytes, *, prefix: str) -> Markup:
    """Return a picture as an SVG element for a page, its identifiers made unique there by a prefix."""
    text = drawn.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'href="#', f'href="#{prefix}', text)
    text = re.sub(r"url\(#", f"url(#{prefix}", text)
    return Markup(text)  # noqa: S704 - drawn by us; matplotlib escapes the texts in it


def png(result: FigureResult) -> bytes:
    """Draw a result as PNG with 160 dots per inch."""
    with mpl.rc_context(STYLE):
        return _saved(_figure(result, captioned=True), "png")


def _figure(result: FigureResult, *, captioned: bool) -> Figure:
    if result.chart is not None:
        return draw_chart(result, result.chart, captioned)
    if result.table is not None:
        return draw_table(result, result.table, captioned)
    assert isinstance(result, TrafficResult), f"{result.name} has no picture"
    return draw_sweep(result, captioned)


def _saved(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a file. Saving it in one format does not affect the next."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, facecolor="white", dpi=160, metadata=_METADATA[kind])
    return buffer.getvalue()
