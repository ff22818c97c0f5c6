"""The documents of figures of a single switch on the bench; `shows` tells them apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from loko.document import StrictModel
from loko.switch_model.scenario import (
    TABLE_1_ENTRIES,
    TABLE_1_FRAME_BYTES,
    TABLE_1_MATCHES,
    ActionType,
    MatchType,
    PriorityOrder,
    UsedEntry,
)
from loko.units import BPS_PER_MBPS
from loko_testbed.measure.bench.cases import TableCase, tables
from loko_testbed.measure.bench.device_choice import DeviceChoice, choose
from loko_testbed.measure.bench.inventory import BENCHES
from loko_testbed.measure.bench.procedures.throughput import throughput_tables
from loko_testbed.reproduce.figure import IN_TASKS, Mode
from loko_testbed.reproduce.finding_checks import FindingFigure
from loko_testbed.simulation.options import Options

OrderName = Literal["increasing", "decreasing"]
EntryName = Literal["first", "last"]
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

SPREAD_BUT_STATISTICS: Final = "spread_max_us"
"""Finding of figure 6b: the largest standard deviation of a message other than FlowStatsRequest."""


class QuickSamples(StrictModel):
    """The scale of a replay with ``--quick``."""

    samples: int = Field(ge=3)


class BenchFigure(FindingFigure):
    """A figure of a single switch on the bench rather than of a lab."""

    supported_options = IN_TASKS
    kind: Literal["bench"]
    shows: str
    device: dict[Mode, str] = Field(min_length=1)
    """By mode: a profile in virtual time, else an inventory, as a name in ``labs/bench`` or a path."""
    samples: int = Field(ge=3)
    """Samples of each case: frames one by one, or messages."""
    quick: QuickSamples

    @model_validator(mode="after")
    def _device_for_every_mode(self) -> Self:
        for mode in self.modes:
            if mode not in self.device:
                raise ValueError(f"device: names none for mode {mode}")
        return self

    def count(self, *, quick: bool) -> int:
        """Return the number of samples of each case."""
        return (self.quick if quick else self).samples

    def chosen(self, options: Options) -> DeviceChoice:
        """Return the switch to measure in this mode. Raises `InputError`."""
        name = self.device["live" if options.mode == "live" else "virtual"]
        inventory = BENCHES / f"{name}.yml"
        return choose(str(inventory) if options.mode == "live" and inventory.is_file() else name)


class ControlPlane(BenchFigure):
    """Processing times of messages."""

    shows: Literal["echo-over-time", "messages", "messages-but-statistics", "flow-adds", "flow-searches"]
    """Figure 6a, 6b, 6b without FlowStatsRequest, 7a, or 7b."""

    def for_replication(self) -> Self | None:
        """See `Figure.for_replication`: without FlowStatsRequest, most of figure 6b, if no claim needs it."""
        part = super().for_replication()
        if part is None or self.shows != "messages" or set(part.read) != {SPREAD_BUT_STATISTICS}:
            return part
        return part.model_copy(update={"shows": "messages-but-statistics"})


class IntegratedSwitchFigure(BenchFigure):
    """Boxes of p_IS, the processing time of the integrated switch, by frame length."""

    shows: Literal["integrated-switch"]


class Subset(StrictModel):
    """A part of Table 1: values of each dimension; one that is left out has all its values."""

    entries: Sequence[int] = TABLE_1_ENTRIES
    frame_bytes: Sequence[int] = TABLE_1_FRAME_BYTES
    match: Sequence[MatchName] = tuple(match.value for match in TABLE_1_MATCHES)
    action: Sequence[ActionName] = tuple(action.value for action in ActionType)
    priorities: Sequence[OrderName] = tuple(order.value for order in PriorityOrder)
    used_entry: Sequence[EntryName] = tuple(entry.value for entry in UsedEntry)

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


class QuickProcessingTimes(QuickSamples):
    """The scale of a replay with ``--quick``."""

    of: Subset = Subset()
    """Restricts the figure's part of Table 1."""


class ProcessingTimesFigure(BenchFigure):
    """Boxes of p_FX by one dimension, aggregated over all other dimensions, and the resulting throughput."""

    shows: Literal["processing-times"]
    over: TableDimension
    of: Subset = Subset()
    quick: QuickProcessingTimes

    def chosen_part(self, *, quick: bool) -> Subset:
        """Return the part of Table 1 to measure."""
        return self.of.common(self.quick.of) if quick else self.of

    def place(self, table: TableCase, frame_bytes: int) -> str:
        """Return a combination's place on the x axis."""
        if self.over == "frame_bytes":
            return str(frame_bytes)
        if self.over == "order":
            return f"{table.priorities.value}-{table.used_entry.value}"
        value = getattr(table, self.over)
        return str(getattr(value, "value", value))


class ThroughputCases(StrictModel):
    """A selection of the cases of section 3.4.2; a dimension that is left out has all its values."""

    entries: Sequence[int] = TABLE_1_ENTRIES
    frame_bytes: Sequence[int] = TABLE_1_FRAME_BYTES

    def tables(self) -> Iterator[TableCase]:
        """Return the flow tables of these cases."""
        return (table for table in throughput_tables() if table.entries in self.entries)


class QuickThroughput(QuickSamples):
    """The scale of a replay with ``--quick``."""

    of: ThroughputCases = ThroughputCases()


class MaximumThroughput(BenchFigure):
    """The throughput by equations 5 and 6, compared with the measured one; `samples` frames give p_FX."""

    shows: Literal["maximum-throughput"]
    quick: QuickThroughput

    def cases(self, *, quick: bool) -> ThroughputCases:
        """Return the cases to measure."""
        return self.quick.of if quick else ThroughputCases()


_FRAMES_FOR_P_FX: Final = 100


class QuickOverload(QuickSamples):
    """The scale of a replay with ``--quick``."""

    samples: int = Field(default=_FRAMES_FOR_P_FX, ge=3)
    rates: int = Field(ge=8)


class Overload(BenchFigure):
    """Output rate by input rate, with a curve for each number of entries; `samples` frames give p_FX."""

    shows: Literal["overload"]
    samples: int = Field(default=_FRAMES_FOR_P_FX, ge=3)
    entries: Sequence[int] = Field(min_length=1)
    frame_bytes: int = Field(ge=64, le=1518)
    match: MatchName
    priorities: OrderName
    used_entry: EntryName
    lowest_mbps: float = Field(gt=0)
    highest_mbps: float = Field(gt=0)
    """The paper prints no values of the x axis."""
    rates: int = Field(ge=8)
    """Number of equidistant input rates from lowest to highest."""
    quick: QuickOverload

    def for_replication(self) -> Self | None:
        """See `Figure.for_replication`: the curves that decide the claims; none depends on the others."""
        part = super().for_replication()
        if part is None:
            return None
        curves = [count for count in self.entries if any(f"_{count}_entries" in name for name in part.read)]
        return part.model_copy(update={"entries": curves or self.entries})

    def table(self, entries: int) -> TableCase:
        """Return the flow table of one curve."""
        return TableCase(
            entries=entries,
            match=MatchType(self.match),
            action=ActionType.OUTPUT,
            used_entry=UsedEntry(self.used_entry),
            priorities=PriorityOrder(self.priorities),
        )

    def rates_bps(self, *, quick: bool) -> list[int]:
        """Return the input rates."""
        count = (self.quick if quick else self).rates
        return [int(rate * BPS_PER_MBPS) for rate in np.linspace(self.lowest_mbps, self.highest_mbps, count)]
