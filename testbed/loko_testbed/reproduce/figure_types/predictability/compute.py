"""Produce the figures of the predictability study, each by its own measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from loko.switch_model.device import load_device
from loko_testbed.measure.predictability.marks import thresholds
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.predictability.buffering import compute_buffers
from loko_testbed.reproduce.figure_types.predictability.document import (
    Aging,
    Alternation,
    Buffers,
    Divergence,
    Insertion,
    Interferences,
    Predictability,
    PriorityQueueing,
    ProcessingTimes,
    Services,
    SnakeTest,
    SoftwareTimes,
    Specifications,
    TableSizes,
    TagStacks,
    Throughputs,
    Verdicts,
)
from loko_testbed.reproduce.figure_types.predictability.management import (
    compute_aging,
    compute_alternation,
    compute_divergence,
    compute_insertion,
    compute_sizes,
)
from loko_testbed.reproduce.figure_types.predictability.queueing import (
    compute_interferences,
    compute_queueing,
)
from loko_testbed.reproduce.figure_types.predictability.services import compute_services
from loko_testbed.reproduce.figure_types.predictability.snake_test import compute_snake_test, compute_table
from loko_testbed.reproduce.figure_types.predictability.specifications import compute_specifications
from loko_testbed.reproduce.figure_types.predictability.times import (
    compute_software,
    compute_stacks,
    compute_times,
)
from loko_testbed.reproduce.figure_types.predictability.verdict import compute_verdicts
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress


def parameters(figure: Predictability, _options: Options) -> Mapping[str, Any]:
    """Return devices and thresholds, on which the result depends apart from the figure's document."""
    return {
        "devices": {device: load_device(device).model_dump(mode="json") for device in figure.devices},
        "thresholds": thresholds().model_dump(mode="json"),
    }


def compute(figure: Predictability, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Measure and evaluate what the figure shows."""
    computes = _COMPUTES[type(figure.measures)]
    return computes(figure, figure.measures, options, progress)


_COMPUTES: Final[dict[type, Callable[..., tuple[Outcome, pa.Table]]]] = {
    ProcessingTimes: compute_times,
    SoftwareTimes: compute_software,
    PriorityQueueing: compute_queueing,
    Interferences: compute_interferences,
    SnakeTest: compute_snake_test,
    Throughputs: compute_table,
    Specifications: compute_specifications,
    Verdicts: compute_verdicts,
    Divergence: compute_divergence,
    Aging: compute_aging,
    Alternation: compute_alternation,
    Insertion: compute_insertion,
    TableSizes: compute_sizes,
    Buffers: compute_buffers,
    TagStacks: compute_stacks,
    Services: compute_services,
}
"""The function that computes a figure, by the type of its `measures`."""


_S_A_DEVICE: Final = {
    "processing-time": 3.0,
    "software-time": 4.0,
    "priority-queueing": 3.0,
    "interferences": 5.0,
    "throughput": 30.0,
    "throughput-table": 6.0,
    "specifications": 0.1,
    "verdicts": 40.0,
    "divergence": 10.0,
    "aging": 3.0,
    "alternation": 3.0,
    "insertion": 1.0,
    "table-sizes": 8.0,
    "buffers": 30.0,
    "tag-stacks": 2.0,
    "independent-services": 1.0,
}


def _estimate_s(figure: Predictability) -> dict[str, float]:
    return {"virtual": len(figure.devices) * _S_A_DEVICE[figure.measures.shows]}


FIGURE_TYPE: Final = FigureType(
    documents=(Predictability,),
    compute=OneByOne(compute, parameters),
    estimate_s=_estimate_s,
)
