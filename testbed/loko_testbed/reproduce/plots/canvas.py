"""Common elements of all pictures: style, colours, title, and the list of claims."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from loko_testbed.reproduce.folder import short_name
from loko_testbed.reproduce.result import ClaimResult, FigureResult

STYLE: Final[Any] = {  # Any: the stubs want a dictionary of every key that there is
    "svg.hashsalt": "loko",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.linewidth": 0.8,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
}
"""Settings of matplotlib for all pictures of this project."""
BOXES: Final = ("#8d99ae", "#dfe4ec")
EDGE: Final = "#2b2d42"
REFERENCE: Final = "#d00000"
"""Colour of limits and of claims that do not hold."""
SECOND: Final = "#1d4ed8"
"""Colour of a second axis, such as loss or throughput."""
PAPER: Final = "#7c3aed"
"""Colour of values that the paper prints."""
PRINTED_NUMBER: Final[Any] = {
    "color": PAPER,
    "linestyle": "none",
    "marker": "D",
    "markersize": 6.5,
    "markerfacecolor": "white",
    "zorder": 3.5,
}
"""Marker of a number that the paper prints: behind our bullet, and larger."""
HOLDS: Final = "#15803d"
SOFT: Final = "#666666"
WIDTH_INCHES: Final = 7.6
LEFT: Final = 0.085
RIGHT: Final = 0.915
"""Left and right end of the plots, as fractions of the width."""
_TITLE_INCHES: Final = 0.42
_EDGE_INCHES: Final = 0.1
"""Room above all panels with a title (`_TITLE_INCHES`) and without."""
CLAIM_INCHES: Final = 0.19
_LINE_INCHES: Final = 0.125
_TEXT_X: Final = (0.055, 0.43, 0.645)
_TEXT_CHARACTERS: Final = (54, 31, 50)
"""Characters per line of each of the three texts of a claim."""
_TITLE_POINTS: Final = 10.5
_TITLE_CHARACTERS: Final = 74
_FOOTNOTE_POINTS: Final = 6.5
_FOOTNOTE_INCHES: Final = 0.06
"""Above the lower edge."""
_FOOTNOTE_CHARACTERS: Final = 150
"""Characters of `_FOOTNOTE_POINTS` that fit into the footnote's line."""
_LEAST_TITLE_POINTS: Final = 7.5
_MARKS: Final[Mapping[bool | None, tuple[str, str]]] = {
    True: ("✓", HOLDS),
    False: ("✗", REFERENCE),
    None: ("–", SOFT),
}
"""Mark and colour of a claim that holds, does not hold, or (None) is not testable here."""
_Texts = tuple[list[str], list[str], list[str]]


def canvas(
    result: FigureResult,
    plot_inches: float,
    *,
    captioned: bool,
    axis_inches: float = 0.3,
    footnote: bool,
    head_inches: float = 0.0,
) -> tuple[Figure, tuple[float, float, float]]:
    """Return a figure with title and claims, and the room for the plot between them.

    The room is (bottom, height, inches): its bottom and height as fractions of the figure's height, and that
    height in inches. `axis_inches` is the space below the plot for the labels of its axis, `head_inches` the
    space above for a panel's title and legend. `footnote` leaves a line at the very bottom.
    """
    claims = [(claim, _texts(claim)) for claim in (result.claims if captioned else [])]
    footnote_inches = CLAIM_INCHES if claims and footnote else 0.0
    claims_inches = sum(_claim_inches(texts) for _, texts in claims)
    below = axis_inches + claims_inches + footnote_inches
    above = (_TITLE_INCHES if captioned else _EDGE_INCHES) + head_inches
    height = above + plot_inches + below
    figure = Figure(figsize=(WIDTH_INCHES, height))
    if captioned:
        title = title_of(result)
        figure.text(
            LEFT, 1 - 0.22 / height, title, fontsize=_title_points(title), fontweight="bold", va="center"
        )
    _claims(figure, claims, top_inches=below - axis_inches, height=height)
    return figure, (below / height, plot_inches / height, height)


def title_of(result: FigureResult) -> str:
    """Return the title of a result's picture."""
    name = re.sub(r"(?<![a-z])sec(?=\d)", "Sec. ", short_name(result.name))
    name = name.replace("fig", "Fig. ").replace("table", "Table ")
    return f"{name}: {symbols(result.title)}"


