"""Draw panels of boxes."""

from __future__ import annotations

from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from loko_testbed.reproduce.chart import BoxPanel, BoxStatistics, PlacedLine
from loko_testbed.reproduce.plots.axes import reference_entries, references, set_axis
from loko_testbed.reproduce.plots.canvas import BOXES, EDGE, SECOND, box_statistics

_MEAN: Final = "#b45309"
_AIR: Final = 1.1
_BESIDE: Final = 0.03
"""Gap between a box and the marks beside it; marks on a box would hide it, as most boxes are very flat."""
_TO_THE_LEFT, _TO_THE_RIGHT = 4, 5
"""Numbers of matplotlib's caret markers, whose tips are at the point."""
_SPAN_LOOK: Final[Any] = {"facecolor": "#d97706", "alpha": 0.2, "linewidth": 0, "zorder": 0.4}
_MANY_PLACES: Final = 6
_LONG_LABELS: Final = 40


def draw_boxes(axes: Axes, panel: BoxPanel) -> None:
    """Draw boxes at their places, their means beside them, and the values of the second axis."""
    groups = len(panel.groups)
    width = _boxes_wide(panel) / groups
    highest = 0.0
    for number, group in enumerate(panel.groups):
        shift = (number - (groups - 1) / 2) * (width + 0.04)
        there = [(place + shift, box) for place, box in enumerate(group.boxes) if box is not None]
        if not there:
            continue
        box_statistics(
            axes,
            [_as_drawn(box) for _, box in there],
            [place for place, _ in there],
            widths=width,
            facecolor=BOXES[number % 2],
        )
        outwards = 1 if shift >= 0 else -1
        means = [(place, box.mean) for place, box in there if box.mean is not None]
        axes.plot(
            [place + outwards * (width / 2 + _BESIDE) for place, _ in means],
            [mean for _, mean in means],
            **_mean_look(outwards),
        )
        highest = max(highest, *(box.max for _, box in there))
    _scales(axes, panel, highest)
    references(axes, panel.references)
    for span in panel.spans:
        axes.axhspan(span.low, span.high, **_SPAN_LOOK)
    _second_axis(axes, panel)


def _boxes_wide(panel: BoxPanel) -> float:
    """Return the share of a place's width that its boxes take: less where values stand beside them."""
    return 0.7 if all(line.joined for line in panel.lines) else 0.5


def names_are_slanted(panel: BoxPanel) -> bool:
    """Return whether the names of the places are too long to stand side by side."""
    return len(panel.places) > _MANY_PLACES and sum(map(len, panel.places)) > _LONG_LABELS


def _mean_look(outwards: int) -> dict[str, Any]:
    return {
        "linestyle": "none",
        "marker": _TO_THE_LEFT if outwards > 0 else _TO_THE_RIGHT,
        "markersize": 4,
        "markeredgewidth": 0,
        "color": _MEAN,
        "zorder": 4,
    }


def _as_drawn(box: BoxStatistics) -> dict[str, Any]:
    return {
        "med": box.median,
        "q1": box.q1,
        "q3": box.q3,
        "whislo": box.whisker_low,
        "whishi": box.whisker_high,
        "fliers": [box.min, box.max],
    }


def _scales(axes: Axes, panel: BoxPanel, highest: float) -> None:
    turned = names_are_slanted(panel)
    axes.set_xticks(range(len(panel.places)), panel.places, rotation=20 if turned else 0)
    if turned:
        axes.tick_params(axis="x", labelsize=7)
    margin = max(0.6, 2.5 - len(panel.places) / 2)
    axes.set_xlim(-margin, len(panel.places) - 1 + margin)
    axes.set_xlabel(panel.x.label)
    if not panel.y.log:
        limits = [reference.value for reference in panel.references if reference.axis == "y"]
        limits += [span.high for span in panel.spans]
        axes.set_ylim(0, _AIR * max([highest, *limits]) or 1)
    set_axis(axes, panel.y, "y")


def boxes_legend(panel: BoxPanel) -> list[Any]:
    """Return the legend entries of a panel of boxes."""
    entries: list[Any] = [
        Patch(facecolor=BOXES[number % 2], edgecolor=EDGE, label=group.label)
        for number, group in enumerate(panel.groups)
        if group.label
    ]
    whiskers = f"whiskers {panel.whiskers}, × least and largest"
    entries.append(Line2D([], [], color=EDGE, linewidth=0.8, label=whiskers))
    if any(box is not None and box.mean is not None for group in panel.groups for box in group.boxes):
        entries.append(Line2D([], [], label="mean", **_mean_look(1)))
    entries += reference_entries(panel.references)
    entries += [Patch(label=span.label, **_SPAN_LOOK) for span in panel.spans]
    by_label = {line.label: line for line in panel.lines}
    return entries + [Line2D([], [], label=label, **_line_look(line)) for label, line in by_label.items()]


def _second_axis(axes: Axes, panel: BoxPanel) -> None:
    """Draw the values at the places on a second axis, in blue."""
    if panel.second is None:
        return
    other = axes.twinx()
    other.spines["right"].set_color(SECOND)
    highest = 0.0
    for line in panel.lines:
        known = [(place, y) for place, y in enumerate(line.y) if y is not None]
        highest = max([highest, *(y for _, y in known)])
        aside = 0.0 if line.joined else _boxes_wide(panel) / 2 + 2 * _BESIDE
        other.plot([place - aside for place, _ in known], [y for _, y in known], **_line_look(line))
    if not panel.second.log:
        other.set_ylim(0, _AIR * highest or 1)
    set_axis(other, panel.second, "y")
    other.yaxis.label.set_color(SECOND)
    other.tick_params(axis="y", colors=SECOND, which="both")


def _line_look(line: PlacedLine) -> dict[str, Any]:
    """Return the style of a line. Values that are not joined are points, or dashes for ends of a range."""
    a_dash = line.dashed and not line.joined
    return {
        "color": SECOND,
        "linewidth": 1.1,
        "linestyle": ("--" if line.dashed else "-") if line.joined else "none",
        "marker": "_" if a_dash else "o",
        "markersize": 6 if a_dash else 3,
        "zorder": 3,
    }
