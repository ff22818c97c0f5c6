"""The procedures of the bench, one file each: its parts, how to measure them, and the numbers they give."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from loko_testbed.measure.bench.part import Procedure
from loko_testbed.measure.bench.procedures import (
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
"""All procedures of OpenFlow 1.0, in the order of `loko bench all`."""

IN_OPENFLOW_13: Final[Mapping[str, Procedure]] = MappingProxyType(
    {
        dp_time.PROCEDURE.name: dp_time13.PROCEDURE,
        cp_time.PROCEDURE.name: cp_time13.PROCEDURE,
        table.PROCEDURE.name: table13.PROCEDURE,
    }
)
"""The procedures that measure something else in OpenFlow 1.3, by the name of their counterpart in 1.0.

The other procedures are about frames that match one entry, or none at all: they measure the same in both.
"""

EVERY_PROCEDURE: Final = (*PROCEDURES, *IN_OPENFLOW_13.values())
"""The procedures of both versions."""
