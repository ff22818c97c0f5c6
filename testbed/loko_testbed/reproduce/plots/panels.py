"""Panels of charts as Vega-Lite specifications."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from loko_testbed.reproduce.chart import (
    BoxPanel,
    ChartAxis,
    Cloud,
    HeatPanel,
    HistogramPanel,
    LinePanel,
    Panel,
    PlacedLine,
    ScatterPanel,
    TimelinePanel,
    TimePanel,
)
from loko_testbed.reproduce.plots.annotations import Annotations
from loko_testbed.reproduce.plots.curves import line_panel
from loko_testbed.reproduce.plots.marks import (
    DASHED,
    PRINTED,
    PRINTED_ENTRY,
    SHAPES,
    LegendEntry,
    Spec,
    as_it_is,
    axis_of,
    field,
    group,
    layer,
    legend,
    line_entry,
    places,
    reference_entries,
    reference_lines,
    share_of,
    tooltip,
    zoomable,
)
from loko_testbed.reproduce.plots.printed import (
    PrintedMark,
    cell_frames,
    entries_of,
    in_words,
    layers_of,
    marks_of,
    reaching,
)
from loko_testbed.reproduce.plots.theme import (
    BOXES,
    COLOURS,
    EDGE,
    FONT_WIDTH,
    MEAN,
    SECOND,
    WIDTH,
    lightened,
)
from loko_testbed.reproduce.plots.timeline import ROW, timeline_panel

_HEIGHTS: Final = {1: 310, 2: 255}
_NARROW_HEIGHT: Final = 210
"""Height of panels by how many stand in a row, and where there are more."""
_BETWEEN: Final = 90
"""Room between two panels for an axis, in pixels."""
_GAP: Final = 0.1
"""Gap between two boxes at a place, by their distance."""
_SPAN: Final = lightened("#d97706", 0.2)
_APART: Final = 0.3
_ROOM_BESIDE: Final = 0.5
"""Gap between two places of boxes, by their distance, and where values stand beside the boxes."""
_CLOUDS: Final = ("circle", "x", "triangle-up", "square", "diamond", "triangle-down")
_DOT: Final = 2.2
"""Diameter of the dot of a sample over time, in pixels."""
_CELL: Final = 1.1
"""Side of the cells of a picture: two samples in one look like one."""
_CELLS_WITH_NUMBERS: Final = 120
"""Heatmaps with at most this many cells show their numbers."""
_DARK: Final = 0.45
"""Place on the scale of colours from which on they are dark."""
_CELL_FONT: Final = 9
_TOGETHER: Final = 0.85
"""Width of the columns of several histograms in a bin, by that of the bin."""
_PALE: Final = 0.45
"""Opacity of a histogram's colour on white, as which its columns are filled."""
_OVERFLOW: Final[Spec] = {"fill": "#f0c48a", "stroke": "#92400e"}
_OVERFLOW_AT: Final = (14, 44)
"""Ends of the column beyond the end of an axis, in pixels from there."""
_WIDTH_BESIDE: Final = 60
_LEFT_OF_TITLE: Final = 30
"""Room of a title left of its panel, in pixels."""
_TITLE_FONT: Final = 11.5
_LEGEND_TITLE_FONT: Final = 11
_BOLD: Final = 1.1
"""Width of bold letters by that of others."""


def panel_spec(panel: Panel, others: Annotations, *, columns: int, name: str) -> Spec:
    """Return a panel of a chart with `columns` panels in a row; `name` is unique among its panels."""
    width = (WIDTH - (columns - 1) * _BETWEEN) // columns
    if isinstance(panel, HistogramPanel) and panel.overflow:
        width -= _WIDTH_BESIDE
    size = {"width": width, "height": _HEIGHTS.get(columns, _NARROW_HEIGHT)}
    if isinstance(panel, TimelinePanel):
        size["height"] = ROW * len(panel.rows)
        spec = timeline_panel(panel, width, name)
    elif isinstance(panel, BoxPanel):
        spec = box_panel(panel, width, name, marks=marks_of(panel.findings, others))
    elif isinstance(panel, LinePanel):
        spec = line_panel(panel, width, name, marks_of(panel.findings, others))
    elif isinstance(panel, HeatPanel):
        spec = heat_panel(panel, size, marks_of(panel.findings, others))
    elif isinstance(panel, HistogramPanel):
        spec = histogram_panel(panel, others, size, name)
    else:
        spec = point_panel(panel, size, name, marks_of(panel.findings, others))
    room = int((width + _LEFT_OF_TITLE) / (FONT_WIDTH * _TITLE_FONT * _BOLD))
    title: Spec = {"title": {"text": textwrap.wrap(panel.title, room)}} if panel.title else {}
    return {**size, **title, **spec}


