"""Measure what a figure of the bench shows, as far as no other figure has, and evaluate it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import pyarrow as pa

from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.bench.document import (
    BenchFigure,
    ControlPlane,
    IntegratedSwitchFigure,
    MaximumThroughput,
    Overload,
    ProcessingTimesFigure,
)
from loko_testbed.reproduce.figure_types.bench.echo import ECHO_OVER_TIME
from loko_testbed.reproduce.figure_types.bench.flow_adds import FLOW_ADDS
from loko_testbed.reproduce.figure_types.bench.flow_searches import FLOW_SEARCHES
from loko_testbed.reproduce.figure_types.bench.integrated_switch import INTEGRATED_SWITCH
from loko_testbed.reproduce.figure_types.bench.maximum_throughput import MAXIMUM_THROUGHPUT
from loko_testbed.reproduce.figure_types.bench.measured import Shown, measure
from loko_testbed.reproduce.figure_types.bench.messages import MESSAGES, MESSAGES_BUT_STATISTICS
from loko_testbed.reproduce.figure_types.bench.overload import OVERLOAD
from loko_testbed.reproduce.figure_types.bench.processing_times import PROCESSING_TIMES
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_SHOWN: Final[Mapping[str, Shown]] = {
    "echo-over-time": ECHO_OVER_TIME,
    "messages": MESSAGES,
    "messages-but-statistics": MESSAGES_BUT_STATISTICS,
    "flow-adds": FLOW_ADDS,
    "flow-searches": FLOW_SEARCHES,
    "processing-times": PROCESSING_TIMES,
    "integrated-switch": INTEGRATED_SWITCH,
    "maximum-throughput": MAXIMUM_THROUGHPUT,
    "overload": OVERLOAD,
}
_OTHERS_S: Final = 3.0
"""Time for reading, drawing and writing."""


def compute(figure: BenchFigure, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Measure missing samples and evaluate all. Raises `InputError` or `RunError`."""
    shown = _SHOWN[figure.shows]
    measured = measure(figure, options, progress, partial(shown.parts, figure, options.quick))
    outcome, rows = shown.evaluate(figure, measured)
    return outcome.model_copy(update={"profile": measured.device.form}), rows


def _parameters(figure: BenchFigure, options: Options) -> Mapping[str, Any]:
    return figure.chosen(options).identity


def _estimate_s(figure: BenchFigure) -> dict[str, float]:
    """Estimate the time in seconds by mode, if no samples are kept yet."""
    shown = _SHOWN[figure.shows]
    times = {"virtual": _OTHERS_S + shown.virtual_s(figure)}
    if "live" in figure.modes:
        times["live"] = _OTHERS_S + sum(part.expected_s for part in shown.parts(figure, False))
    return {mode: times[mode] for mode in figure.modes if mode in times}


FIGURE_TYPE: Final = FigureType(
    documents=(ControlPlane, ProcessingTimesFigure, IntegratedSwitchFigure, MaximumThroughput, Overload),
    compute=OneByOne(compute, _parameters),
    estimate_s=_estimate_s,
)
