"""Drawn panels, checked on their artists: everything is there, and nothing hides anything."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from sample_charts import BOXES, COUNTS, HEAT, LINES, PANELS, SCATTER, chart_result, traffic_result

from loko_testbed.reproduce.chart import (
    BoxPanel,
    Chart,
    ChartAxis,
    ChartCurve,
    Overflow,
    Panel,
    Reference,
    ShareAnnotation,
    Span,
)
from loko_testbed.reproduce.plots.axes import set_axis
from loko_testbed.reproduce.plots.boxes import draw_boxes
from loko_testbed.reproduce.plots.canvas import PAPER
from loko_testbed.reproduce.plots.chart import draw_chart
from loko_testbed.reproduce.plots.panels import draw_histogram
from loko_testbed.reproduce.plots.sweep import draw_sweep
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


def drawn(figure: Figure) -> Figure:
    """Lay out a figure, so that all positions in it are known."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    return figure


def texts_of(figure: Figure) -> list[Text]:
    """Return all visible texts, with tick labels only of ticks within the axis."""
    texts = list(figure.texts)
    for axes in figure.findobj(Axes):
        legend = axes.get_legend()
        texts += axes.texts + (legend.get_texts() if legend else [])
        texts += [text for text in axes.get_children() if isinstance(text, Text)]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts.append(axis.label)
            for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                if low <= tick.get_loc() <= high:
                    texts += [tick.label1, tick.label2]
    return [text for text in dict.fromkeys(texts) if text.get_visible() and text.get_text().strip()]


def assert_legible(figure: Figure) -> None:
    """Assert that no text leaves the picture or overlaps another, and that no legend covers a plot."""
    drawn(figure)
    whole = figure.bbox
    extents = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure)]
    assert len(extents) > 5
    outside = [
        text for text, box in extents if box.x0 < 0 or box.y0 < 0 or box.x1 > whole.x1 or box.y1 > whole.y1
    ]
    assert not outside
    over = [
        (text, other)
        for (text, first), (other, second) in combinations(extents, 2)
        if first.padded(-0.5).overlaps(second.padded(-0.5))
    ]
    assert not over
    every = figure.findobj(Axes)
    for legend in filter(None, (axes.get_legend() for axes in every)):
        assert not [axes for axes in every if legend.get_window_extent().padded(-1).overlaps(axes.bbox)]


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("panel", [*PANELS, MANY, LOST], ids=lambda panel: panel.kind)
def test_no_text_overlaps_or_leaves_the_picture_and_legends_cover_nothing(panel: Panel, columns: int) -> None:
    panels = [panel.model_copy(update={"title": f"panel {number}"}) for number in range(3)]
    chart = Chart(panels=panels, columns=columns, caption="so many samples")
    assert_legible(draw_chart(chart_result(chart), chart, captioned=True))


def test_the_check_of_overlaps_can_fail() -> None:
    chart = Chart(panels=[BOXES])
    figure = draw_chart(chart_result(chart), chart, captioned=True)
    figure.axes[0].text(0.5, 1.05, "on the legend's texts " * 3, transform=figure.axes[0].transAxes)
    with pytest.raises(AssertionError):
        assert_legible(figure)


def axes_for_a_panel() -> Axes:
    return Figure(figsize=(7.6, 4)).add_axes((0.1, 0.1, 0.8, 0.8))


def boxes_of(axes: Axes) -> list[tuple[float, float]]:
    """Return the left and right ends of the drawn boxes."""
    outlines = [path.vertices[:, 0] for drawn in axes.collections[::3] for path in drawn.get_paths()]
    return [(xs.min(), xs.max()) for xs in outlines]


def joined(panel: BoxPanel, value: bool) -> BoxPanel:
    lines = [line.model_copy(update={"joined": value}) for line in panel.lines]
    return panel.model_copy(update={"lines": lines})


def drawn_throughputs(panel: BoxPanel) -> tuple[Axes, list[tuple[float, float, str]]]:
    """Return the panel's axes, and x, y and line style of every mark on the second axis."""
    axes = axes_for_a_panel()
    draw_boxes(axes, panel)
    other = axes.figure.axes[1]
    return axes, [
        (x, y, line.get_linestyle()) for line in other.lines for x, y in zip(*line.get_data(), strict=True)
    ]


