"""The page of a verdict: the row of table I, and for each mark the numbers and pictures behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup

from loko.html_templates import html_templates
from loko_testbed.measure.predictability import buffers, throughput
from loko_testbed.measure.predictability.marks import WORDS
from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.chart import (
    BoxGroup,
    BoxPanel,
    BoxStatistics,
    Chart,
    ChartAxis,
    ChartCurve,
    HeatPanel,
    LinePanel,
)
from loko_testbed.reproduce.plots.rendering import inline_svg
from loko_testbed.reproduce.result import AxisLabel, FigureResult, HostResult, Provenance
from loko_testbed.tasks.provenance import commit, versions

Results = Mapping[str, Any]
"""Results of the parts of a campaign, by their names."""

_ABOUT: Final = {
    "PT": {
        "title": "processing time",
        "assumption": "A constant bounds the time that the switch works on a frame.",
        "rfc2544": "latency of a store-and-forward device",
    },
    "PQ": {
        "title": "priority queueing",
        "assumption": "A frame of high priority waits for one frame of low priority, and for nothing else.",
        "rfc2544": "",
    },
    "TP": {
        "title": "throughput",
        "assumption": "The switch forwards line rate on all ports, in both directions, at the same time.",
        "rfc2544": "throughput",
    },
    "FM": {
        "title": "flow management",
        "assumption": "The switch has installed what it says it has, and its table does not shrink.",
        "rfc2544": "",
    },
    "BM": {
        "title": "buffer management",
        "assumption": "Each queue has its own memory, whatever the others hold.",
        "rfc2544": "back-to-back frames, for a single queue",
    },
}
_LOG_FROM: Final = 30.0
"""Times that differ by a larger factor are drawn on a logarithmic axis."""
_PLACES_BESIDE: Final = 6
"""More places with names do not fit into a panel with another one beside it."""


def page(
    document: Mapping[str, Any],
    title: str,
    results: Results,
    *,
    packets: int,
    seed: int,
    command: str,
    mode: str,
) -> str:
    """Return the page as one HTML file: `document` is `verdict.json`, `command` measures it again."""
    environment = html_templates("loko_testbed.reproduce")
    charts: dict[str, list[Chart]] = {
        "PT": _times(results),
        "PQ": _excesses(document["dimensions"]["PQ"]["numbers"]),
        "TP": [_rates(results)],
        "FM": [_fills(results)],
        "BM": _queues(results),
    }
    return environment.get_template("verdict.html.j2").render(
        **document,
        title=title,
        mode=mode,
        about=_ABOUT,
        words={mark.value: word for mark, word in WORDS.items()},
        pictures={
            name: [_drawn(f"{name}{place}", title, chart, seed) for place, chart in enumerate(of)]
            for name, of in charts.items()
        },
        parts=len(results),
        packets=packets,
        seed=seed,
        commit=commit(),
        command=command,
    )


def _times(results: Results) -> list[Chart]:
    """Return box plots of the processing times, by dimension: each box is a line at the median."""
    panels: list[BoxPanel] = []
    known = {name: of for name, of in results.items() if name.startswith("PT-") and of.sent > of.lost}
    longest = max((of.most_us for of in known.values()), default=0.0)
    shortest = min((of.least_us for of in known.values()), default=0.0)
    axis = ChartAxis(label="processing time [us]", log=longest > _LOG_FROM * max(shortest, 1e-3))
    for dimension in dict.fromkeys(name.split("-", 2)[1] for name in known):
        values = {
            name.split("-", 2)[2]: of for name, of in known.items() if name.split("-", 2)[1] == dimension
        }
        boxes = [
            BoxStatistics(
                whisker_low=of.least_us,
                q1=of.median_us,
                median=of.median_us,
                q3=of.median_us,
                whisker_high=of.most_us,
                min=of.least_us,
                max=of.most_us,
            )
            for of in values.values()
        ]
        panels.append(
            BoxPanel(
                x=ChartAxis(label=dimension.replace("_", " ")),
                y=axis,
                places=list(values),
                groups=[BoxGroup(label="", boxes=list(boxes))],
                whiskers="shortest, median and longest",
            )
        )
    wide = [panel for panel in panels if len(panel.places) > _PLACES_BESIDE and not panel.places[0].isdigit()]
    others = [panel for panel in panels if panel not in wide]
    return [Chart(panels=list(of), columns=columns) for of, columns in ((wide, 1), (others, 2)) if of]


def _excesses(numbers: Mapping[str, float]) -> list[Chart]:
    """Return a chart of the worst frame's excess over equation 2, by the length of interfering frames."""
    excesses_us = {
        int(match[1]): value
        for name, value in numbers.items()
        if (match := re.fullmatch(r"excess_(\d+)_us", name))
    }
    if not excesses_us:
        return []
    curve = ChartCurve(
        label="",
        x=[float(length) for length in sorted(excesses_us)],
        y=[excesses_us[at] for at in sorted(excesses_us)],
    )
    panel = LinePanel(
        x=ChartAxis(label="length of the interfering frames [bytes]"),
        y=ChartAxis(
            label="later than equation 2 by [us]",
            low=min(0.0, *excesses_us.values()),
            high=1.1 * max(1.0, *excesses_us.values()),
        ),
        curves=[curve],
    )
    return [Chart(panels=[panel])]


