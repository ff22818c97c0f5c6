"""Draw sweeps as the paper does (section 6.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import Transform

from loko_testbed.reproduce.plots.annotations import annotations_of, caption_of
from loko_testbed.reproduce.plots.canvas import (
    BOXES,
    EDGE,
    LEFT,
    PAPER,
    PRINTED_NUMBER,
    REFERENCE,
    RIGHT,
    SECOND,
    WIDTH_INCHES,
    box_statistics,
    canvas,
    footnote,
    symbols,
)
from loko_testbed.reproduce.plots.legend import legend_above, legend_inches
from loko_testbed.reproduce.result import (
    GUARANTEE_MS,
    LEAST_DELAY_MS,
    LOSS_PERCENT,
    MEDIAN_MS,
    Band,
    PointResult,
    Printed,
    Series,
    TrafficResult,
    runs_of,
)

_FLOOR: Final = "#000000"
_CARETS: Final = 0.965
"""Height of carets as a fraction of the plot's: above every delay, guarantee and loss."""
_BAND_LOOKS: Final[Mapping[str, dict[str, Any]]] = {
    LOSS_PERCENT: {"facecolor": SECOND, "alpha": 0.16},
    MEDIAN_MS: {"facecolor": "#d97706", "alpha": 0.22},
}
_BAND_NAMES: Final = {LOSS_PERCENT: "band of the loss", MEDIAN_MS: "band of the medians"}
_PLOT_INCHES: Final = 3.7
_ROW_INCHES: Final = 0.65
_ROWS_LEFT: Final = 0.2
"""Left end of a plot of a single point, whose flows are rows with texts on their left."""


def draw_sweep(result: TrafficResult, captioned: bool) -> Figure:
    """Draw boxes of delays with guarantee and floor, and the loss on a second axis (section 6.1)."""
    if len(result.series[0].points) == 1:
        return _draw_one_point(result, captioned)
    legend = _legend(result)
    width_inches = (RIGHT - LEFT) * WIDTH_INCHES
    figure, (bottom, height, _) = canvas(
        result,
        _PLOT_INCHES,
        captioned=captioned,
        axis_inches=0.62,
        footnote=True,
        head_inches=legend_inches(legend, width_inches),
    )
    axes = figure.add_axes((LEFT, bottom, RIGHT - LEFT, height))
    places = {point.x: place for place, point in enumerate(result.series[0].points)}
    _boxes(axes, result.series)
    for value, look in _bounds_of(result):
        axes.axhline(value, **look)
    axes.set_ylim(0, _end_of_delays(result))
    axes.set_ylabel("end-to-end delay [ms]")
    axes.set_xticks(list(places.values()), [f"{x:g}" for x in places])
    margin = max(0.6, 2.5 - len(places) / 2)
    axes.set_xlim(-margin, len(places) - 1 + margin)
    unit = f" [{result.x.unit}]" if result.x.unit else ""
    axes.set_xlabel(symbols(f"{result.x.name}{unit}"))
    marks = _printed(result)
    bands = _bands(result)
    _loss(
        axes,
        result.series,
        [(places[x], value) for x, value in _printed_losses(marks)],
        bands.get(LOSS_PERCENT),
    )
    if MEDIAN_MS in bands:
        _band(axes, bands[MEDIAN_MS], places, axes.transData, _BAND_LOOKS[MEDIAN_MS])
    _onsets(axes, marks, places)
    legend_above(axes, legend, width_inches)
    _tell_runs(figure, result)
    return figure


