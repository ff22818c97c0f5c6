"""Figure 6b: processing time of every message but FLOW_MOD (section 3.2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.units import NS_PER_US
from loko_testbed.measure.bench.procedures.messages import (
    ACTIONS,
    ENTRIES,
    FLOW_STATISTICS,
    INTERRUPTED_NS,
    MeasuredMessage,
    hangs,
    messages,
)
from loko_testbed.reproduce.chart import BoxPanel, Chart, ChartAxis, FindingPlace
from loko_testbed.reproduce.figure_types.bench.document import SPREAD_BUT_STATISTICS, ControlPlane
from loko_testbed.reproduce.figure_types.bench.measured import (
    WHISKERS,
    Measured,
    Times,
    boxes_us,
    messages_shown,
    rows_of,
)
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel

_STAR: Final = "*"


def _evaluate(figure: ControlPlane, measured: Measured) -> tuple[Outcome, pa.Table]:
    """Draw one box per message."""
    times = measured.times
    by_message: dict[str, list[NDArray[np.int64]]] = {}
    for subject in messages():
        if subject.key in times:
            by_message.setdefault(str(subject.what[0]), []).append(times[subject.key])
    every = figure.count(quick=measured.options.quick)
    outcome = Outcome(
        chart=_chart({name: np.concatenate(series) for name, series in by_message.items()}, every),
        findings={**_findings(times, by_message), "late_barriers": float(measured.left_out)},
        x=AxisLabel(name="message", unit=""),
    )
    return outcome, rows_of(times)


def _findings(times: Times, by_message: dict[str, list[NDArray[np.int64]]]) -> dict[str, float]:
    spread = [float(values.std()) / NS_PER_US for values in times.values()]
    calm = [values[values < values.min() + INTERRUPTED_NS] for values in times.values()]
    # The paper excepts this message from the spread that it prints.
    others = [np.concatenate(series) for name, series in by_message.items() if name != FLOW_STATISTICS]
    findings = {
        SPREAD_BUT_STATISTICS: max(float(values.std()) for values in others) / NS_PER_US,
        "spread_median_us": float(np.median(spread)),
        "spread_without_timers_max_us": max(float(values.std()) for values in calm) / NS_PER_US,
        "met_timers": float(sum(map(len, times.values())) - sum(map(len, calm))),
        "samples": float(sum(map(len, times.values()))),
        **(_of_statistics(by_message[FLOW_STATISTICS]) if FLOW_STATISTICS in by_message else {}),
    }
    for name, series in by_message.items():
        if name != FLOW_STATISTICS:
            findings[f"{_snake(name)}_us"] = float(np.concatenate(series).mean()) / NS_PER_US
    return findings


def _of_statistics(times: list[NDArray[np.int64]]) -> dict[str, float]:
    return {
        "flow_stats_spread_us": float(np.concatenate(times).std()) / NS_PER_US,
        "flow_stats_combinations": float(len(times)),
        "combinations_that_hang": float(sum(hangs(entries, many) for entries in ENTRIES for many in ACTIONS)),
    }


def _but_statistics() -> Iterator[MeasuredMessage]:
    return (subject for subject in messages() if subject.what[0] != FLOW_STATISTICS)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _short(name: str) -> str:
    return name.removesuffix("Request")


def _chart(boxes: dict[str, NDArray[np.int64]], samples: int) -> Chart:
    panel = BoxPanel(
        x=ChartAxis(label=f"message ({_STAR} over 1 to 128 entries and 0 to 4 actions)"),
        y=ChartAxis(label="processing time [us]"),
        findings=[
            FindingPlace(finding=f"{_snake(name)}_us", x=place)
            for place, name in enumerate(boxes)
            if name != FLOW_STATISTICS
        ],
        places=[_short(name) + (_STAR if name == FLOW_STATISTICS else "") for name in boxes],
        groups=boxes_us(boxes.values()),
        whiskers=WHISKERS,
    )
    return Chart(panels=[panel], caption=f"{samples} samples of each message and table")


MESSAGES: Final = messages_shown(_evaluate, subjects=messages)
MESSAGES_BUT_STATISTICS: Final = messages_shown(_evaluate, subjects=_but_statistics)