_BOX_NUMBERS: Final = {
    "max": "largest",
    "whisker_high": "upper whisker",
    "q3": "75 %",
    "median": "median",
    "q1": "25 %",
    "whisker_low": "lower whisker",
    "min": "least",
}
_SECOND_AXIS: Final[Spec] = {f"{part}Color": SECOND for part in ("title", "label", "tick", "domain")}


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideBoxes:
    """Layers that a picture has beside the boxes, and their legend entries."""

    behind: Sequence[Spec] = ()
    """Behind the boxes."""
    behind_on_second: Sequence[Spec] = ()
    """Behind the boxes, on the second axis."""
    on_second: Sequence[Spec] = ()
    entries: Sequence[LegendEntry] = ()


def box_axes(panel: BoxPanel, width: float, marks: Sequence[PrintedMark] = ()) -> dict[str, Spec]:
    """Return the axes by their channels; the second one is named `second`."""
    known = [box for each in panel.groups for box in each.boxes if box is not None]
    highest = [line.value for line in panel.references if line.axis == "y"]
    highest += [mark.high for mark in marks if mark.place.of == "y"]
    highest += [*(span.high for span in panel.spans), *(box.max for box in known)]
    apart = _APART if all(line.joined for line in panel.lines) else _ROOM_BESIDE
    axes = {
        "x": places(panel.places, panel.x.label, apart=apart, width=width),
        "y": axis_of(reaching(panel.y, "y", marks), highest=max(highest, default=0.0)),
    }
    if panel.second is not None:
        values = [y for line in panel.lines for y in line.y if y is not None]
        values += [mark.high for mark in marks if mark.place.of == "second"]
        look = {"orient": "right", **_SECOND_AXIS}
        second = reaching(panel.second, "second", marks)
        axes["second"] = axis_of(second, highest=max(values, default=0.0), **look)
    return axes


def box_panel(
    panel: BoxPanel,
    width: float,
    name: str,
    more: BesideBoxes = BesideBoxes(),
    marks: Sequence[PrintedMark] = (),
) -> Spec:
    """Return boxes at their places, and the values of the second axis.

    A mean is a line behind its box, and wider than it: on it, it would hide it, as most boxes are very flat.
    """
    axes = box_axes(panel, width, marks)
    rows = [
        {**box.model_dump(), "place": place, "group": number, "box": each.label, "at": panel.places[place]}
        | {"colour": BOXES[number % 2]}
        for number, each in enumerate(panel.groups)
        for place, box in enumerate(each.boxes)
        if box is not None
    ]
    has_means = any(row["mean"] is not None for row in rows)
    numbers = _BOX_NUMBERS | ({"mean": "mean"} if has_means else {})
    at = {
        "x": axes["x"],
        "xOffset": {"field": "group", "type": "ordinal", "scale": {"padding": _GAP}},
        "tooltip": tooltip({"box": "box", "at": "at"}, numbers),
    }

    def encoding(low: str, high: str | None = None) -> Spec:
        return at | {"y": field(low, **axes["y"])} | ({"y2": {"field": high}} if high else {})

    thin: Spec = {"color": EDGE, "strokeWidth": 0.9}
    box = layer("bar", encoding("q1", "q3") | {"fill": as_it_is("colour")}, stroke=EDGE, strokeWidth=0.9)
    median = layer("tick", encoding("median"), color=EDGE, thickness=1.6, opacity=1)
    room = width * (1 - axes["x"]["scale"]["paddingInner"]) / len(panel.places) / len(panel.groups)
    mean = layer("tick", encoding("mean"), color=MEAN, thickness=2, opacity=1, size=room)
    whiskers = layer("errorbar", encoding("whisker_low", "whisker_high"), ticks={"size": 8}, **thin)
    ends = [layer("point", encoding(end), shape=SHAPES["x"], size=22, **thin) for end in ("min", "max")]
    ends = ends if _has_ends(panel) else []
    drawn = [*([mean] if has_means else []), whiskers, zoomable(box, name, ["y"]), median, *ends]
    on_first = [mark for mark in marks if mark.place.of != "second"]
    spans = [
        layer("rect", {"y": field("low", **axes["y"]), "y2": {"field": "high"}}, [ends], color=_SPAN)
        for ends in (span.model_dump() for span in panel.spans)
    ]
    left: Spec = {
        "layer": [
            *spans,
            *more.behind,
            *reference_lines(panel.references, axes),
            group(drawn, rows),
            *layers_of(on_first, axes, across="place"),
            *legend([*_box_entries(panel), *more.entries, *entries_of(marks)], width),
        ]
    }
    if panel.second is None:
        return left
    second = {"x": axes["x"], "y": axes["second"]}
    on_second = layers_of([mark for mark in marks if mark not in on_first], second, across="place")
    lines = [_placed_line(line, panel, second, width) for line in panel.lines]
    right = {"layer": [*lines, *more.on_second, *on_second]}
    behind = [{"layer": list(more.behind_on_second)}] if more.behind_on_second else []
    return {"layer": [*behind, left, right], "resolve": {"scale": {"y": "independent"}}}