def _draw_one_point(result: TrafficResult, captioned: bool) -> Figure:
    """Draw a sweep of a single point: a horizontal box for each flow, with its loss as text."""
    legend = _bounds_legend(result)
    width_inches = (RIGHT - _ROWS_LEFT) * WIDTH_INCHES
    head_inches = legend_inches(legend, width_inches)
    figure, (bottom, height, _) = canvas(
        result,
        _ROW_INCHES * len(result.series),
        captioned=captioned,
        axis_inches=0.62,
        footnote=True,
        head_inches=head_inches + 0.22,
    )
    axes = figure.add_axes((_ROWS_LEFT, bottom, RIGHT - _ROWS_LEFT, height))
    flows = enumerate(line.points[0] for line in result.series)
    known = [(row, point) for row, point in flows if point.delay_ms.p50 is not None]
    if known:
        box_statistics(
            axes,
            [_statistics(point) for _, point in known],
            [row for row, _ in known],
            widths=0.5,
            facecolor=BOXES[0],
            lying=True,
        )
    for value, look in _bounds_of(result):
        axes.axvline(value, **look)
    axes.set_xlim(0, _end_of_delays(result))
    axes.set_xlabel("end-to-end delay [ms]")
    axes.set_yticks(range(len(result.series)), [_series_text(line) for line in result.series], fontsize=8)
    axes.set_ylim(len(result.series) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["right"].set_visible(False)
    (x,) = (point.x for point in result.series[0].points)
    axes.set_title(
        f"at {symbols(result.x.name)} = {x:g} {result.x.unit}".rstrip(),
        fontsize=8.5,
        pad=72 * head_inches + 3,
        loc="left",
    )
    legend_above(axes, legend, width_inches)
    _tell_runs(figure, result)
    return figure


def _series_text(line: Series) -> str:
    (point,) = line.points
    loss = f"{point.lost} of {point.packets} lost" if point.lost else f"none of {point.packets} lost"
    return f"{line.label.replace('->', ' → ')}\n{loss}"


def _tell_runs(figure: Figure, result: TrafficResult) -> None:
    runs = f"{runs_of(result.provenance.runs, result.provenance.seconds)} a box, {result.setting} mode"
    told = caption_of(_bands(result))
    footnote(figure, f"{runs}{told}")


def _boxes(axes: Axes, series: Sequence[Series]) -> None:
    width = 0.7 / len(series)
    for number, line in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * (width + 0.04)
        received = [
            (place, point) for place, point in enumerate(line.points) if point.delay_ms.p50 is not None
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


def _statistics(point: PointResult) -> dict[str, Any]:
    delay = point.delay_ms
    return {
        "med": delay.p50,
        "q1": delay.p25,
        "q3": delay.p75,
        "whislo": delay.p1,
        "whishi": delay.p99,
        "fliers": [delay.min, delay.max],
    }


def _bounds_of(result: TrafficResult) -> list[tuple[float, dict[str, Any]]]:
    """Return the guarantee and the least delay, where they are among the findings, with their line styles."""
    looks: Mapping[str, dict[str, Any]] = {
        GUARANTEE_MS: {"color": REFERENCE, "linewidth": 1.3, "zorder": 1},
        LEAST_DELAY_MS: {"color": _FLOOR, "linewidth": 1.0, "linestyle": "--", "zorder": 1},
    }
    return [
        (round(result.findings[name], 6), look) for name, look in looks.items() if name in result.findings
    ]


def _end_of_delays(result: TrafficResult) -> float:
    """Return the upper end of the delay axis: above every delay and the guarantee."""
    delays = [point.delay_ms.max or 0.0 for line in result.series for point in line.points]
    return 1.1 * max([*delays, *(value for value, _ in _bounds_of(result)), 0.0]) or 1.0


def _printed(result: TrafficResult) -> list[Printed]:
    """Return the paper's values at those x that were replayed."""
    there = {point.x for point in result.series[0].points}
    return [printed for printed in result.printed if printed.x in there]


def _printed_losses(marks: Sequence[Printed]) -> list[tuple[float, float]]:
    return [(mark.x, mark.value) for mark in marks if mark.x is not None and mark.value is not None]


def _onsets(axes: Axes, marks: Sequence[Printed], places: Mapping[float, int]) -> None:
    """Mark where the paper sees something begin, by a caret at the top and a line behind the boxes."""
    for mark in marks:
        if mark.x is None or mark.value is not None:
            continue
        look = _printed_look(mark)
        axes.axvline(places[mark.x], color=PAPER, linewidth=0.8, linestyle=":", zorder=0.5)
        axes.plot([places[mark.x]], [_CARETS], transform=axes.get_xaxis_transform(), **look)


def _printed_look(printed: Printed) -> dict[str, Any]:
    """Return the marker of a paper's value: a diamond for a number, a caret for an onset.

    The caret is hollow for an onset of late packets.
    """
    if printed.value is not None:
        return dict(PRINTED_NUMBER)
    face = "white" if printed.finding.startswith("late") else PAPER
    return {**PRINTED_NUMBER, "marker": "v", "markerfacecolor": face}


def _bands(result: TrafficResult) -> dict[str, Band]:
    """Return the bands by finding, limited to x that were replayed; a band needs at least two of them."""
    there = {point.x for point in result.series[0].points}
    bands = {}
    for finding, band in annotations_of(result).bands.items():
        kept = [number for number, x in enumerate(band.x) if x in there]
        if len(kept) > 1:
            values = {name: [getattr(band, name)[at] for at in kept] for name in ("x", "least", "most")}
            bands[finding] = band.model_copy(update=values)
    return bands


def _band(
    axes: Axes, band: Band, places: Mapping[float, int], scale: Transform, look: dict[str, Any]
) -> None:
    """Draw a band behind the boxes; `scale` is the transform of the band's axis."""
    at = [places[x] for x in band.x]
    axes.fill_between(at, band.least, band.most, transform=scale, linewidth=0, zorder=0.4, **look)


def _loss(
    axes: Axes, series: Sequence[Series], printed: Sequence[tuple[int, float]], band: Band | None
) -> None:
    """Draw the loss of all flows together: hollow bullets where no packet was lost, filled ones elsewhere.

    `printed` has the places and values, in per cent, of losses that the paper prints.
    """
    other = axes.twinx()
    other.spines["right"].set_color(SECOND)
    places, shares, lost = [], [], []
    for place, points in enumerate(zip(*(line.points for line in series), strict=True)):
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
    for place, share in printed:
        other.plot([place], [share], **PRINTED_NUMBER)
    highest = max([*shares, *(share for _, share in printed), *(band.most if band else [])], default=0.0)
    other.set_ylim(0, _loss_axis(highest))
    if band is not None:
        places_of = dict(zip((point.x for point in series[0].points), places, strict=True))
        _band(axes, band, places_of, other.transData, _BAND_LOOKS[LOSS_PERCENT])
    other.set_ylabel("packet loss [%]", color=SECOND)
    other.tick_params(axis="y", colors=SECOND)


def _loss_axis(highest: float) -> float:
    """Return the end of the loss axis: the next 1, 2 or 5 times a power of ten, with some room above."""
    for power in (0.0001, 0.001, 0.01, 0.1, 1, 10, 100):
        for step in (1, 2, 5):
            if 1.08 * highest <= step * power and highest > 0:
                return float(min(step * power, 100))
    return 100.0 if highest else 1.0


def _legend(result: TrafficResult) -> list[Any]:
    entries: list[Any] = [
        Patch(facecolor=BOXES[number % 2], edgecolor=EDGE, label=line.label.replace("->", " → "))
        for number, line in enumerate(result.series)
    ]
    entries += _bounds_legend(result)
    entries.append(_bullet("no loss", "white"))
    entries.append(_bullet("loss", SECOND))
    entries += [Patch(label=_BAND_NAMES[finding], **_BAND_LOOKS[finding]) for finding in _bands(result)]
    return entries + [
        Line2D([], [], label=f"paper: {printed.text}", **_printed_look(printed))
        for printed in _printed(result)
    ]


def _bounds_legend(result: TrafficResult) -> list[Any]:
    """Return the legend entries of guarantee, floor and the marks of a box."""
    texts = {GUARANTEE_MS: "guarantee {:.2f} ms", LEAST_DELAY_MS: "idle switches {:.3f} ms"}
    labels = [text.format(result.findings[name]) for name, text in texts.items() if name in result.findings]
    entries = [
        Line2D([], [], label=label, **look)
        for label, (_, look) in zip(labels, _bounds_of(result), strict=True)
    ]
    return [
        *entries,
        Line2D([], [], color=EDGE, linewidth=0.8, label="whiskers 1 % and 99 %, × least and largest"),
    ]


def _bullet(label: str, fill: str) -> Line2D:
    return Line2D([], [], color=SECOND, marker="o", markerfacecolor=fill, linestyle="none", label=label)
