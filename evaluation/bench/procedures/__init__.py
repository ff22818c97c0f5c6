"""The procedures of the bench, a file each: parts, durations, how it is measured, unit, text, numbers."""

from __future__ import annotations

from typing import Final

from evaluation.bench.part import Procedure
from evaluation.bench.procedures import (
    backlog,
    buffer,
    cp_time,
    dp_time,
    housekeeping,
    idle,
    interference,
    is_time,
    overload,
    table,
    throughput,
)

PROCEDURES: Final[tuple[Procedure, ...]] = (
    dp_time.PROCEDURE,
    cp_time.PROCEDURE,
    is_time.PROCEDURE,
    interference.PROCEDURE,
    throughput.PROCEDURE,
    buffer.PROCEDURE,
    idle.PROCEDURE,
    backlog.PROCEDURE,
    housekeeping.PROCEDURE,
    table.PROCEDURE,
    overload.PROCEDURE,
)
"""In the order of `loko bench all`."""
