"""Rendering of Vega-Lite specifications without a browser and without a network."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

import vl_convert
from markupsafe import Markup

from loko.document import InputError
from loko_testbed.reproduce.plots.marks import Spec
from loko_testbed.tasks.files import write_atomically

VEGA_LITE: Final = "6.4"
_SCALE: Final = 1.8
"""Pixels of a PNG by those of the specification."""
_NESTED: Final = ("vconcat", "concat", "layer")
_SYMBOL: Final = re.compile(r"\b([mc])_(r|b|pps)\b(?=[^<>]*</t)")
"""m_r, m_b or c_pps in a text of an SVG."""


def svg_of(spec: Spec) -> bytes:
    """Render a specification as SVG; the same specification gives the same bytes."""
    text = vl_convert.vegalite_to_svg(_visible(spec), vl_version=VEGA_LITE)
    return _SYMBOL.sub(_subscript, _numbered(text)).encode()


def png_of(svg: bytes) -> bytes:
    """Render an SVG of `svg_of` as PNG."""
    return vl_convert.svg_to_png(svg.decode(), scale=_SCALE)


def inline_svg(svg: bytes, *, prefix: str) -> Markup:
    """Return a picture as an SVG element for a page, its identifiers made unique there by a prefix."""
    text = svg.decode()
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r"url\(#", f"url(#{prefix}", text)
    return Markup(text)  # noqa: S704 - drawn by us; Vega escapes the texts in it


@cache
def vega_embed() -> str:
    """Return JavaScript that defines `vegaEmbed`, which brings specifications to life in a page.

    Bundling it takes seconds, so the user's cache keeps it.
    """
    with suppress(OSError, RuntimeError):
        return _cached_bundle().read_text(encoding="utf-8")
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    bundle = bundle.replace("</script", "<\\/script")  # would end the script that it is put into
    with suppress(OSError, RuntimeError, InputError):  # a cache is not worth an error
        path = _cached_bundle()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, bundle.encode())
    return bundle


def _cached_bundle() -> Path:
    """Return the bundle's file in the user's cache. Raises `RuntimeError` for a user without a home."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "loko" / f"vega-embed-{version('vl-convert-python')}-{VEGA_LITE}.js"


def _visible(spec: Spec) -> Spec:
    """Return the specification without invisible layers, whose tooltips no file can show."""
    parts: Spec = {
        key: [_visible(part) for part in spec[key] if not _is_invisible(part)]
        for key in _NESTED
        if key in spec
    }
    return {**spec, **parts}


def _is_invisible(part: Spec) -> bool:
    return bool(part.get("mark", {}).get("opacity") == 0)


def _numbered(text: str) -> str:
    """Number identifiers anew: those of a process count all that it has drawn."""
    numbers: dict[str, str] = {}
    for name in re.findall(r'\bid="([^"]+)"', text):
        numbers.setdefault(name, f"{re.sub('[0-9]+$', '', name)}{len(numbers)}")
    pattern = r'(?<=\bid=")[^"]+(?=")|(?<=url\(#)[^)]+(?=\))'
    return re.sub(pattern, lambda match: numbers.get(match[0], match[0]), text)


def _subscript(match: re.Match[str]) -> str:
    """Typeset m_r, m_b and c_pps as in the paper."""
    letter, index = match.groups()
    lowered = f'<tspan dy="2.5" font-size="75%">{index}</tspan><tspan dy="-2.5">&#8203;</tspan>'
    return f'<tspan font-style="italic">{letter}</tspan>{lowered}'
