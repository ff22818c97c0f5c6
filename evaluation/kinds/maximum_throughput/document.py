"""The document of a figure of maximum throughput."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from evaluation.bench.cases import Table
from evaluation.bench.procedures.throughput import throughput_tables
from evaluation.kinds.measured import MeasuredFigure
from loko.document import Strict
from loko.scenario import TABLE_1_ENTRIES, TABLE_1_FRAME_BYTES


class Cases(Strict):
    """Which of the cases of section 3.4.2; all of what is left out."""

    entries: Sequence[int] = TABLE_1_ENTRIES
    frame_bytes: Sequence[int] = TABLE_1_FRAME_BYTES

    def tables(self) -> Iterator[Table]:
        """The flow tables of these cases."""
        return (table for table in throughput_tables() if table.entries in self.entries)


class Quick(Strict):
    """The small run of ``--quick``."""

    samples: int = Field(ge=3)
    of: Cases = Cases()


class MaximumThroughput(MeasuredFigure):
    """Equations 5 and 6 over the throughput that is measured."""

    kind: Literal["maximum_throughput"]
    samples: int = Field(ge=3)
    """Lone frames of each case, from which the equations take p_FX."""
    quick: Quick

    def cases(self, *, quick: bool) -> Cases:
        """What is to be measured."""
        return self.quick.of if quick else Cases()