def _title_points(title: str) -> float:
    """Return the font size at which a title fits into the width."""
    return max(_TITLE_POINTS * min(1, _TITLE_CHARACTERS / len(title)), _LEAST_TITLE_POINTS)


def footnote(figure: Figure, text: str) -> None:
    """Write a line in the lower right corner, in a smaller font if it is long."""
    size = _FOOTNOTE_POINTS * min(1, _FOOTNOTE_CHARACTERS / len(text))
    above = _FOOTNOTE_INCHES / figure.get_figheight()
    figure.text(0.985, above, text, fontsize=size, color=SOFT, ha="right")


def symbols(text: str) -> str:
    """Typeset m_r, m_b and c_pps as in the paper."""
    return re.sub(r"\b([mc])_(r|b|pps)\b", r"$\1_{\2}$", text)


def box_statistics(
    axes: Axes,
    boxes: Sequence[Mapping[str, Any]],
    positions: Sequence[float],
    *,
    widths: float,
    facecolor: str,
    lying: bool = False,
) -> None:
    """Draw boxes with whiskers and crosses as in the paper, horizontally if `lying`.

    Boxes have the keys of `Axes.bxp`. All lines of one style are a single artist, which is faster than the
    seven artists that `Axes.bxp` makes for each box.
    """
    half, cap = widths / 2, widths / 4
    outlines, medians, whiskers, crosses = [], [], [], []
    for x, box in zip(positions, boxes, strict=True):
        q1, q3, low, high = (box[name] for name in ("q1", "q3", "whislo", "whishi"))
        outlines.append([(x - half, q1), (x + half, q1), (x + half, q3), (x - half, q3)])
        medians.append([(x - half, box["med"]), (x + half, box["med"])])
        whiskers += [[(x, q1), (x, low)], [(x, q3), (x, high)]]
        whiskers += [[(x - cap, end), (x + cap, end)] for end in (low, high)]
        crosses += [(x, value) for value in box["fliers"]]
    if lying:
        outlines, medians, whiskers = (
            [[(y, x) for x, y in line] for line in lines] for lines in (outlines, medians, whiskers)
        )
        crosses = [(y, x) for x, y in crosses]
    thin, thick = 0.8, 1.4
    for collection in (
        PolyCollection(outlines, facecolors=facecolor, edgecolors=EDGE, linewidths=thin, zorder=2),
        LineCollection(whiskers, colors=EDGE, linewidths=thin, capstyle="projecting", zorder=2),
        LineCollection(medians, colors=EDGE, linewidths=thick, zorder=2.1),
    ):
        axes.add_collection(collection)
    look: dict[str, Any] = {
        "linestyle": "none",
        "marker": "x",
        "markersize": 4,
        "markeredgewidth": thin,
        "zorder": 2,
    }
    axes.plot(*zip(*crosses, strict=True), color=EDGE, **look)


def _texts(claim: ClaimResult) -> _Texts:
    kind = "" if claim.kind == "predicted" else f" [{claim.kind}]"
    texts = (symbols(claim.claim) + kind, f"paper: {claim.paper}", f"here: {claim.here}")
    first, two, three = (
        textwrap.wrap(text, width) for text, width in zip(texts, _TEXT_CHARACTERS, strict=True)
    )
    return first, two, three


def _claim_inches(texts: _Texts) -> float:
    return CLAIM_INCHES + (max(map(len, texts)) - 1) * _LINE_INCHES


def _claims(
    figure: Figure, claims: Sequence[tuple[ClaimResult, _Texts]], *, top_inches: float, height: float
) -> None:
    for claim, texts in claims:
        mark, colour = _MARKS[claim.holds]
        if claim.holds and claim.kind != "predicted":
            colour = SOFT  # only predictions count as reproduction
        figure.text(0.03, top_inches / height, mark, color=colour, fontsize=9, va="center", weight="bold")
        for x, lines, tint in zip(_TEXT_X, texts, ("black", "#444444", colour), strict=True):
            for number, line in enumerate(lines):
                y = (top_inches - number * _LINE_INCHES) / height
                figure.text(x, y, line, fontsize=7, va="center", color=tint)
        top_inches -= _claim_inches(texts)
