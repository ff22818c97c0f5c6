"""Pictures as specifications: every number is in them, at its place, and nothing hides anything."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
import vl_convert
from sample_charts import BOXES, COUNTS, HEAT, LINES, PANELS, SCATTER, chart_result, traffic_result

from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.chart import (
    Chart,
    ChartAxis,
    ChartCurve,
    Overflow,
    Panel,
    Reference,
    ShareAnnotation,
    Span,
    TimePanel,
)
from loko_testbed.reproduce.plots.marks import SHAPES, Spec, axis_of
from loko_testbed.reproduce.plots.rendering import VEGA_LITE
from loko_testbed.reproduce.plots.theme import BOXES as COLOURS_OF_BOXES
from loko_testbed.reproduce.plots.theme import COLOURS, MEAN, PAPER, SECOND, WIDTH
from loko_testbed.reproduce.result import (
    LOSS_PERCENT,
    MEDIAN_MS,
    Band,
    DelayQuantiles,
    PointResult,
    Printed,
    Series,
    TrafficResult,
)

MANY = LINES.model_copy(
    update={
        "curves": [
            ChartCurve(label=f"a scheme with a long name, number {number}", x=[1, 2, 3], y=[number, 2, 3])
            for number in range(9)
        ]
    }
)
LOST = COUNTS.model_copy(update={"overflow": Overflow(label="lost", count=4, text="4 of 18")})


class Drawn(NamedTuple):
    """A layer of marks, in the order of drawing."""

    mark: Spec
    encoding: Spec
    rows: Sequence[dict[str, Any]]

    def field(self, channel: str) -> str | None:
        """Return the field that a channel encodes."""
        return self.encoding.get(channel, {}).get("field")

    def values(self, channel: str) -> list[Any]:
        """Return what the marks encode in a channel."""
        return [row.get(self.field(channel)) for row in self.rows]

    def domain(self, channel: str) -> list[float]:
        """Return the ends of the channel's axis, where the specification has them."""
        scale = self.encoding[channel]["scale"]
        return [scale["domainMin"], scale["domainMax"]]


def layers(spec: Spec, rows: Sequence[dict[str, Any]] = ()) -> Iterator[Drawn]:
    """Yield all layers of a picture, each with its own data or those around it."""
    rows = spec["data"]["values"] if "data" in spec else rows
    if "mark" in spec:
        yield Drawn(spec["mark"], spec["encoding"], rows)
    for part in [*spec.get("vconcat", []), *spec.get("concat", []), *spec.get("layer", [])]:
        yield from layers(part, rows)


def picture(*panels: Panel, columns: int = 1, captioned: bool = False, **changed: Any) -> Spec:
    chart = Chart(panels=list(panels), columns=columns, caption="so many samples")
    return pictures.specification(traffic_result(chart, **changed), captioned=captioned)


def drawn(spec: Spec, kind: str, **look: Any) -> list[Drawn]:
    """Return the layers with marks of this kind and look."""
    return [each for each in layers(spec) if each.mark["type"] == kind and look.items() <= each.mark.items()]


def legend(spec: Spec) -> dict[str, tuple[Any, ...]]:
    """Return the legends' entries: their looks by their texts."""
    entries = {}
    for each in layers(spec):
        channels = [each.encoding.get(name, {}) for name in ("shape", "fill", "stroke", "strokeDash")]
        if all(channel.get("legend") for channel in channels):
            looks = zip(*(map(str, channel["scale"]["range"]) for channel in channels), strict=True)
            entries |= dict(zip(channels[0]["scale"]["domain"], looks, strict=True))
    return {label.replace("\n", " "): look for label, look in entries.items()}


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("panel", [*PANELS, MANY, LOST], ids=lambda panel: panel.kind)
def test_neither_legend_nor_claims_widen_a_picture(panel: Panel, columns: int) -> None:
    panels = [panel.model_copy(update={"title": f"panel {number}"}) for number in range(3)]
    result = chart_result(Chart(panels=panels, columns=columns, caption="so many samples " * 20))
    width = float(ET.fromstring(pictures.svg(result)).get("width", "0"))
    assert WIDTH < width < WIDTH + 200


def boxes_of(spec: Spec) -> Drawn:
    """Return the drawn boxes."""
    (boxes,) = [each for each in drawn(spec, "bar") if each.field("y") == "q1"]
    return boxes


