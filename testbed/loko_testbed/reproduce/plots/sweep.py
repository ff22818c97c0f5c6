"""Sweeps as Vega-Lite specifications, drawn as the paper does (section 6.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from loko_testbed.reproduce.chart import BoxGroup, BoxPanel, BoxStatistics, ChartAxis, PlacedLine, Reference
from loko_testbed.reproduce.plots.annotations import annotations_of, caption_of
from loko_testbed.reproduce.plots.caption import picture
from loko_testbed.reproduce.plots.marks import (
    PRINTED,
    PRINTED_ENTRY,
    SHAPES,
    LegendEntry,
    Spec,
    field,
    layer,
    tooltip,
)
from loko_testbed.reproduce.plots.panels import BesideBoxes, box_axes, box_panel
from loko_testbed.reproduce.plots.theme import PAPER, SECOND, WIDTH, lightened
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

_CARETS: Final = 0.035
"""Distance of carets from the top, as a fraction of the height: above every delay, guarantee and loss."""
_BANDS: Final[Mapping[str, tuple[str, str]]] = {
    LOSS_PERCENT: ("band of the loss", lightened(SECOND, 0.16)),
    MEDIAN_MS: ("band of the medians", lightened("#d97706", 0.22)),
}
"""Names and colours of predicted bands, by their findings."""
_BOUNDS: Final = {GUARANTEE_MS: "guarantee {:.2f} ms", LEAST_DELAY_MS: "idle switches {:.3f} ms"}
_HEIGHT: Final = 330


def sweep_spec(result: TrafficResult, *, captioned: bool) -> Spec:
    """Return boxes of delays with guarantee and floor, and the loss on a second axis (section 6.1)."""
    panel = _panel(result)
    view = {"width": WIDTH, "height": _HEIGHT, **box_panel(panel, WIDTH, "zoom", _beside(result, panel))}
    if panel.second is None:
        (point,) = result.series[0].points
        view["title"] = {"text": f"at {result.x.name} = {point.x:g} {result.x.unit}".rstrip()}
    runs = f"{runs_of(result.provenance.runs, result.provenance.seconds)} a box, {result.setting} mode"
    return picture(result, [view], f"{runs}{caption_of(_bands(result))}", captioned=captioned)


def _panel(result: TrafficResult) -> BoxPanel:
    """Return the boxes: at each x one for each flow; if there is a single x, at each flow with its loss."""
    found = {name: round(result.findings[name], 6) for name in _BOUNDS if name in result.findings}
    common: dict[str, Any] = {
        "y": ChartAxis(label="end-to-end delay [ms]"),
        "whiskers": "1 % and 99 %",
        "references": [
            Reference(label=_BOUNDS[name].format(at) + _as_printed(result, name), value=at)
            for name, at in found.items()
        ],
    }
    first = result.series[0].points
    if len(first) == 1:
        boxes = [_box(point) for line in result.series for point in line.points]
        places = [_with_loss(line) for line in result.series]
        return BoxPanel(
            x=ChartAxis(label=""), places=places, groups=[BoxGroup(label="", boxes=boxes)], **common
        )
    losses = _losses(result.series)
    highest = [*filter(None, losses), *(mark.value for _, mark in _printed(result) if mark.value is not None)]
    bands = _bands(result)
    highest += bands[LOSS_PERCENT].most if LOSS_PERCENT in bands else []
    unit = f" [{result.x.unit}]" if result.x.unit else ""
    return BoxPanel(
        x=ChartAxis(label=f"{result.x.name}{unit}"),
        places=[f"{point.x:g}" for point in first],
        groups=[
            BoxGroup(label=_arrow(line.label), boxes=[_box(point) for point in line.points])
            for line in result.series
        ],
        second=ChartAxis(label="packet loss [%]", low=0, high=_end_of_losses(max(highest, default=0.0))),
        lines=[PlacedLine(label="packet loss (hollow: none)", y=losses)],
        **common,
    )


def _as_printed(result: TrafficResult, finding: str) -> str:
    """Return what the paper prints of a finding, to follow the text of its line; empty if nothing."""
    texts = [mark.text for mark in result.printed if mark.finding == finding]
    return f" (paper: {texts[0]})" if texts else ""


def _beside(result: TrafficResult, panel: BoxPanel) -> BesideBoxes:
    """Return what the paper prints and what was predicted; nothing for a single x."""
    if panel.second is None:
        return BesideBoxes()
    axes, printed, bands = box_axes(panel, WIDTH), _printed(result), _bands(result)
    drawn = {finding: _band(band, finding, result, axes) for finding, band in bands.items()}
    behind = [drawn[MEDIAN_MS]] if MEDIAN_MS in drawn else []
    on_second = []
    for place, mark in printed:
        rows = [{"place": place, "value": mark.value, "text": mark.text}]
        encoding = {"x": axes["x"], "tooltip": tooltip({"text": "paper"}, {})}
        look = {**PRINTED, "shape": SHAPES[_entry(mark).shape], "fill": _entry(mark).fill}
        if mark.value is None:
            line: Spec = {"color": PAPER, "strokeWidth": 0.9, "strokeDash": [1.5, 2]}
            behind.append(layer("rule", encoding, rows, **line))
            behind.append(layer("point", encoding | {"y": {"value": _CARETS * _HEIGHT}}, rows, **look))
        else:
            on_second.append(layer("point", encoding | {"y": field("value", **axes["second"])}, rows, **look))
    named = [LegendEntry(label=_BANDS[each][0], shape="box", fill=_BANDS[each][1]) for each in bands]
    return BesideBoxes(
        behind=behind,
        behind_on_second=[drawn[LOSS_PERCENT]] if LOSS_PERCENT in drawn else [],
        on_second=on_second,
        entries=[*named, *(_entry(mark) for _, mark in printed)],
    )


def _arrow(label: str) -> str:
    return label.replace("->", " → ")


def _with_loss(line: Series) -> str:
    (point,) = line.points
    loss = f"{point.lost} of {point.packets} lost" if point.lost else f"none of {point.packets} lost"
    return f"{_arrow(line.label)}\n{loss}"


def _box(point: PointResult) -> BoxStatistics | None:
    delay = point.delay_ms.model_dump()
    if delay["p50"] is None:
        return None
    names = {"median": "p50", "q1": "p25", "q3": "p75", "whisker_low": "p1", "whisker_high": "p99"}
    ends = {"min": delay["min"], "max": delay["max"]}
    return BoxStatistics(**ends, **{name: delay[quantile] for name, quantile in names.items()})


def _printed(result: TrafficResult) -> list[tuple[int, Printed]]:
    """Return the paper's values at those x that were replayed, with the places of these."""
    at = {point.x: place for place, point in enumerate(result.series[0].points)}
    return [(at[mark.x], mark) for mark in result.printed if mark.x is not None and mark.x in at]


