"""Colours, font and sizes of all pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

BOXES: Final = ("#8d99ae", "#dfe4ec")
EDGE: Final = "#2b2d42"
REFERENCE: Final = "#d00000"
"""Colour of limits and of claims that do not hold."""
SECOND: Final = "#1d4ed8"
"""Colour of a second axis, such as loss or throughput."""
PAPER: Final = "#7c3aed"
"""Colour of values that the paper prints."""
MEAN: Final = "#b45309"
HOLDS: Final = "#15803d"
SOFT: Final = "#666666"
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
WIDTH: Final = 600
"""Width of a panel, or of a row of panels, in pixels."""
FONT_WIDTH: Final = 0.52
"""Mean width of a character relative to the font size."""
_FONT: Final = "Liberation Sans, Arial, Helvetica, sans-serif"
"""The renderer brings the first, and the others have its widths: no picture depends on the machine."""
CONFIG: Final[dict[str, Any]] = {
    "font": _FONT,
    "aria": False,
    "background": "white",
    "view": {"stroke": None},
    "axis": {
        "grid": False,
        "domainColor": "black",
        "tickColor": "black",
        "labelFontSize": 11,
        "titleFontSize": 11.5,
        "titleFontWeight": "normal",
        "labelSeparation": 6,
    },
    "legend": {
        "labelFontSize": 10,
        "labelLimit": 0,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titleLimit": 0,
    },
    "title": {"anchor": "start", "fontSize": 11.5, "offset": 6},
}
WHOLE: Final[Mapping[str, Any]] = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "config": CONFIG,
    "padding": 8,
}
"""Keys that every picture has."""


def lightened(colour: str, opacity: float) -> str:
    """Return a colour as it looks on white with this opacity."""
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(255 - opacity * (255 - part)):02x}" for part in parts)