def _box_entries(panel: BoxPanel) -> list[LegendEntry]:
    entries = [
        LegendEntry(label=each.label, shape="box", fill=BOXES[number % 2], stroke=EDGE)
        for number, each in enumerate(panel.groups)
    ]
    ends = ", × least and largest" if _has_ends(panel) else ""
    whiskers = f"whiskers {panel.whiskers}{ends}"
    if any(entry.label for entry in entries):
        entries.append(line_entry(whiskers, EDGE))
    else:
        look: Spec = {"shape": "box", "fill": BOXES[0], "stroke": EDGE}
        entries = [LegendEntry(label=f"quartiles, {whiskers}", **look)]
    if any(box is not None and box.mean is not None for each in panel.groups for box in each.boxes):
        entries.append(line_entry("mean", MEAN))
    entries += reference_entries(panel.references)
    entries += [LegendEntry(label=span.label, shape="box", fill=_SPAN) for span in panel.spans]
    for line in {line.label: line for line in panel.lines}.values():
        shape = f"line+{_bullet(line)}" if line.joined else _bullet(line)
        look = {"fill": SECOND, "stroke": SECOND, "dash": _dash(line)}
        entries.append(LegendEntry(label=line.label, shape=shape, **look))
    return entries


def _has_ends(panel: BoxPanel) -> bool:
    """Return whether some box has values beyond its whiskers."""
    boxes = [box for each in panel.groups for box in each.boxes if box is not None]
    return any((box.min, box.max) != (box.whisker_low, box.whisker_high) for box in boxes)


def _bullet(line: PlacedLine) -> str:
    return "dash" if line.dashed and not line.joined else "circle"


def _dash(line: PlacedLine) -> Sequence[float]:
    return DASHED if line.dashed and line.joined else (1, 0)


def _placed_line(line: PlacedLine, panel: BoxPanel, axes: Mapping[str, Spec], width: float) -> Spec:
    """Return values on the second axis: a line, points beside the boxes, or dashes for ends of a range.

    Points at 0 are hollow.
    """
    assert panel.second is not None
    rows = [
        {"y": y, "label": line.label, "place": place, "at": panel.places[place]}
        for place, y in enumerate(line.y)
        if y is not None
    ]
    tips = tooltip({"label": "value", "at": "at"}, {"y": panel.second.label})
    xy = {"x": axes["x"], "y": field("y", **axes["y"]), "tooltip": tips}
    fill = {"fill": {"condition": {"test": "datum.y > 0", "value": SECOND}, "value": "white"}}
    look: Spec = {"stroke": SECOND, "opacity": 1, "size": 26, "shape": SHAPES[_bullet(line)]}
    if line.joined:
        joined = layer("line", xy, color=SECOND, strokeWidth=1.2, strokeDash=_dash(line))
        return group([joined, layer("point", xy | fill, clip=False, **look)], rows)
    aside = -width / len(panel.places) * (1 - 0.8 * _ROOM_BESIDE) / 2
    return layer("point", xy | fill, rows, xOffset=aside, **look)


