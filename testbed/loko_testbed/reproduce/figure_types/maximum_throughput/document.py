"""The document of a figure of maximum throughput."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from loko.document import StrictModel
from loko.switch_model.scenario import TABLE_1_ENTRIES, TABLE_1_FRAME_BYTES
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.procedures.throughput import throughput_tables
from loko_testbed.reproduce.figure_types.measured import MeasuredFigure


class Cases(StrictModel):
    """A selection of the cases of section 3.4.2; a dimension that is left out has all its values."""

    entries: Sequence[int] = TABLE_1_ENTRIES
    frame_bytes: Sequence[int] = TABLE_1_FRAME_BYTES

    def tables(self) -> Iterator[TableCase]:
        """Return the flow tables of these cases."""
        return (table for table in throughput_tables() if table.entries in self.entries)


class QuickThroughput(StrictModel):
    """The scale of a replay with ``--quick``."""

    samples: int = Field(ge=3)
    of: Cases = Cases()


class MaximumThroughput(MeasuredFigure):
    """The throughput by equations 5 and 6, compared with the measured one."""

    kind: Literal["maximum_throughput"]
    samples: int = Field(ge=3)
    """Single frames measured in each case, which give p_FX for the equations."""
    quick: QuickThroughput

    def cases(self, *, quick: bool) -> Cases:
        """Return the cases to measure."""
        return self.quick.of if quick else Cases()