def _entry(mark: Printed) -> LegendEntry:
    """Return the marker of a paper's value: a diamond for a number, a caret for an onset.

    The caret is hollow for an onset of late packets.
    """
    label = f"paper: {mark.text}"
    if mark.value is not None:
        return LegendEntry(label=label, **PRINTED_ENTRY)
    face = "white" if mark.finding.startswith("late") else PAPER
    return LegendEntry(label=label, shape="triangle-down", fill=face, stroke=PAPER)


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


def _band(band: Band, finding: str, result: TrafficResult, axes: Mapping[str, Spec]) -> Spec:
    at = {point.x: place for place, point in enumerate(result.series[0].points)}
    rows = [
        {"place": at[x], "least": least, "most": most}
        for x, least, most in zip(band.x, band.least, band.most, strict=True)
    ]
    y = {**axes["second"], "axis": None} if finding == LOSS_PERCENT else axes["y"]
    encoding = {
        "x": axes["x"],
        "y": field("least", **y),
        "y2": {"field": "most"},
        "tooltip": tooltip({}, {"least": "predicted from", "most": "to"}),
    }
    return layer("area", encoding, rows, color=_BANDS[finding][1])


def _losses(series: Sequence[Series]) -> list[float | None]:
    """Return the loss of all flows together at each x, in per cent; None where nothing was sent."""
    at_each_x = list(zip(*(line.points for line in series), strict=True))
    packets = [sum(point.packets for point in points) for points in at_each_x]
    lost = [sum(point.lost for point in points) for points in at_each_x]
    return [100 * part / whole if whole else None for part, whole in zip(lost, packets, strict=True)]


def _end_of_losses(highest: float) -> float:
    """Return the end of the loss axis: the next 1, 2 or 5 times a power of ten, with some room above."""
    for power in (0.0001, 0.001, 0.01, 0.1, 1, 10, 100):
        for step in (1, 2, 5):
            if 1.08 * highest <= step * power and highest > 0:
                return float(min(step * power, 100))
    return 100.0 if highest else 1.0