class Mark(NamedTuple):
    """A mark of the rendered picture: its place and size in pixels of its panel."""

    x: float
    y: float
    width: float
    height: float


def rendered(spec: Spec, kind: str, look: str, colour: str) -> list[Mark]:
    """Return the marks of a kind (rect, symbol) whose `look` (fill, stroke) has a colour."""

    def marks(part: Spec) -> Iterator[Mark]:
        for item in part.get("items", []):
            if part["marktype"] == kind and item.get(look) == colour:
                yield Mark(*(item.get(name, 0) for name in ("x", "y", "width", "height")))
            yield from (mark for inner in item.get("items", []) for mark in marks(inner))

    return list(marks(vl_convert.vegalite_to_scenegraph(spec, vl_version=VEGA_LITE)["scenegraph"]))


def test_a_mean_reaches_beyond_both_sides_of_its_box_and_hides_none() -> None:
    spec = picture(BOXES)
    boxes = [box for colour in COLOURS_OF_BOXES for box in rendered(spec, "rect", "fill", colour)]
    means = rendered(spec, "rect", "fill", MEAN)
    beyond = [
        (mean, box)
        for mean in means
        for box in boxes
        if mean.x < box.x and mean.x + mean.width > box.x + box.width and mean.width < 1.5 * box.width
    ]
    assert len(means) == len(beyond) == 5
    order = [each.field("y") for each in layers(spec)]
    assert order.index("mean") < order.index("q1")


def test_a_box_has_whiskers_quartiles_median_and_extremes() -> None:
    encoded = {each.field(channel) for each in layers(picture(BOXES)) for channel in ("y", "y2")}
    assert {"whisker_low", "q1", "median", "q3", "whisker_high", "min", "max"} <= encoded


def test_a_range_lies_behind_the_boxes_and_within_the_axis() -> None:
    spec = picture(BOXES.model_copy(update={"spans": [Span(label="range in the profile", low=40, high=90)]}))
    (reach,) = drawn(spec, "rect")
    assert (reach.values("y"), reach.values("y2")) == ([40], [90])
    order = [each.field("y") for each in layers(spec)]
    assert order.index("low") < order.index("q1")
    assert reach.domain("y")[1] > 90
    assert "range in the profile" in legend(spec)


@pytest.mark.parametrize("joined", [True, False])
def test_values_on_the_second_axis_are_joined_over_numbers_and_beside_their_boxes_else(joined: bool) -> None:
    lines = [line.model_copy(update={"joined": joined}) for line in BOXES.lines]
    spec = picture(BOXES.model_copy(update={"lines": lines}))
    marks = [each for each in drawn(spec, "point", stroke=SECOND) if each.field("y") == "y"]
    assert sorted(y for each in marks for y in each.values("y")) == [50, 60, 70, 80, 90]
    assert sorted(place for each in marks for place in each.values("x")) == [0, 0, 1, 1, 2]
    if joined:
        assert {str(each.mark["strokeDash"]) for each in drawn(spec, "line")} == {"(1, 0)", "(4, 2)"}
        return
    assert not drawn(spec, "line")
    assert len({each.mark["shape"] for each in marks}) == 2
    points = [point for point in rendered(spec, "symbol", "stroke", SECOND) if point.x]
    boxes = [box for colour in COLOURS_OF_BOXES for box in rendered(spec, "rect", "fill", colour)]
    assert len(points) >= 5
    assert len(boxes) >= 5
    assert not [point for point in points for box in boxes if box.x <= point.x <= box.x + box.width]


def column_of(spec: Spec) -> Drawn:
    """Return the column beyond the end of an axis."""
    (column,) = [each for each in drawn(spec, "rect") if "value" in each.encoding.get("x", {})]
    return column


def test_lost_packets_have_a_place_beyond_the_end_of_the_delay_axis() -> None:
    spec = picture(LOST.model_copy(update={"y": ChartAxis(label="packets [%]", low=0, high=10)}))
    column = column_of(spec)
    assert column.encoding["x"]["value"] > spec["vconcat"][0]["concat"][0]["width"]
    assert column.values("y") == [4]
    assert column.encoding["y2"]["value"] == spec["vconcat"][0]["concat"][0]["height"]
    assert column.domain("y") == [0, 10]
    assert "lost\n4 of 18" in [row.get("name") for each in drawn(spec, "text") for row in each.rows]