def _rates(results: Results) -> Chart:
    """Return a chart of the highest rates without loss, by frame length."""
    measured = [results[f"TP-{length}"] for length in throughput.FRAME_BYTES]
    panel = LinePanel(
        x=ChartAxis(label="length of the frames [bytes]"),
        y=ChartAxis(label="throughput of a port [Mbit/s]", low=0),
        curves=[
            ChartCurve(
                label="",
                x=[float(length) for length in throughput.FRAME_BYTES],
                y=[of.mbps for of in measured],
            )
        ],
    )
    return Chart(panels=[panel])


def _fills(results: Results) -> Chart:
    """Return charts of what became of the entries by the rate of adding, and of how many fit in each run."""
    fills = {
        float(match[1]): of[0]
        for name, of in results.items()
        if (match := re.fullmatch(r"FM-(\d+)-per-s", name))
    }
    rates = sorted(fills)
    outcomes: dict[str, list[float | None]] = {
        "sent without an error": [fills[at].sent for at in rates],
        "reported": [fills[at].listed for at in rates],
        "forwarded by": [fills[at].held for at in rates],
    }
    most = 1.1 * max(1, *(of.sent for of in fills.values()))
    by_rate = LinePanel(
        x=ChartAxis(label="entries added a second", log=True),
        y=ChartAxis(label="entries", low=0, high=most),
        curves=[ChartCurve(label=label, x=rates, y=counts) for label, counts in outcomes.items()],
    )
    rooms = {
        match[1]: [fill.room for fill in of]
        for name, of in results.items()
        if (match := re.fullmatch(r"FM-runs-(\d+)-s-apart", name))
    }
    by_run = LinePanel(
        x=ChartAxis(label="run on one switch"),
        y=ChartAxis(label="entries that fit", low=0, high=most),
        curves=[
            ChartCurve(
                label=f"{wait_s} s after each",
                x=[float(run) for run in range(1, len(of) + 1)],
                y=list(map(float, of)),
            )
            for wait_s, of in rooms.items()
        ],
    )
    return Chart(panels=[by_rate, by_run], columns=2)


def _queues(results: Results) -> list[Chart]:
    """Return charts of how many frames a queue holds, by congested ports and queues."""
    held = {
        case: results[name]
        for case in buffers.ALL_CASES
        if (name := f"BM-{case[0]}-ports-{case[1]}-queues") in results and results[name]
    }
    if not held or any(of.frames < 0 for of in held.values()):
        return []
    ports, queues = (sorted({case[place] for case in held}) for place in (0, 1))
    cells = [[held[p, q].frames if (p, q) in held else None for p in ports] for q in queues]
    panel = HeatPanel(
        x=ChartAxis(label="congested ports"),
        y=ChartAxis(label="congested queues of each"),
        value=ChartAxis(label="frames that a queue holds"),
        x_values=list(map(float, ports)),
        y_values=list(map(float, queues)),
        x_names=list(map(str, ports)),
        y_names=list(map(str, queues)),
        cells=cells,
    )
    return [Chart(panels=[panel])]


def _drawn(name: str, title: str, chart: Chart, seed: int) -> Markup:
    """Return a chart as an inline SVG element, with identifiers made unique within the page."""
    result = FigureResult(
        figure=name,
        paper="predictability",
        title=title,
        mode="virtual",
        seed=seed,
        x=AxisLabel(name="", unit=""),
        chart=chart,
        claims=[],
        notes=[],
        provenance=Provenance(
            commit=commit(),
            profile=title,
            host=HostResult(),
            runs=0,
            seconds=0,
            versions=versions(),
            assumptions={},
        ),
    )
    return inline_svg(pictures.svg(result, captioned=False), prefix=f"{name}-")