def test_means_stand_beside_the_boxes_and_hide_none() -> None:
    axes = axes_for_a_panel()
    draw_boxes(axes, BOXES)
    boxes = boxes_of(axes)
    assert len(boxes) == 5
    means = [x for line in axes.lines if line.get_marker() in (4, 5) for x in line.get_xdata()]
    assert len(means) == 5
    assert not [x for x in means for left, right in boxes if left <= x <= right]


def test_a_range_lies_behind_the_boxes_and_within_the_axis() -> None:
    panel = BOXES.model_copy(update={"spans": [Span(label="range in the profile", low=40, high=90)]})
    chart = Chart(panels=[panel])
    figure = draw_chart(chart_result(chart), chart, captioned=True)
    assert_legible(figure)
    axes = figure.axes[0]
    (reach,) = (patch for patch in axes.patches if isinstance(patch, Rectangle))
    assert (reach.get_y(), reach.get_y() + reach.get_height()) == (40, 90)
    assert reach.get_zorder() < min(box.get_zorder() for box in axes.collections)
    assert axes.get_ylim()[1] > 90
    assert "range in the profile" in names_in_the_legend(figure)


def test_between_categories_there_is_no_line_and_every_value_is_a_mark_beside_its_box() -> None:
    axes, marks = drawn_throughputs(joined(BOXES, False))
    assert {style for _, _, style in marks} == {"None"}
    assert sorted(y for _, y, _ in marks) == [50, 60, 70, 80, 90]
    assert not [x for x, _, _ in marks for left, right in boxes_of(axes) if left <= x <= right]
    assert sorted(round(x) for x, _, _ in marks) == [0, 0, 1, 1, 2]
    assert all(abs(x - round(x)) < 0.4 for x, _, _ in marks)


def test_over_numbers_the_values_are_joined() -> None:
    _, marks = drawn_throughputs(joined(BOXES, True))
    assert {style for _, _, style in marks} == {"-", "--"}
    assert [x for x, _, _ in marks] == [0, 1, 0, 1, 2]


def test_lost_packets_have_a_place_beyond_the_end_of_the_delay_axis() -> None:
    panel = LOST.model_copy(update={"y": ChartAxis(label="packets [%]", low=0, high=10)})
    figure = Figure(figsize=(7.6, 4))
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    draw_histogram(axes, panel)
    drawn(figure)
    (apart,) = axes.child_axes
    assert apart.bbox.x0 >= axes.bbox.x1
    assert [bar.get_height() for bar in apart.patches] == [4]
    assert apart.get_ylim() == axes.get_ylim() == (0, 10)
    assert [label.get_text() for label in apart.get_xticklabels()] == ["lost\n4 of 18"]


def test_a_histogram_whose_samples_all_have_a_place_has_nothing_apart() -> None:
    axes = axes_for_a_panel()
    draw_histogram(axes, COUNTS)
    assert not axes.child_axes


@pytest.mark.parametrize(("low", "high"), [(0.1, 6), (0.3, 120), (50, 100_000)])
def test_numbers_beside_a_logarithmic_axis_do_not_run_into_each_other(low: float, high: float) -> None:
    axes = axes_for_a_panel()
    set_axis(axes, ChartAxis(label="delay [ms]", log=True, low=low, high=high), "x")
    drawn(axes.figure)
    texts = [text for text in texts_of(axes.figure) if text in axes.get_xticklabels(which="both")]
    assert len(texts) > 2
    places = sorted((box.x0, box.x1) for box in (text.get_window_extent() for text in texts))
    assert all(left[1] < right[0] for left, right in pairwise(places))