def test_every_count_of_a_histogram_is_drawn_and_nothing_is_apart_if_all_have_a_place() -> None:
    columns = drawn(picture(COUNTS), "bar")
    assert [each.values("y") for each in columns] == [list(each.counts) for each in COUNTS.histograms]


def labels_of(spec: Spec, channel: str) -> list[str]:
    """Return the texts that an axis shows."""

    def texts(part: Spec, role: str) -> Iterator[str]:
        for item in part.get("items", []):
            if part.get("role") == "axis-label" and role == channel and item.get("opacity", 1):
                yield item["text"]
            is_axis = part.get("role") == "axis"
            inner_role = ("y" if item.get("orient") in ("left", "right") else "x") if is_axis else role
            yield from (text for inner in item.get("items", []) for text in texts(inner, inner_role))

    return list(texts(vl_convert.vegalite_to_scenegraph(spec, vl_version=VEGA_LITE)["scenegraph"], ""))


def scattered(xs: list[float], ys: list[float], **axes: ChartAxis) -> Spec:
    cloud = SCATTER.clouds[0].model_copy(update={"x": xs, "y": ys})
    changed = {"clouds": [cloud], "diagonal": False, "references": [], **axes}
    return picture(SCATTER.model_copy(update=changed))


@pytest.mark.parametrize(("low", "high"), [(0.1, 6), (0.3, 120), (50, 100_000), (2, 7)])
def test_a_logarithmic_axis_has_some_labels_but_not_many(low: float, high: float) -> None:
    spec = scattered([low, high], [1, 2], x=ChartAxis(label="", log=True))
    labels = [label for label in labels_of(spec, "x") if label]
    assert 2 < len(labels) < 18
    assert all(low / 2 <= float(label) <= 2 * high for label in labels)


def test_an_axis_that_is_logarithmic_far_out_shows_what_is_far_out() -> None:
    spec = scattered([1, 10, 50], [-8, 0.5, 98], y=ChartAxis(label="error [%]", linear_to=10))
    (points,) = drawn(spec, "point", filled=False)
    assert points.values("y") == [-8, 0.5, 98]
    assert points.encoding["y"]["scale"]["type"] == "symlog"
    assert {"0", "10", "50"} <= set(labels_of(spec, "y"))
    assert "200" not in labels_of(spec, "y")


def test_limits_of_an_axis_win_over_its_values() -> None:
    scale = axis_of(ChartAxis(label="", low=3, high=5))["scale"]
    assert (scale["domainMin"], scale["domainMax"]) == (3, 5)
    assert axis_of(ChartAxis(label=""), highest=10)["scale"]["domainMax"] == 11
    assert axis_of(ChartAxis(label="", high=5), highest=10)["scale"]["domainMax"] == 5
    assert labels_of(scattered([0, 9], [1, 2], x=ChartAxis(label="", low=3, high=5)), "x")[0] == "3.0"


def test_references_of_one_label_look_alike_and_are_named_once() -> None:
    twice = [Reference(label="6 %", value=value) for value in (2.2, 0.4)]
    spec = picture(LINES.model_copy(update={"references": [*twice, Reference(label="other", value=1)]}))
    assert list(legend(spec)) == ["with bars", "stairs", "6 %", "other"]
    lines = [each for each in drawn(spec, "rule") if each.field("y") == "value"]
    assert [each.values("y") for each in lines] == [[2.2], [0.4], [1]]
    looks = [(each.mark["color"], each.mark["strokeDash"]) for each in lines]
    assert looks[0] == looks[1]
    assert looks[2][0] != looks[0][0]
    assert looks[2][1] != looks[0][1]


def test_every_cell_has_its_number_as_one_writes_it_and_colours_have_a_scale() -> None:
    heat = HEAT.model_copy(update={"cells": [[0.395, 2, 6085], [76.4, None, None]]})
    spec = picture(heat)
    svg = pictures.svg(chart_result(Chart(panels=[heat]))).decode()
    assert {"0.395", "2", "6085", "76.4"} <= set(re.findall(">([^<]+)</text>", svg))
    (cells,) = drawn(spec, "rect")
    assert cells.values("color") == [0.395, 2, 6085, 76.4]
    assert cells.encoding["color"]["legend"]["title"] == "delay [ms]"


