"""The kind ``maximum_throughput``."""

from __future__ import annotations

import os
from typing import Final

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.maximum_throughput.document import MaximumThroughput
from evaluation.kinds.maximum_throughput.production import compute
from evaluation.kinds.measured import MEASURED
from evaluation.outcome import OneByOne

_CASE_CPU_S: Final = 0.4
"""One case in virtual time; measured on an x86-64 VM."""


def _estimate_s(figure: MaximumThroughput) -> dict[str, float]:
    cases = figure.cases(quick=False)
    count = sum(1 for _ in cases.tables()) * len(cases.frame_bytes)
    return {"virtual": 3 + count * _CASE_CPU_S / len(os.sched_getaffinity(0))}


KIND: Final = Kind(
    document=MaximumThroughput, produce=OneByOne(compute, MEASURED), estimate_s=_estimate_s, honours=IN_TASKS
)
