"""The kind ``predictability``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.predictability.document import Predictability
from evaluation.kinds.predictability.production import compute, parameters
from evaluation.outcome import OneByOne

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