def test_an_axis_that_is_logarithmic_far_out_shows_what_is_far_out() -> None:
    far = SCATTER.clouds[0].model_copy(update={"x": [1, 10, 50], "y": [-8, 0.5, 98]})
    panel = SCATTER.model_copy(
        update={"clouds": [far], "diagonal": False, "y": ChartAxis(label="error [%]", linear_to=10)}
    )
    chart = Chart(panels=[panel])
    figure = drawn(draw_chart(chart_result(chart), chart, captioned=False))
    (axes,) = figure.axes
    (line,) = axes.lines
    low, high = axes.get_ylim()
    assert list(line.get_ydata()) == [-8, 0.5, 98]
    assert low < -8
    assert high > 98


def test_references_of_one_label_look_alike_and_are_named_once() -> None:
    twice = [Reference(label="6 %", value=value) for value in (2.2, 0.4)]
    panel = LINES.model_copy(update={"references": [*twice, Reference(label="other", value=1)]})
    chart = Chart(panels=[panel])
    (axes,) = draw_chart(chart_result(chart), chart, captioned=False).axes
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["with bars", "stairs", "6 %", "other"]
    alike, two, other = axes.lines[-3:]
    assert alike.get_color() == two.get_color() != other.get_color()


def test_every_cell_has_its_number_as_one_writes_it_and_colours_have_a_scale() -> None:
    panel = HEAT.model_copy(update={"cells": [[0.395, 2, 3], [2, None, None]]})
    chart = Chart(panels=[panel])
    (axes,) = draw_chart(chart_result(chart), chart, captioned=False).axes
    assert [text.get_text() for text in axes.texts] == ["0.395", "2", "3", "2"]
    (scale,) = axes.child_axes
    assert scale.get_ylabel() == "delay [ms]"


def test_curves_are_told_apart_without_colours() -> None:
    plain = [curve.model_copy(update={"marker": False}) for curve in MANY.curves[:4]]
    for curves in (MANY.curves, plain):
        panel = MANY.model_copy(update={"curves": curves, "references": []})
        chart = Chart(panels=[panel])
        (axes,) = draw_chart(chart_result(chart), chart, captioned=False).axes
        looks = {(line.get_marker(), str(line._dash_pattern)) for line in axes.lines}
        assert len(looks) == len(curves)


def sweep_result(xs: list[float]) -> TrafficResult:
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
    findings = {"guarantee_ms": 4.13, "least_delay_ms": 0.564}
    return traffic_result(None, series=series, findings=findings)


@pytest.mark.parametrize("xs", [[1.0], [1.0, 2.0, 3.0, 4.0]])
def test_a_sweep_is_legible(xs: list[float]) -> None:
    assert_legible(draw_sweep(sweep_result(xs), captioned=True))


PRINTED = [
    Printed(finding="loss_starts", x=2.0, text="loss from 2 on", fact="f"),
    Printed(finding="late_starts", x=3.0, text="late from 3 on", fact="f"),
    Printed(finding="loss_percent", x=4.0, value=60, text="around 60 % lost at 4", fact="f"),
    Printed(finding="loss_at", x=1.45, text="loss at 1.45", fact="f"),
]


def marks_of(axes: Axes, marker: str) -> list[tuple[float, float]]:
    """Return where the paper's marks stand, in data coordinates or in fractions of the axes' height."""
    lines = [line for line in axes.lines if line.get_marker() == marker and line.get_color() == PAPER]
    return [(float(x), float(y)) for line in lines for x, y in zip(*line.get_data(), strict=True)]


def names_in_the_legend(figure: Figure) -> list[str]:
    legends = filter(None, (axes.get_legend() for axes in figure.axes))
    return [text.get_text().replace("\n", " ") for legend in legends for text in legend.get_texts()]


def test_what_the_paper_prints_of_a_sweep_stands_at_its_place_and_hides_nothing() -> None:
    result = sweep_result([1.0, 2.0, 3.0, 4.0]).model_copy(update={"printed": PRINTED})
    figure = draw_sweep(result, captioned=True)
    assert_legible(figure)
    delays, losses = figure.axes
    assert [x for x, _ in marks_of(delays, "v")] == [1, 2]
    lines = [line for line in delays.lines if line.get_color() == PAPER and line.get_linestyle() == ":"]
    boxes = delays.collections[0]
    assert len(lines) == 2
    assert all(line.get_zorder() < boxes.get_zorder() for line in lines)
    assert marks_of(losses, "D") == [(3, 60)]
    assert losses.get_ylim()[1] > 60
    assert names_in_the_legend(figure)[-3:] == [
        "paper: loss from 2 on",
        "paper: late from 3 on",
        "paper: around 60 % lost at 4",
    ]


