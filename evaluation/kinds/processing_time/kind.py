"""The kind ``processing_time``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.measured import MEASURED
from evaluation.kinds.processing_time.document import ProcessingTime
from evaluation.kinds.processing_time.estimate import estimate_s
from evaluation.kinds.processing_time.production import compute
from evaluation.outcome import OneByOne

KIND: Final = Kind(
    document=ProcessingTime, produce=OneByOne(compute, MEASURED), estimate_s=estimate_s, honours=IN_TASKS
)