def test_curves_are_told_apart_without_colours() -> None:
    plain = [curve.model_copy(update={"marker": False}) for curve in MANY.curves[:4]]
    for curves in (MANY.curves, plain):
        spec = picture(MANY.model_copy(update={"curves": curves, "references": []}))
        assert len({(shape, dash) for shape, _, _, dash in legend(spec).values()}) == len(curves)
        markers = [each.mark["shape"] for each in drawn(spec, "point", opacity=1)]
        dashes = [str(each.mark["strokeDash"]) for each in drawn(spec, "line")]
        assert len(set(markers or dashes)) == len(curves)


def test_dashes_that_mean_something_are_the_only_ones() -> None:
    unmarked = [curve.model_copy(update={"marker": False}) for curve in MANY.curves[:3]]
    curves = [*unmarked, unmarked[0].model_copy(update={"dashed": True})]
    spec = picture(MANY.model_copy(update={"curves": curves, "references": []}))
    assert [each.mark["strokeDash"] for each in drawn(spec, "line")] == [(1, 0)] * 3 + [(4, 2)]


def test_every_point_of_clouds_and_curves_is_drawn_within_the_axes() -> None:
    clouds = drawn(picture(SCATTER), "point", filled=False)
    assert [list(zip(each.values("x"), each.values("y"), strict=True)) for each in clouds] == [
        list(zip(cloud.x, cloud.y, strict=True)) for cloud in SCATTER.clouds
    ]
    curves = drawn(picture(LINES), "line")
    assert [each.values("y") for each in curves] == [curve.y for curve in LINES.curves]
    assert [each.mark.get("interpolate") for each in curves] == [None, "step-after"]
    bars = drawn(picture(LINES), "errorbar")
    assert [(each.values("y"), each.values("y2")) for each in bars] == [([0.8, None, 2], [1.1, None, 3])]
    for panel in (SCATTER, LINES):
        spec = picture(panel)
        size = spec["vconcat"][0]["concat"][0]
        points = [
            point for look in ("fill", "stroke") for point in rendered(spec, "symbol", look, COLOURS[0])
        ]
        points = [point for point in points if point.x]
        assert points
        assert all(0 < point.x < size["width"] and 0 <= point.y < size["height"] for point in points)


def test_samples_over_time_are_one_broken_line_with_a_dot_in_every_cell_that_has_some() -> None:
    time = TimePanel(
        x=ChartAxis(label="t"),
        y=ChartAxis(label="y"),
        clouds=[SCATTER.clouds[0].model_copy(update={"x": [1, 1, 1.0001, 9], "y": [5, 5, 5, 7]})],
    )
    (dots,) = drawn(picture(time), "line", strokeCap="round")
    assert list(zip(dots.values("x"), dots.values("y"), strict=True)) == [
        (1, 5),
        (1, None),
        (9, 7),
        (9, None),
    ]


def sweep_result(xs: list[float], **changed: Any) -> TrafficResult:
    delay = DelayQuantiles(min=0.6, p1=0.61, p25=0.65, p50=0.7, p75=0.9, p99=1.5, max=2.0)
    series = [
        Series(
            label=label,
            flow=flow,
            points=[
                PointResult(
                    x=x,
                    packets=1000,
                    lost=lost,
                    loss=lost / 1000,
                    late=0,
                    explained=0,
                    guaranteed=True,
                    delay_ms=delay,
                )
                for x in xs
            ],
        )
        for flow, (label, lost) in enumerate((("H1->H3", 0), ("H3->H1", 7)))
    ]
    bounds = {"guarantee_ms": 4.13, "least_delay_ms": 0.564}
    return traffic_result(None, **{"series": series, "findings": bounds, **changed})


def sweep(xs: list[float], *, captioned: bool = False, **changed: Any) -> Spec:
    return pictures.specification(sweep_result(xs, **changed), captioned=captioned)


FOUR = [1.0, 2.0, 3.0, 4.0]
PRINTED = [
    Printed(finding="loss_starts", x=2.0, text="loss from 2 on", fact="f"),
    Printed(finding="late_starts", x=3.0, text="late from 3 on", fact="f"),
    Printed(finding="loss_percent", x=4.0, value=60, text="around 60 % lost at 4", fact="f"),
    Printed(finding="loss_at", x=1.45, text="loss at 1.45", fact="f"),
]