def point_panel(
    panel: ScatterPanel | TimePanel, size: Spec, name: str, marks: Sequence[PrintedMark] = ()
) -> Spec:
    """Return clouds of points."""
    axes = {"x": axis_of(reaching(panel.x, "x", marks)), "y": axis_of(reaching(panel.y, "y", marks))}
    is_dense = isinstance(panel, TimePanel)
    layers: list[Spec] = []
    entries: list[LegendEntry] = []
    if isinstance(panel, ScatterPanel) and panel.diagonal:
        known = [value for cloud in panel.clouds for value in (*cloud.x, *cloud.y)]
        ends = [{"x": end, "y": end} for end in (min(known), max(known))]
        xy = {of: field(of, **axes[of]) for of in "xy"}
        layers.append(layer("line", xy, ends, color="black", strokeWidth=1))
        entries.append(line_entry("equal", "black"))
    for number, cloud in enumerate(panel.clouds):
        colour = COLOURS[number % len(COLOURS)]
        shape = "circle" if is_dense else _CLOUDS[number % len(_CLOUDS)]
        drawn = _dots(cloud, axes, colour, size) if is_dense else _points(cloud, axes, colour, shape)
        layers.append(drawn if number else zoomable(drawn, name))
        look: Spec = {"fill": colour} if is_dense else {"stroke": colour}
        entries.append(LegendEntry(label=cloud.label, shape=shape, **look))
    layers += reference_lines(panel.references, axes)
    layers += layers_of(marks, axes)
    entries += [*reference_entries(panel.references), *entries_of(marks)]
    layers += legend(entries, size["width"])
    return {"layer": layers}


def _points(cloud: Cloud, axes: Mapping[str, Spec], colour: str, shape: str) -> Spec:
    rows = [{"x": x, "y": y, "cloud": cloud.label} for x, y in zip(cloud.x, cloud.y, strict=True)]
    tips = tooltip({"cloud": "points"}, {of: axes[of]["title"] or of for of in "xy"})
    xy = {of: field(of, **axes[of]) for of in "xy"} | {"tooltip": tips}
    look: Spec = {"color": colour, "shape": SHAPES[shape], "filled": False, "opacity": 1}
    return layer("point", xy, rows, size=26, strokeWidth=1.2, **look)


def _dots(cloud: Cloud, axes: Mapping[str, Spec], colour: str, size: Spec) -> Spec:
    """Return a dot in each cell of the picture that has samples: one line, broken after every point.

    Thousands of marks would be as many elements of the SVG; a line is one.
    """
    columns = _cells_of(cloud.x, axes["x"], size["width"])
    lines = _cells_of(cloud.y, axes["y"], size["height"])
    first: dict[tuple[int, int], tuple[float, float]] = {}
    for column, line, x, y in zip(columns, lines, cloud.x, cloud.y, strict=True):
        first.setdefault((column, line), (x, y))
    rounded = [[float(f"{value:.5g}") for value in sample] for sample in first.values()]
    rows = [row for x, y in rounded for row in ({"x": x, "y": y}, {"x": x})]
    xy = {"x": field("x", sort=None, **axes["x"]), "y": field("y", **axes["y"])}
    return layer("line", xy, rows, color=colour, strokeWidth=_DOT, strokeCap="round")


def _cells_of(values: Sequence[float], axis: Spec, pixels: float) -> list[int]:
    """Return the number of each value's cell along an axis of this length."""
    reach, is_log = (min(values), max(values)), axis["scale"].get("type") == "log"
    return [int(share_of(value, reach, is_log=is_log) * pixels / _CELL) for value in values]


