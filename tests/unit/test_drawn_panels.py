"""What is drawn of a panel, read from the drawn artists: everything is there, and nothing hides anything."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sample_charts import BOXES

from evaluation.chart import BoxPanel
from evaluation.pictures.boxes import draw_boxes


def axes_for_a_panel() -> Axes:
    return Figure(figsize=(7.6, 4)).add_axes((0.1, 0.1, 0.8, 0.8))


def boxes_of(axes: Axes) -> list[tuple[float, float]]:
    """Left and right ends of the drawn boxes."""
    outlines = [path.vertices[:, 0] for drawn in axes.collections[::3] for path in drawn.get_paths()]
    return [(xs.min(), xs.max()) for xs in outlines]


def joined(panel: BoxPanel, value: bool) -> BoxPanel:
    lines = [line.model_copy(update={"joined": value}) for line in panel.lines]
    return panel.model_copy(update={"lines": lines})


def drawn_throughputs(panel: BoxPanel) -> tuple[Axes, list[tuple[float, float, str]]]:
    """The panel's axes, and x, y and line style of every mark on the second axis."""
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


def test_between_categories_there_is_no_line_and_every_value_is_a_mark_beside_its_box() -> None:
    axes, marks = drawn_throughputs(joined(BOXES, False))
    assert {style for _, _, style in marks} == {"None"}
    assert sorted(y for _, y, _ in marks) == [50, 60, 70, 80, 90]
    assert not [x for x, _, _ in marks for left, right in boxes_of(axes) if left <= x <= right]


def test_over_numbers_the_values_are_joined() -> None:
    _, marks = drawn_throughputs(joined(BOXES, True))
    assert {style for _, _, style in marks} == {"-", "--"}
    assert [x for x, _, _ in marks] == [0, 1, 0, 1, 2]
