"""The document of a figure of processing times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field, model_validator

from loko.document import StrictModel
from loko.switch_model.scenario import (
    TABLE_1_ENTRIES,
    TABLE_1_FRAME_BYTES,
    TABLE_1_MATCHES,
    ActionType,
    PriorityOrder,
    UsedEntry,
)
from loko_testbed.measure.bench.cases import TableCase, tables
from loko_testbed.reproduce.figure_types.measured import MeasuredFigure

TableDimension = Literal["entries", "frame_bytes", "match", "action", "order"]
"""The dimension on the x axis; ``order`` combines the order of priorities and the used entry."""

MatchName = Literal["port", "tp-dst", "dl-dst", "masked-nw-dst", "five-tuple", "all"]
ActionName = Literal[
    "output",
    "set-vlan-id",
    "set-vlan-pcp",
    "strip-vlan",
    "set-dl-src",
    "set-nw-src",
    "set-nw-tos",
    "set-tp-src",
]


class Subset(StrictModel):
    """A part of Table 1: values of each dimension; one that is left out has all its values."""

    entries: Sequence[int] = TABLE_1_ENTRIES
    frame_bytes: Sequence[int] = TABLE_1_FRAME_BYTES
    match: Sequence[MatchName] = tuple(match.value for match in TABLE_1_MATCHES)
    action: Sequence[ActionName] = tuple(action.value for action in ActionType)
    priorities: Sequence[Literal["increasing", "decreasing"]] = tuple(order.value for order in PriorityOrder)
    used_entry: Sequence[Literal["first", "last"]] = tuple(entry.value for entry in UsedEntry)

    @model_validator(mode="after")
    def _of_table_1(self) -> Subset:
        for name, known in (("entries", TABLE_1_ENTRIES), ("frame_bytes", TABLE_1_FRAME_BYTES)):
            for value in getattr(self, name):
                if value not in known:
                    raise ValueError(f"{name}: {value} is not in Table 1 ({', '.join(map(str, known))})")
        return self

    def tables(self) -> Iterator[TableCase]:
        """Yield the flow tables of this part."""
        for table, _ in tables():
            if (
                table.entries in self.entries
                and table.match.value in self.match
                and table.action.value in self.action
                and table.priorities.value in self.priorities
                and table.used_entry.value in self.used_entry
            ):
                yield table

    def common(self, other: Subset) -> Subset:
        """Return the intersection of both parts."""
        both = {
            name: [value for value in getattr(self, name) if value in getattr(other, name)]
            for name in type(self).model_fields
        }
        return Subset.model_validate(both)


class QuickProcessingTime(StrictModel):
    """The scale of a replay with ``--quick``."""

    samples: int = Field(ge=3)
    of: Subset = Subset()
    """Restricts the figure's part of Table 1."""


class ProcessingTime(MeasuredFigure):
    """Boxes of p_FX by one dimension, aggregated over all other dimensions."""

    kind: Literal["processing_time"]
    over: TableDimension
    of: Subset = Subset()
    samples: int = Field(ge=3)
    """Frames measured in each combination."""
    quick: QuickProcessingTime

    def chosen_part(self, *, quick: bool) -> Subset:
        """Return the part of Table 1 to measure."""
        return self.of.common(self.quick.of) if quick else self.of

    def place(self, table: TableCase, frame_bytes: int) -> str:
        """Return a combination's place on the x axis."""
        if self.over == "entries":
            return str(table.entries)
        if self.over == "frame_bytes":
            return str(frame_bytes)
        if self.over == "match":
            return str(table.match.value)
        if self.over == "action":
            return str(table.action.value)
        return f"{table.priorities.value}-{table.used_entry.value}"