def heat_panel(panel: HeatPanel, size: Spec, marks: Sequence[PrintedMark] = ()) -> Spec:
    """Return coloured cells of equal size with a scale of the colours; cells without a value stay white.

    If the cells are few, they show their numbers.
    """
    x_names = panel.x_names or [f"{value:g}" for value in panel.x_values]
    y_names = panel.y_names or [f"{value:g}" for value in panel.y_values]
    values = [cell for row in panel.cells for cell in row if cell is not None]
    domain = _colours_of(panel.value, values)
    is_narrow = size["width"] / len(x_names) < 4 * FONT_WIDTH * _CELL_FONT
    rows = [
        {"x": x, "y": y, "value": value, "dark": share_of(value, domain, is_log=panel.value.log) > _DARK}
        for y, cells in zip(y_names, panel.cells, strict=True)
        for x, value in zip(x_names, cells, strict=True)
        if value is not None
    ]
    turned = sum(len(name) + 1 for name in x_names) * FONT_WIDTH * 11 > size["width"]
    xy: Spec = {
        "x": _cells_axis("x", x_names, panel.x, labelAngle=-90 if turned else 0),
        "y": _cells_axis("y", y_names[::-1], panel.y),
        "tooltip": tooltip({"x": panel.x.label, "y": panel.y.label}, {"value": panel.value.label}),
    }
    scale: Spec = {"scheme": "viridis", "reverse": True, "domain": list(domain), "nice": False}
    # A second legend would stand beside the scale of colours, outside of the panel.
    title = f"{panel.value.label} (framed, {in_words(marks)})" if marks else panel.value.label
    lines = textwrap.wrap(title, int(size["width"] / (FONT_WIDTH * _LEGEND_TITLE_FONT)))
    bar: Spec = {
        "title": lines if len(lines) > 1 else title,
        "orient": "top",
        "gradientLength": size["width"],
    }
    if panel.value.log:
        scale["type"] = "log"
        bar["format"] = ".6~g"
    layers = [layer("rect", {**xy, "color": field("value", scale=scale, legend=bar)})]
    if len(x_names) * len(y_names) <= _CELLS_WITH_NUMBERS:
        ink = {"condition": {"test": "datum.dark", "value": "white"}, "value": "black"}
        large = {"test": "datum.value >= 1000", "field": "value", "type": "quantitative", "format": "d"}
        text = {"condition": large, **field("value", format=".2~r" if is_narrow else ".3~r")}
        layers.append(layer("text", {**xy, "text": text, "color": ink}, fontSize=_CELL_FONT))
    if marks:
        layers += cell_frames(marks, x_names, y_names, xy)
    return group(layers, rows)


def _cells_axis(name: str, names: Sequence[str], axis: ChartAxis, **more: Any) -> Spec:
    return {
        "field": name,
        "type": "ordinal",
        "scale": {"domain": list(names), "padding": 0},
        "title": axis.label or None,
        "axis": {"labelOverlap": True, **more},
    }


def _colours_of(axis: ChartAxis, values: Sequence[float]) -> tuple[float, float]:
    known = [value for value in values if value > 0 or not axis.log]
    low = axis.low if axis.low is not None else min(known, default=0.0)
    return low, axis.high if axis.high is not None else max(known, default=1.0)


def histogram_panel(panel: HistogramPanel, others: Annotations, size: Spec, name: str) -> Spec:
    """Return histograms side by side, and beyond the end of the axis a column for what has no place on it.

    `others` has the paper's values and predicted bands of the panel's shares.
    """
    finding = panel.shares[0].finding if panel.shares and panel.overflow is not None else ""
    paper, band = others.printed.get(finding), others.bands.get(finding)
    marks = [paper.value] if paper is not None and paper.value is not None else []
    reach = [band.least[0], band.most[0]] if band is not None else []
    counts = [count for each in panel.histograms for count in each.counts]
    counts += [panel.overflow.count] if panel.overflow else []
    highest = max(counts, default=0.0)
    beside = max([*marks, *reach], default=0.0)
    y = panel.y
    if beside > (highest if y.high is None else y.high):
        y = y.model_copy(update={"high": 1.1 * beside})
    printed_marks = marks_of(panel.findings, others)
    highest = max([highest, *(mark.high for mark in printed_marks if mark.place.of == "y")])
    axes = {
        "x": axis_of(reaching(panel.x, "x", printed_marks)),
        "y": axis_of(reaching(y, "y", printed_marks), highest=highest),
    }
    layers: list[Spec] = []
    for number, each in enumerate(panel.histograms):
        colour = COLOURS[number % len(COLOURS)]
        width = (1 if len(panel.histograms) == 1 else _TOGETHER) / len(panel.histograms)
        rows = [
            {
                "begin": begin + number * width * (end - begin),
                "end": begin + (number + 1) * width * (end - begin),
                "count": count,
                "series": each.label,
            }
            for (begin, end), count in zip(pairwise(panel.edges), each.counts, strict=True)
        ]
        columns = {
            "x": field("begin", bin="binned", **axes["x"]),
            "x2": {"field": "end"},
            "y": field("count", **axes["y"]),
            "tooltip": tooltip({"series": "of"}, {"begin": "from", "end": "to", "count": panel.y.label}),
        }
        look: Spec = {"fill": lightened(colour, _PALE), "stroke": colour, "strokeWidth": 0.8}
        bars = layer("bar", columns, rows, binSpacing=0, **look)
        layers.append(bars if number else zoomable(bars, name))
    layers += [*reference_lines(panel.references, axes), *layers_of(printed_marks, axes)]
    if panel.overflow is not None:
        layers += _overflow(panel, axes["y"], size, marks, reach)
    entries = [*_histogram_entries(panel, others), *entries_of(printed_marks)]
    layers += legend(entries, size["width"])
    return {"layer": layers}