def filled(spec: Spec) -> list[Mark]:
    """Return the filled bullets in the middles of four places."""
    return [mark for mark in rendered(spec, "symbol", "fill", SECOND) if mark.x % (WIDTH / 4) == WIDTH / 8]


def test_a_sweep_has_its_boxes_bounds_and_losses() -> None:
    spec = sweep(FOUR)
    assert len(boxes_of(spec).rows) == 8
    bounds = [each for each in drawn(spec, "rule") if each.field("y") == "value"]
    assert [each.values("y") for each in bounds] == [[4.13], [0.564]]
    (bullets,) = drawn(spec, "point", stroke=SECOND)
    assert bullets.values("y") == [0.35] * 4
    assert len(filled(spec)) == 4
    unharmed = [sweep_result(FOUR).series[0]]
    assert filled(sweep(FOUR, series=unharmed)) == []
    assert list(legend(spec)) == [
        "H1 → H3",
        "H3 → H1",
        "whiskers 1 % and 99 %, × least and largest",
        "guarantee 4.13 ms",
        "idle switches 0.564 ms",
        "packet loss (hollow: none)",
    ]


def test_what_the_paper_prints_of_a_sweep_stands_at_its_place_and_hides_nothing() -> None:
    spec = sweep(FOUR, printed=PRINTED)
    marks = drawn(spec, "point", stroke=PAPER)
    carets = [each for each in marks if each.mark["shape"] == SHAPES["triangle-down"]]
    assert [each.values("x") for each in carets] == [[1], [2]]
    assert [each.mark["fill"] for each in carets] == [PAPER, "white"]
    order = list(layers(spec))
    onsets = drawn(spec, "rule", color=PAPER)
    assert [each.values("x") for each in onsets] == [[1], [2]]
    assert max(map(order.index, onsets)) < order.index(boxes_of(spec))
    (diamond,) = [each for each in marks if each.mark["shape"] == SHAPES["diamond"]]
    assert (diamond.values("x"), diamond.values("y")) == ([3], [60])
    assert diamond.domain("y")[1] > 60
    assert list(legend(spec))[-3:] == [
        "paper: loss from 2 on",
        "paper: late from 3 on",
        "paper: around 60 % lost at 4",
    ]


def test_carets_stand_above_every_delay_guarantee_and_loss() -> None:
    spec = sweep(FOUR, printed=PRINTED)
    view = next(part for part in spec["vconcat"] if part["width"] == WIDTH)
    carets = [each for each in drawn(spec, "point", stroke=PAPER) if "value" in each.encoding.get("y", {})]
    boxes, (bullets,) = boxes_of(spec), drawn(spec, "point", stroke=SECOND)
    highest = max(4.13 / boxes.domain("y")[1], 60 / bullets.domain("y")[1])
    assert carets
    assert all(0 < each.encoding["y"]["value"] < (1 - highest) * view["height"] for each in carets)


SHARES = [
    ShareAnnotation(name=name, finding=f"{name}_percent", text="1 %") for name in ("lost", "late", "in_time")
]


def test_the_papers_share_is_marked_where_ours_stands_and_told_beside_it() -> None:
    printed = [
        Printed(finding="lost_percent", value=92.4, text="92.4 %", fact="f"),
        Printed(finding="in_time_percent", text="not all of them", fact="f"),
    ]
    spec = picture(LOST.model_copy(update={"shares": SHARES}), printed=printed)
    column, (diamond,) = column_of(spec), drawn(spec, "point", stroke=PAPER)
    assert diamond.values("y") == [92.4]
    assert column.encoding["x"]["value"] < diamond.encoding["x"]["value"] < column.encoding["x2"]["value"]
    assert diamond.domain("y") == column.domain("y")
    assert diamond.domain("y")[1] > 92.4
    told = legend(spec)
    assert "lost: paper 92.4 %, here 1 %" in told
    assert "in_time: paper not all of them, here 1 %" in told
    assert not [name for name in told if name.startswith("late")]


COVERS = (
    "13 senders inferred from fig3c, 0.94 to 1.06 of the capacity, shapers up to 15 us late;"
    " 10 runs of 10 s each"
)


