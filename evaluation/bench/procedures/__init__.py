"""The procedures of the bench, a file each: parts, durations, how it is measured, unit, text, numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from evaluation.bench.part import Procedure
from evaluation.bench.procedures import (
    backlog,
    buffer,
    cp_time,
    cp_time13,
    dp_time,
    dp_time13,
    housekeeping,
    idle,
    interference,
    is_time,
    overload,
    table,
    table13,
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

IN_OPENFLOW_13: Final[Mapping[str, Procedure]] = MappingProxyType(
    {
        dp_time.PROCEDURE.name: dp_time13.PROCEDURE,
        cp_time.PROCEDURE.name: cp_time13.PROCEDURE,
        table.PROCEDURE.name: table13.PROCEDURE,
    }
)
"""What a session of OpenFlow 1.3 changes, by the procedure that measures it in 1.0.

The others are about frames that find one entry, or none at all: they measure the same in both.
"""

EVERY_PROCEDURE: Final = (*PROCEDURES, *IN_OPENFLOW_13.values())
"""Of both versions."""
