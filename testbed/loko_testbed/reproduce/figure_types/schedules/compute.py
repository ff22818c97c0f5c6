"""Compute schedules on random networks."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.schedules import run_times, scheduled_flows
from loko_testbed.reproduce.figure_types.schedules.document import RunTimes, ScheduledFlows
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress


def compute(
    figure: ScheduledFlows | RunTimes, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Compute all schedules. Raises `InputError`, or `RunError` if the checker refutes one."""
    if isinstance(figure, RunTimes):
        return run_times.compute(figure, options, progress)
    return scheduled_flows.compute(figure, options, progress)


def _estimate_s(figure: ScheduledFlows | RunTimes) -> dict[str, float]:
    if isinstance(figure, RunTimes):
        return run_times.estimate_s(figure)
    return scheduled_flows.estimate_s(figure)


FIGURE_TYPE: Final = FigureType(
    documents=(ScheduledFlows, RunTimes), compute=OneByOne(compute), estimate_s=_estimate_s
)