def test_carets_stand_above_every_delay_guarantee_and_loss() -> None:
    result = sweep_result([1.0, 2.0, 3.0, 4.0]).model_copy(update={"printed": PRINTED})
    figure = drawn(draw_sweep(result, captioned=False))
    delays, losses = figure.axes
    carets = [
        line.get_transform().transform(line.get_xydata())[0][1]
        for line in delays.lines
        if line.get_marker() == "v"
    ]
    highest = max(delays.transData.transform([(0, 4.13)])[0][1], losses.transData.transform([(0, 60)])[0][1])
    assert min(carets) > highest
    assert max(carets) < delays.bbox.y1


def test_the_papers_share_is_marked_where_ours_stands_and_told_beside_it() -> None:
    shares = [
        ShareAnnotation(name=name, finding=f"{name}_percent", text="1 %")
        for name in ("lost", "late", "in_time")
    ]
    panel = LOST.model_copy(update={"shares": shares})
    printed = [
        Printed(finding="lost_percent", value=92.4, text="92.4 %", fact="f"),
        Printed(finding="in_time_percent", text="not all of them", fact="f"),
    ]
    chart = Chart(panels=[panel])
    figure = draw_chart(traffic_result(chart, printed=printed), chart, captioned=True)
    assert_legible(figure)
    (axes,) = (axes_of_share for axes_of_share in figure.axes if axes_of_share.child_axes)
    (apart,) = axes.child_axes
    assert marks_of(apart, "D") == [(0, 92.4)]
    assert apart.get_ylim() == axes.get_ylim()
    assert apart.get_ylim()[1] > 92.4
    told = names_in_the_legend(figure)
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
    band(MEDIAN_MS, x=[1.0, 2.0, 3.0, 4.0], least=[0.6, 0.6, 1, 2], most=[0.7, 0.9, 2, 3]),
]


def ends_of_bands(axes: Axes) -> list[list[tuple[float, float, float]]]:
    """Return x, lowest and highest value along each band. Bands must lie behind the boxes, on their axis."""
    ends_of_bands = []
    for collection in axes.collections:
        if not isinstance(collection, FillBetweenPolyCollection):
            continue
        scale = collection.get_transform()
        (path,) = collection.get_paths()
        assert collection.get_zorder() < min(
            box.get_zorder() for box in axes.collections if box.get_zorder() >= 2
        )
        axis = next(each for each in axes.figure.axes if scale == each.transData)
        assert all(axis.get_ylim()[0] <= y <= axis.get_ylim()[1] for _, y in path.vertices)
        xs = sorted(set(path.vertices[:, 0]))
        ys = [[y for at, y in path.vertices if at == x] for x in xs]
        ends_of_bands.append([(float(x), float(min(y)), float(max(y))) for x, y in zip(xs, ys, strict=True)])
    return ends_of_bands


@pytest.mark.parametrize("captioned", [True, False])
def test_bands_of_a_sweep_lie_behind_the_boxes_and_the_caption_says_what_they_cover(captioned: bool) -> None:
    result = sweep_result([1.0, 2.0, 3.0, 4.0]).model_copy(update={"printed": PRINTED, "bands": BANDS})
    figure = draw_sweep(result, captioned=captioned)
    assert_legible(figure)
    medians, losses = sorted(ends_of_bands(figure.axes[0]), key=len, reverse=True)
    assert losses == [(0, 0, 0), (1, 3, 9), (3, 50, 62)]
    assert medians == [(0, 0.6, 0.7), (1, 0.6, 0.9), (2, 1, 2), (3, 2, 3)]
    assert {"band of the loss", "band of the medians"} <= set(names_in_the_legend(figure))
    assert [text.get_text() for text in figure.texts if COVERS in text.get_text()]


