"""Pictures of sweeps, as the paper draws them (section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from evaluation.pictures.canvas import (
    BOXES,
    EDGE,
    REFERENCE,
    SECOND,
    box_statistics,
    canvas,
    footnote,
    legend_above,
    symbols,
    title_of,
)
from evaluation.result import FigureResult, Point, Series, runs_of

_FLOOR: Final = "#000000"
_PLOT_INCHES: Final = 3.7


def draw_sweep(result: FigureResult, captioned: bool) -> Figure:
    """Boxes of delay beside guarantee and floor, with the loss on a second axis (section 6.1)."""
    figure, (bottom, height, _) = canvas(
        result, _PLOT_INCHES, captioned=captioned, axis_inches=0.62, footnote=True
    )
    axes = figure.add_axes((0.085, bottom, 0.825, height))
    if captioned:
        axes.set_title(title_of(result), loc="left", pad=26)
    places = {point.x: place for place, point in enumerate(result.series[0].points)}
    _boxes(axes, result.series)
    top = _bounds(axes, result)
    axes.set_ylim(0, top)
    axes.set_ylabel("end-to-end delay [ms]")
    axes.set_xticks(list(places.values()), [f"{x:g}" for x in places])
    margin = max(0.6, 2.5 - len(places) / 2)
    axes.set_xlim(-margin, len(places) - 1 + margin)
    unit = f" [{result.x.unit}]" if result.x.unit else ""
    axes.set_xlabel(symbols(f"{result.x.name}{unit}"))
    _loss(axes, result.series)
    legend_above(axes, _legend(result))
    runs = f"{runs_of(result.provenance.runs, result.provenance.seconds)} a box, {result.setting} mode"
    footnote(figure, runs)
    return figure


def _boxes(axes: Axes, series: Sequence[Series]) -> None:
    width = 0.7 / len(series)
    for number, one in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * (width + 0.04)
        received = [
            (place, point) for place, point in enumerate(one.points) if point.delay_ms.p50 is not None
        ]
        if not received:
            continue
        box_statistics(
            axes,
            [_statistics(point) for _, point in received],
            [place + shift for place, _ in received],
            widths=width,
            facecolor=BOXES[number % 2],
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
        axes.axhline(result.guarantee_ms, color=REFERENCE, linewidth=1.3, zorder=1)
        highest = max(highest, result.guarantee_ms)
    if result.floor_ms is not None:
        axes.axhline(result.floor_ms, color=_FLOOR, linewidth=1.0, zorder=1)
    return 1.1 * highest


def _loss(axes: Axes, series: Sequence[Series]) -> None:
    """Loss of all flows together: empty bullets where no packet was lost, filled ones where some were."""
    other = axes.twinx()
    other.spines["right"].set_color(SECOND)
    places, shares, lost = [], [], []
    for place, points in enumerate(zip(*(one.points for one in series), strict=True)):
        packets = sum(point.packets for point in points)
        lost.append(sum(point.lost for point in points))
        places.append(place)
        shares.append(100 * lost[-1] / packets if packets else 0.0)
    other.plot(places, shares, color=SECOND, linewidth=0.9, alpha=0.6, zorder=3)
    for place, share, count in zip(places, shares, lost, strict=True):
        fill = SECOND if count else "white"
        other.plot(
            [place], [share], "o", color=SECOND, markerfacecolor=fill, markersize=5, zorder=4, clip_on=False
        )
    highest = max(shares, default=0.0)
    other.set_ylim(0, _loss_axis(highest))
    other.set_ylabel("packet loss [%]", color=SECOND)
    other.tick_params(axis="y", colors=SECOND)


def _loss_axis(highest: float) -> float:
    """The end of the loss axis: the next of 1, 2, 5 times a power of ten with some air above."""
    for power in (0.0001, 0.001, 0.01, 0.1, 1, 10, 100):
        for step in (1, 2, 5):
            if 1.08 * highest <= step * power and highest > 0:
                return float(min(step * power, 100))
    return 100.0 if highest else 1.0


def _legend(result: FigureResult) -> list[Any]:
    entries: list[Any] = [
        Patch(facecolor=BOXES[number % 2], edgecolor=EDGE, label=one.label.replace("->", " → "))
        for number, one in enumerate(result.series)
    ]
    if result.guarantee_ms is not None:
        entries.append(Line2D([], [], color=REFERENCE, label=f"guarantee {result.guarantee_ms:.2f} ms"))
    if result.floor_ms is not None:
        entries.append(Line2D([], [], color=_FLOOR, label=f"idle switches {result.floor_ms:.3f} ms"))
    entries.append(_bullet("no loss", "white"))
    entries.append(_bullet("loss", SECOND))
    return entries


def _bullet(label: str, fill: str) -> Line2D:
    return Line2D([], [], color=SECOND, marker="o", markerfacecolor=fill, linestyle="none", label=label)