def _overflow(
    panel: HistogramPanel, axis: Spec, size: Spec, marks: Sequence[float], reach: Sequence[float]
) -> list[Spec]:
    """Return a column on the same scale, marked with the paper's share and the band."""
    assert panel.overflow is not None
    left, right = (size["width"] + at for at in _OVERFLOW_AT)
    middle = (left + right) / 2
    tips = tooltip({"label": "beyond the axis", "text": "share"}, {})
    column = {
        "x": {"value": left},
        "x2": {"value": right},
        "y": field("count", **axis),
        "y2": {"value": size["height"]},
        "tooltip": tips,
    }
    name = {"x": {"value": middle}, "y": {"value": size["height"] + 6}, "text": as_it_is("name")}
    named = {"name": f"{panel.overflow.label}\n{panel.overflow.text}"}
    foot = {"x": {"value": left - 6}, "x2": {"value": right + 6}, "y": {"value": size["height"]}}
    layers = [
        layer("rect", column, [panel.overflow.model_dump()], **_OVERFLOW, clip=False),
        layer("rule", foot, [{}], clip=False, strokeWidth=1),
        layer("text", name, [named], lineBreak="\n", baseline="top", fontSize=10, clip=False),
    ]
    if marks:
        tips = tooltip({}, {"value": "paper"})
        at = {"x": {"value": middle}, "y": field("value", **axis), "tooltip": tips}
        layers.append(layer("point", at, [{"value": mark} for mark in marks], **PRINTED, clip=False))
    if reach:
        at = {"x": {"value": right + 6}, "y": field("low", **axis), "y2": {"field": "high"}}
        at["tooltip"] = tooltip({}, {"low": "predicted from", "high": "to"})
        ends = {"low": reach[0], "high": reach[1]}
        layers.append(layer("errorbar", at, [ends], color=SECOND, ticks={"size": 8}, clip=False))
    return layers


def _histogram_entries(panel: HistogramPanel, others: Annotations) -> list[LegendEntry]:
    """Return the entries of the histograms, the references, and the paper's values and bands.

    Each share with a paper's value or a band has an entry; only that of `overflow` is marked.
    """
    colours = [COLOURS[number % len(COLOURS)] for number in range(len(panel.histograms))]
    entries = [
        LegendEntry(label=each.label, shape="box", fill=lightened(colour, _PALE), stroke=colour)
        for each, colour in zip(panel.histograms, colours, strict=True)
    ]
    if panel.overflow is not None:
        label = f"{panel.overflow.label} ({panel.overflow.text})"
        entries.append(LegendEntry(label=label, shape="box", **_OVERFLOW))
    entries += reference_entries(panel.references)
    for number, share in enumerate(panel.shares):
        text = others.annotate(share.finding, share.text)
        if text is None:
            continue
        printed = share.finding in others.printed and others.printed[share.finding].value is not None
        look: Mapping[str, Any] = {"shape": "none"}
        if number == 0 and panel.overflow is not None:
            look = PRINTED_ENTRY if printed else {"shape": "dash", "stroke": SECOND}
        entries.append(LegendEntry(label=f"{share.name}: {text}", **look))
    return entries
