"""The texts of a rendered picture with the boxes that they fill, and the colours of its marks and legends."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_SVG = "{http://www.w3.org/2000/svg}"
_DRAWN = {f"{_SVG}path", f"{_SVG}line"}
_NARROW, _WIDE = set("iljt.,:;'|!()[]f /I-"), set("mwMW@%")
_ASCENT, _DESCENT, _LINE = 0.72, 0.05, 1.2
"""Heights of a letter above and below its line, and of a line, by the size of the font."""
_TOUCHING = 0.5
"""Overlap of two boxes that is not seen, in pixels."""


class TextBox(NamedTuple):
    """A text and the corners of its box: at the origin, along the lines, across them, and opposite."""

    text: str
    corners: NDArray[np.float64]


def text_boxes(svg: bytes) -> list[TextBox]:
    """Return the texts of a picture with their boxes, in pixels of the picture."""
    return list(_boxes(ET.fromstring(svg), np.eye(3)))


def overlapping(svg: bytes) -> list[tuple[str, str]]:
    """Return all pairs of texts that overlap."""
    boxes = text_boxes(svg)
    pairs = ((boxes[one], boxes[two]) for one, two in _near([box.corners for box in boxes]))
    return [(one.text, two.text) for one, two in pairs if not _are_apart(one.corners, two.corners)]


def beyond_the_edges(svg: bytes) -> list[str]:
    """Return the texts that are not wholly within the picture."""
    root = ET.fromstring(svg)
    size = np.array([float(root.get(side, "0")) for side in ("width", "height")])
    return [
        box.text
        for box in text_boxes(svg)
        if (box.corners < -_TOUCHING).any() or (box.corners > size + _TOUCHING).any()
    ]


def colours_of(svg: bytes, *, legend: bool) -> set[str]:
    """Return the colours that fill or draw the marks of a picture, or the symbols of its legends."""
    found: set[str] = set()
    for element in _marks(ET.fromstring(svg), legend=legend):
        hidden = {float(element.get(name, "1")) for name in ("opacity", "stroke-opacity")} == {0.0}
        found |= {element.get(look, "none") for look in ("fill", "stroke") if not hidden}
    return found - {"none", "transparent", "white", "black", "#ffffff", "#000000", "#fff", "#000"}


def _marks(element: ET.Element, *, legend: bool) -> Iterator[ET.Element]:
    role = element.get("class", "")
    if "role-axis" in role or "role-title" in role or "background" in role:
        return
    if "role-legend" in role and not legend:
        return
    is_part = "role-legend-symbol" in role if legend else "role-mark" in role
    if is_part:
        yield from (inner for inner in element.iter() if inner.tag in _DRAWN)
        return
    for inner in element:
        yield from _marks(inner, legend=legend)


def _boxes(element: ET.Element, around: NDArray[np.float64]) -> Iterator[TextBox]:
    here = around @ _transform(element.get("transform", ""))
    if element.tag != f"{_SVG}text":
        for inner in element:
            yield from _boxes(inner, here)
        return
    size = float(element.get("font-size", "11px").removesuffix("px"))
    spans = [span for span in element if span.get("x") is not None]
    lines = ["".join(span.itertext()) for span in spans] or ["".join(element.itertext())]
    if not "".join(lines).strip() or element.get("opacity") == "0":
        return
    width = max(map(_width, lines)) * size * (1.08 if element.get("font-weight") == "bold" else 1)
    left = {"start": 0.0, "middle": -width / 2, "end": -width}[element.get("text-anchor", "start")]
    top, bottom = -_ASCENT * size, (_LINE * (len(lines) - 1) + _DESCENT) * size
    corners = [(left, top), (left + width, top), (left, bottom), (left + width, bottom)]
    placed = here @ np.array([(x, y, 1.0) for x, y in corners]).T
    yield TextBox(" ".join(lines), placed[:2].T)


def _width(text: str) -> float:
    """Return the width of a text by the size of its font, nearly that of Liberation Sans."""
    return sum(
        0.29 if letter in _NARROW else 0.85 if letter in _WIDE else 0.667 if letter.isupper() else 0.55
        for letter in text
    )


def _transform(text: str) -> NDArray[np.float64]:
    whole = np.eye(3)
    for name, arguments in re.findall(r"(\w+)\(([^)]*)\)", text):
        values = [float(value) for value in re.split(r"[ ,]+", arguments.strip())]
        part = np.eye(3)
        if name == "translate":
            part[:2, 2] = [*values, 0][:2]
        elif name == "scale":
            part[0, 0], part[1, 1] = values[0], values[-1]
        else:
            assert name == "rotate", name
            sine, cosine = math.sin(math.radians(values[0])), math.cos(math.radians(values[0]))
            part[:2, :2] = [[cosine, -sine], [sine, cosine]]
        whole = whole @ part
    return whole


def _near(boxes: list[NDArray[np.float64]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of boxes, by number, which no horizontal or vertical line separates: there are few."""
    lowest, highest = (
        np.array([end(box, axis=0) for box in boxes]).reshape(-1, 2) for end in (np.min, np.max)
    )
    reaches = (lowest[:, None] < highest).all(axis=-1)
    for one, two in np.argwhere(np.triu(reaches & reaches.T, 1)):
        yield int(one), int(two)


def _are_apart(one: NDArray[np.float64], two: NDArray[np.float64]) -> bool:
    """Return whether a line along a side of one of two boxes separates them."""
    for box in (one, two):
        for side in (box[1] - box[0], box[2] - box[0]):
            along = side / np.linalg.norm(side)
            first, second = one @ along, two @ along
            if first.max() <= second.min() + _TOUCHING or second.max() <= first.min() + _TOUCHING:
                return True
    return False