def test_without_bands_nothing_is_said_of_them() -> None:
    others = [band(LOSS_PERCENT, x=[7.0], least=[1], most=[2])]
    elsewhere = [BANDS[0].model_copy(update={"figure": "loko/another"})]
    for bands in ([], others, elsewhere):
        for xs in ([1.0, 2.0], [1.0]):
            figure = draw_sweep(sweep_result(xs).model_copy(update={"bands": bands}), captioned=True)
            assert not ends_of_bands(figure.axes[0])
            assert not [name for name in names_in_the_legend(figure) if "band" in name]
            assert not [text for text in figure.texts if "band" in text.get_text()]


@pytest.mark.parametrize("captioned", [True, False])
def test_a_band_of_a_share_stands_beside_its_column_and_is_told_in_words(captioned: bool) -> None:
    shares = [
        ShareAnnotation(name=name, finding=f"{name}_percent", text="1 %")
        for name in ("lost", "late", "in_time")
    ]
    panel = LOST.model_copy(update={"shares": shares})
    bands = [
        band("lost_percent", least=[25.04], most=[38.71]),
        band("late_percent", least=[0], most=[0]),
    ]
    chart = Chart(panels=[panel], caption="12700000 packets shown, 30 runs of 10 s")
    figure = draw_chart(chart_result(chart).model_copy(update={"bands": bands}), chart, captioned=captioned)
    assert_legible(figure)
    (axes,) = (axes_of_share for axes_of_share in figure.axes if axes_of_share.child_axes)
    (apart,) = axes.child_axes
    (bar,) = apart.patches
    (reach,) = (line for line in apart.lines if line.get_marker() == "_")
    assert list(reach.get_ydata()) == [25.04, 38.71]
    assert min(reach.get_xdata()) > bar.get_x() + bar.get_width()
    assert axes.get_ylim()[1] > 38.71
    told = names_in_the_legend(figure)
    assert "lost: here 1 %, band 25 to 38.8 %" in told
    assert "late: here 1 %, band 0 %" in told
    assert [text.get_text() for text in figure.texts if COVERS in text.get_text()]


def test_a_sweep_of_one_point_is_a_row_for_each_flow_with_its_loss_in_words() -> None:
    figure = drawn(draw_sweep(sweep_result([1.0]), captioned=False))
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["H1 → H3\nnone of 1000 lost", "H3 → H1\n7 of 1000 lost"]
    outlines = axes.collections[0].get_paths()
    assert [(path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in outlines] == [(0.65, 0.9)] * 2
    assert axes.get_title(loc="left") == "at x = 1"
    filled = np.ptp([path.vertices[:, 1] for path in outlines]) / abs(np.subtract(*axes.get_ylim()))
    assert filled > 0.5


def test_dashes_that_mean_something_are_the_only_ones() -> None:
    unmarked = [curve.model_copy(update={"marker": False}) for curve in MANY.curves[:3]]
    curves = [*unmarked, unmarked[0].model_copy(update={"dashed": True})]
    chart = Chart(panels=[MANY.model_copy(update={"curves": curves, "references": []})])
    (axes,) = draw_chart(chart_result(chart), chart, captioned=False).axes
    assert [line.get_linestyle() for line in axes.lines] == ["-", "-", "-", "--"]


def test_every_point_of_clouds_and_curves_is_drawn() -> None:
    chart = Chart(panels=[SCATTER, LINES])
    figure = draw_chart(chart_result(chart), chart, captioned=False)
    clouds, curves = figure.axes
    drawn_clouds = [list(zip(*line.get_data(), strict=True)) for line in clouds.lines[:2]]
    assert drawn_clouds == [list(zip(cloud.x, cloud.y, strict=True)) for cloud in SCATTER.clouds]
    wanted = [sum(y is not None for y in curve.y) for curve in LINES.curves]
    assert [int(np.isfinite(line.get_ydata()).sum()) for line in curves.lines[:1]] == wanted[:1]
    for axes, panel in ((clouds, SCATTER.clouds), (curves, LINES.curves)):
        low, high = axes.get_ylim()
        assert all(low <= y <= high for points in panel for y in points.y if y is not None)
