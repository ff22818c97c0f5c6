"""Figure 6b: processing time of every message but FLOW_MOD (section 3.2.3)."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko_testbed.measure.bench.procedures.messages import (
    ACTIONS,
    ENTRIES,
    FLOW_STATISTICS,
    INTERRUPTED_NS,
    hangs,
    messages,
)
from loko_testbed.reproduce.chart import BoxGroup, BoxPanel, Chart, ChartAxis
from loko_testbed.reproduce.figure_types.control_plane.document import ControlPlane
from loko_testbed.reproduce.figure_types.control_plane.parts import (
    US,
    Times,
    measure_parts,
    rows_of,
    times_of,
)
from loko_testbed.reproduce.figure_types.measured import WHISKERS, box_us
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel
from loko_testbed.simulation.options import Options, Progress

_STAR: Final = "*"


def compute_messages(figure: ControlPlane, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Measure missing samples; draw one box per message. Raises `InputError` or `RunError`."""
    subjects = tuple(messages())
    samples, late = measure_parts(figure, options, progress, tuple(subject.key for subject in subjects))
    times = times_of(samples)
    by_message: dict[str, list[NDArray[np.int64]]] = {}
    for subject in subjects:
        by_message.setdefault(str(subject.what[0]), []).append(times[subject.key])
    every = figure.count(quick=options.quick)
    outcome = Outcome(
        chart=_chart({name: np.concatenate(series) for name, series in by_message.items()}, every),
        findings={**_findings(times, by_message), "late_barriers": float(late)},
        x=AxisLabel(name="message", unit=""),
        profile=figure.chosen(options).form,
    )
    return outcome, rows_of(times)


def _findings(times: Times, by_message: dict[str, list[NDArray[np.int64]]]) -> dict[str, float]:
    spread = [float(values.std()) / US for values in times.values()]
    calm = [values[values < values.min() + INTERRUPTED_NS] for values in times.values()]
    statistics = by_message[FLOW_STATISTICS]
    findings = {
        "spread_max_us": max(spread),
        "spread_median_us": float(np.median(spread)),
        "spread_without_timers_max_us": max(float(values.std()) for values in calm) / US,
        "met_timers": float(sum(map(len, times.values())) - sum(map(len, calm))),
        "samples": float(sum(map(len, times.values()))),
        "flow_stats_spread_us": float(np.concatenate(statistics).std()) / US,
        "flow_stats_combinations": float(len(statistics)),
        "combinations_that_hang": float(sum(hangs(entries, many) for entries in ENTRIES for many in ACTIONS)),
    }
    for name, series in by_message.items():
        if name != FLOW_STATISTICS:
            findings[f"{_snake(name)}_us"] = float(np.concatenate(series).mean()) / US
    return findings


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _short(name: str) -> str:
    return name.removesuffix("Request")


def _chart(boxes: dict[str, NDArray[np.int64]], samples: int) -> Chart:
    panel = BoxPanel(
        x=ChartAxis(label=f"message ({_STAR} over 1 to 128 entries and 0 to 4 actions)"),
        y=ChartAxis(label="processing time [us]"),
        places=[_short(name) + (_STAR if name == FLOW_STATISTICS else "") for name in boxes],
        groups=[BoxGroup(label="", boxes=[box_us(times) for times in boxes.values()])],
        whiskers=WHISKERS,
    )
    return Chart(panels=[panel], caption=f"{samples} samples of each message and table")