def band(finding: str, *, x: list[float] | None = None, least: list[float], most: list[float]) -> Band:
    return Band(figure="loko/fig0", finding=finding, x=x or [], least=least, most=most, covers=COVERS)


BANDS = [
    band(LOSS_PERCENT, x=[1.0, 2.0, 4.0], least=[0, 3, 50], most=[0, 9, 62]),
    band(MEDIAN_MS, x=FOUR, least=[0.6, 0.6, 1, 2], most=[0.7, 0.9, 2, 3]),
]


def covers_is_told(spec: Spec) -> bool:
    texts = [str(row.get("text")).replace("\n", " ") for each in drawn(spec, "text") for row in each.rows]
    return any(COVERS in text for text in texts)


@pytest.mark.parametrize("captioned", [True, False])
def test_bands_of_a_sweep_lie_behind_the_boxes_and_the_caption_says_what_they_cover(captioned: bool) -> None:
    spec = sweep(FOUR, captioned=captioned, printed=PRINTED, bands=BANDS)
    bands = drawn(spec, "area")
    ends = [list(zip(each.values("x"), each.values("y"), each.values("y2"), strict=True)) for each in bands]
    assert ends == [[(0, 0, 0), (1, 3, 9), (3, 50, 62)], [(0, 0.6, 0.7), (1, 0.6, 0.9), (2, 1, 2), (3, 2, 3)]]
    boxes, (bullets,) = boxes_of(spec), drawn(spec, "point", stroke=SECOND)
    order = list(layers(spec))
    assert max(map(order.index, bands)) < order.index(boxes)
    assert [each.domain("y") for each in bands] == [bullets.domain("y"), boxes.domain("y")]
    assert {"band of the loss", "band of the medians"} <= set(legend(spec))
    assert covers_is_told(spec)


def test_without_bands_nothing_is_said_of_them() -> None:
    others = [band(LOSS_PERCENT, x=[7.0], least=[1], most=[2])]
    elsewhere = [BANDS[0].model_copy(update={"figure": "loko/another"})]
    for bands in ([], others, elsewhere):
        for xs in ([1.0, 2.0], [1.0]):
            spec = sweep(xs, bands=bands)
            assert not drawn(spec, "area")
            assert not [name for name in legend(spec) if "band" in name]
            assert not covers_is_told(spec)


@pytest.mark.parametrize("captioned", [True, False])
def test_a_band_of_a_share_stands_beside_its_column_and_is_told_in_words(captioned: bool) -> None:
    bands = [
        band("lost_percent", least=[25.04], most=[38.71]),
        band("late_percent", least=[0], most=[0]),
    ]
    spec = picture(LOST.model_copy(update={"shares": SHARES}), captioned=captioned, bands=bands)
    (reach,) = drawn(spec, "errorbar", color=SECOND)
    assert (reach.values("y"), reach.values("y2")) == ([25.04], [38.71])
    assert reach.encoding["x"]["value"] > column_of(spec).encoding["x2"]["value"]
    assert reach.domain("y")[1] > 38.71
    assert {"lost: here 1 %, band 25 to 38.8 %", "late: here 1 %, band 0 %"} <= set(legend(spec))
    assert covers_is_told(spec)


def test_a_sweep_of_one_point_has_a_box_for_each_flow_with_its_loss_in_words() -> None:
    spec = sweep([1.0])
    boxes = boxes_of(spec)
    assert boxes.values("y") == [0.65] * 2
    assert "H1 \\u2192 H3\\nnone of 1000 lost" in boxes.encoding["x"]["axis"]["labelExpr"]
    assert "H3 \\u2192 H1\\n7 of 1000 lost" in boxes.encoding["x"]["axis"]["labelExpr"]
    assert spec["vconcat"][0]["title"]["text"] == "at x = 1"
    assert not drawn(spec, "line")


@pytest.mark.parametrize("captioned", [True, False])
def test_only_a_captioned_picture_has_title_and_claims(captioned: bool) -> None:
    spec = picture(BOXES, captioned=captioned)
    told = [row.get("text", "") for each in drawn(spec, "text") for row in each.rows]
    assert ("title" in spec) == captioned
    assert any(text.startswith("paper: ") for text in told) == captioned
    assert any(text.startswith("so many samples, virtual mode") for text in told)
