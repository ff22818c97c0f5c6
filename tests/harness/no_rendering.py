"""Replays with less rendering, which takes most of a short replay's time, or none if numbers suffice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.plots import rendering
from loko_testbed.reproduce.plots.marks import Spec
from loko_testbed.reproduce.result import FigureResult


def blank(result: FigureResult) -> pictures.RenderedPictures:
    """Stands in for the picture of a figure, of which it has nothing but the name."""
    svg = blank_svg(result)
    live = pictures.specification(result, captioned=False)
    return pictures.RenderedPictures(svg=svg, png=b"", uncaptioned_svg=svg, specification=live)


def blank_svg(result: FigureResult, **_how: bool) -> bytes:
    return f'<svg xmlns="http://www.w3.org/2000/svg"><title>{result.name}</title></svg>'.encode()


@contextmanager
def no_rendering() -> Iterator[None]:
    """Make replays draw nothing, including those in other processes on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "draw", blank)
        patch.setattr(pictures, "svg", blank_svg)
        patch.setattr(rendering, "vega_embed", lambda: "")
        yield


@cache
def _svg_of(spec: str) -> bytes:
    return rendering.svg_of(json.loads(spec))


_png_of = cache(rendering.png_of)


@contextmanager
def rendering_once() -> Iterator[None]:
    """Make this process render each picture once: it depends on nothing but its specification."""

    def svg_of(spec: Spec) -> bytes:
        return _svg_of(json.dumps(spec))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "svg_of", svg_of)
        patch.setattr(pictures, "png_of", _png_of)
        yield
