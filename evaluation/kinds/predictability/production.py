"""Produces the figures of the predictability study, each by what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.predictability.document import (
    Lace,
    Predictability,
    PriorityQueueing,
    ProcessingTimes,
    SoftwareTimes,
    Throughputs,
)
from evaluation.kinds.predictability.lacing import compute_lace, compute_table
from evaluation.kinds.predictability.queueing import compute_queueing
from evaluation.kinds.predictability.times import compute_software, compute_times
from evaluation.kinds.predictability.verdict import compute_verdicts
from evaluation.options import Options, Progress
from evaluation.outcome import OneByOne, Outcome
from evaluation.predictability.marks import thresholds
from loko.device import load_device


def parameters(figure: Predictability, _options: Options) -> Mapping[str, Any]:
    """The devices and the thresholds, on which the result depends beside the figure's document."""
    return {
        "devices": {device: load_device(device).model_dump(mode="json") for device in figure.devices},
        "thresholds": thresholds().model_dump(mode="json"),
    }


def compute(figure: Predictability, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Replay the figure."""
    match figure.measures:
        case ProcessingTimes() as measures:
            return compute_times(figure, measures, options, progress)
        case SoftwareTimes() as measures:
            return compute_software(figure, measures, options, progress)
        case PriorityQueueing() as measures:
            return compute_queueing(figure, measures, options, progress)
        case Lace() as measures:
            return compute_lace(figure, measures, options, progress)
        case Throughputs() as measures:
            return compute_table(figure, measures, options, progress)
        case measures:
            return compute_verdicts(figure, measures, options, progress)


_S_A_DEVICE: Final = {
    "processing-time": 3.0,
    "software-time": 4.0,
    "priority-queueing": 3.0,
    "throughput": 30.0,
    "throughput-table": 6.0,
    "verdicts": 30.0,
}


def _estimate_s(figure: Predictability) -> dict[str, float]:
    return {"virtual": len(figure.devices) * _S_A_DEVICE[figure.measures.shows]}


KIND: Final = Kind(
    document=Predictability,
    produce=OneByOne(compute, parameters),
    estimate_s=_estimate_s,
    honours=IN_TASKS,
)
