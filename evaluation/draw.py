"""Pictures of results, as the paper draws them (section 6.1): the same result gives the same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import Bbox

from evaluation.result import ClaimResult, FigureResult, Point, Series, runs_of

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
"""How pictures of this project look; a context for matplotlib."""
_BOXES: Final = ("#8d99ae", "#dfe4ec")
_EDGE: Final = "#2b2d42"
_GUARANTEE: Final = "#d00000"
_FLOOR: Final = "#000000"
_LOSS: Final = "#1d4ed8"
_HOLDS: Final = "#15803d"
_WIDTH_INCHES: Final = 7.6
_PLOT_INCHES: Final = 3.7
_CLAIM_INCHES: Final = 0.19


def svg(result: FigureResult, *, captioned: bool = True) -> bytes:
    """The picture as SVG, without date and with reproducible identifiers.

    `captioned`: with title and claims, so that it can stand alone.
    """
    return _save(result, "svg", captioned=captioned, metadata={"Date": None, "Creator": None})


def png(result: FigureResult) -> bytes:
    """The picture as PNG, 160 dots per inch."""
    return _save(result, "png", captioned=True, dpi=160, metadata={"Software": None})


def _save(result: FigureResult, kind: str, *, captioned: bool, **options: Any) -> bytes:
    with mpl.rc_context(STYLE):
        drawn = _draw_table if result.table is not None else _draw_boxes
        figure = drawn(result, captioned)
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, facecolor="white", **options)
    return buffer.getvalue()


def _draw_boxes(result: FigureResult, captioned: bool) -> Figure:
    figure, axes = _canvas(result, _PLOT_INCHES, captioned)
    places = {point.x: place for place, point in enumerate(result.series[0].points)}
    _boxes(axes, result.series)
    top = _bounds(axes, result)
    axes.set_ylim(0, top)
    axes.set_ylabel("end-to-end delay [ms]")
    axes.set_xticks(list(places.values()), [f"{x:g}" for x in places])
    margin = max(0.6, 2.5 - len(places) / 2)
    axes.set_xlim(-margin, len(places) - 1 + margin)
    unit = f" [{result.x.unit}]" if result.x.unit else ""
    axes.set_xlabel(_symbols(f"{result.x.name}{unit}"))
    _loss(axes, result.series)
    _legend(figure, axes, result)
    return figure


def _canvas(result: FigureResult, plot_inches: float, captioned: bool) -> tuple[Figure, Axes]:
    """A figure with room for title and claims."""
    claims = result.claims if captioned else []
    axis_inches = 0.62 if result.series else 0.3
    footnote_inches = _CLAIM_INCHES if claims and result.series else 0.0
    below = axis_inches + _CLAIM_INCHES * len(claims) + footnote_inches
    above = 0.62 if captioned else 0.32
    height = above + plot_inches + below
    figure = Figure(figsize=(_WIDTH_INCHES, height))
    axes = figure.add_axes((0.085, below / height, 0.825, plot_inches / height))
    name = result.figure.replace("fig", "Fig. ").replace("table", "Table ")
    if captioned:
        axes.set_title(f"{name}: {result.title}", loc="left", pad=26 if result.series else 8)
    _claims(figure, claims, top=(below - axis_inches) / height, step=_CLAIM_INCHES / height)
    return figure, axes


def _claims(figure: Figure, claims: Sequence[ClaimResult], *, top: float, step: float) -> None:
    for line, claim in enumerate(claims):
        mark, colour = ("✓", _HOLDS) if claim.holds else ("✗", _GUARANTEE)
        y = top - line * step
        figure.text(0.03, y, mark, color=colour, fontsize=9, va="center", weight="bold")
        figure.text(0.055, y, _symbols(claim.claim), fontsize=7, va="center")
        figure.text(0.43, y, f"paper: {claim.paper}", fontsize=7, va="center", color="#444444")
        figure.text(0.645, y, f"here: {claim.here}", fontsize=7, va="center", color=colour)


def _symbols(text: str) -> str:
    """m_r and m_b as the paper sets them."""
    return re.sub(r"m_([rb])", r"$m_\1$", text)


def _boxes(axes: Axes, series: Sequence[Series]) -> None:
    width = 0.7 / len(series)
    for number, one in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * (width + 0.04)
        received = [
            (place, point) for place, point in enumerate(one.points) if point.delay_ms.p50 is not None
        ]
        if not received:
            continue
        axes.bxp(
            [_statistics(point) for _, point in received],
            positions=[place + shift for place, _ in received],
            widths=width,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": _BOXES[number % 2], "edgecolor": _EDGE, "linewidth": 0.8},
            medianprops={"color": _EDGE, "linewidth": 1.4},
            whiskerprops={"color": _EDGE, "linewidth": 0.8},
            capprops={"color": _EDGE, "linewidth": 0.8},
            flierprops={"marker": "x", "markersize": 4, "markeredgecolor": _EDGE, "markeredgewidth": 0.8},
        )


def _statistics(point: Point) -> dict[str, Any]:
    delay = point.delay_ms
    return {
        "med": delay.p50,
        "q1": delay.p25,
        "q3": delay.p75,
        "whislo": delay.p1,
        "whishi": delay.p99,
        "fliers": [delay.min, delay.max],
    }


def _bounds(axes: Axes, result: FigureResult) -> float:
    """Draw guarantee and floor; return where the delay axis ends."""
    highest = max((point.delay_ms.max or 0.0 for one in result.series for point in one.points), default=0.0)
    if result.guarantee_ms is not None:
        axes.axhline(result.guarantee_ms, color=_GUARANTEE, linewidth=1.3, zorder=1)
        highest = max(highest, result.guarantee_ms)
    if result.floor_ms is not None:
        axes.axhline(result.floor_ms, color=_FLOOR, linewidth=1.0, zorder=1)
    return 1.1 * highest


def _loss(axes: Axes, series: Sequence[Series]) -> None:
    """Loss of all flows together: empty bullets where no packet was lost, filled ones where some were."""
    other = axes.twinx()
    other.spines["right"].set_color(_LOSS)
    places, shares, lost = [], [], []
    for place, points in enumerate(zip(*(one.points for one in series), strict=True)):
        packets = sum(point.packets for point in points)
        lost.append(sum(point.lost for point in points))
        places.append(place)
        shares.append(100 * lost[-1] / packets if packets else 0.0)
    other.plot(places, shares, color=_LOSS, linewidth=0.9, alpha=0.6, zorder=3)
    for place, share, count in zip(places, shares, lost, strict=True):
        fill = _LOSS if count else "white"
        other.plot(
            [place], [share], "o", color=_LOSS, markerfacecolor=fill, markersize=5, zorder=4, clip_on=False
        )
    highest = max(shares, default=0.0)
    other.set_ylim(0, _loss_axis(highest))
    other.set_ylabel("packet loss [%]", color=_LOSS)
    other.tick_params(axis="y", colors=_LOSS)


def _loss_axis(highest: float) -> float:
    """The end of the loss axis: the next of 1, 2, 5 times a power of ten with some air above."""
    for power in (0.0001, 0.001, 0.01, 0.1, 1, 10, 100):
        for step in (1, 2, 5):
            if 1.08 * highest <= step * power and highest > 0:
                return float(min(step * power, 100))
    return 100.0 if highest else 1.0


def _legend(figure: Figure, axes: Axes, result: FigureResult) -> None:
    entries: list[Any] = [
        Patch(facecolor=_BOXES[number % 2], edgecolor=_EDGE, label=one.label.replace("->", " → "))
        for number, one in enumerate(result.series)
    ]
    if result.guarantee_ms is not None:
        entries.append(Line2D([], [], color=_GUARANTEE, label=f"guarantee {result.guarantee_ms:.2f} ms"))
    if result.floor_ms is not None:
        entries.append(Line2D([], [], color=_FLOOR, label=f"idle switches {result.floor_ms:.3f} ms"))
    entries.append(_bullet("no loss", "white"))
    entries.append(_bullet("loss", _LOSS))
    axes.legend(
        handles=entries,
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=len(entries),
        frameon=False,
        fontsize=7.5,
        handlelength=1.5,
        columnspacing=1.2,
    )
    runs = f"{runs_of(result.provenance.runs, result.provenance.seconds)} a box, {result.setting} mode"
    figure.text(0.985, 0.012, runs, fontsize=6.5, color="#666666", ha="right")


def _bullet(label: str, fill: str) -> Line2D:
    return Line2D([], [], color=_LOSS, marker="o", markerfacecolor=fill, linestyle="none", label=label)


def _draw_table(result: FigureResult, captioned: bool) -> Figure:
    table = result.table
    if table is None:
        raise ValueError(f"{result.figure} is not a table")
    figure, axes = _canvas(result, 0.3 * (len(table.rows) + 1), captioned)
    axes.axis("off")
    cells = [[value if isinstance(value, str) else f"{value:.4g}" for value in row] for row in table.rows]
    heads = [re.sub(r"_(ms|mbps|kB)$", r" [\1]", name) for name in table.columns]
    heads = [name.replace("_", " ").replace("mbps", "Mbit/s") for name in heads]
    drawn = axes.table(cells, colLabels=heads, bbox=Bbox.unit())
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8)
    for (row, _), cell in drawn.get_celld().items():
        cell.set_edgecolor("#c0c6d0")
        cell.set_facecolor("#eef1f6" if row == 0 else "white")
    return figure
