"""Draw results as the paper does. The same result always gives the same bytes.

A picture is a Vega-Lite specification: `sweep` and `table` make those of sweeps and tables, `chart` that of
all other results, panel by panel. `rendering` turns it into SVG and PNG.
"""

from __future__ import annotations

from dataclasses import dataclass

from loko_testbed.reproduce.plots.chart import chart_spec
from loko_testbed.reproduce.plots.marks import Spec
from loko_testbed.reproduce.plots.rendering import png_of, svg_of
from loko_testbed.reproduce.plots.sweep import sweep_spec
from loko_testbed.reproduce.plots.table import table_spec
from loko_testbed.reproduce.result import FigureResult, TrafficResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPictures:
    """The pictures of one result."""

    svg: bytes
    png: bytes
    uncaptioned_svg: bytes
    """Without title and claims, for a page that has them itself."""
    specification: Spec
    """That of the uncaptioned picture, for a page on which it is interactive."""


def draw(result: FigureResult) -> RenderedPictures:
    """Draw all pictures of a result."""
    drawn, uncaptioned = svg(result), specification(result, captioned=False)
    return RenderedPictures(
        svg=drawn, png=png_of(drawn), uncaptioned_svg=svg_of(uncaptioned), specification=uncaptioned
    )


def svg(result: FigureResult, *, captioned: bool = True) -> bytes:
    """Draw a result as SVG, without date and with reproducible identifiers.

    If `captioned`, the picture has title and claims, so that it can stand alone.
    """
    return svg_of(specification(result, captioned=captioned))


def specification(result: FigureResult, *, captioned: bool) -> Spec:
    """Return a result's picture as a Vega-Lite specification."""
    if result.chart is not None:
        return chart_spec(result, result.chart, captioned=captioned)
    if result.table is not None:
        return table_spec(result, result.table, captioned=captioned)
    assert isinstance(result, TrafficResult), f"{result.name} has no picture"
    return sweep_spec(result, captioned=captioned)
