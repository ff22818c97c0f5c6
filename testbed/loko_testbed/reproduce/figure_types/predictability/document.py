"""The document of a figure of the predictability study."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field

from loko.document import StrictModel
from loko_testbed.measure.predictability.priority_queueing import HIGH_BYTES, LOW_BYTES
from loko_testbed.reproduce.figure import IN_TASKS
from loko_testbed.reproduce.finding_checks import FindingFigure

Packets = Annotated[int, Field(ge=100, le=1_000_000)]
Bursts = Annotated[int, Field(ge=100, le=100_000)]


class ProcessingTimes(StrictModel):
    """Processing times in hardware by one dimension of table III."""

    shows: Literal["processing-time"]
    varies: Literal["entries", "match", "action", "order", "frame_bytes", "rate_mbps"]
    """`order` varies all combinations of priorities and matching rule."""
    packets: Packets
    quick_packets: Packets


class SoftwareTimes(StrictModel):
    """Processing times of frames forwarded in software, at a rate that the CPU can handle."""

    shows: Literal["software-time"]
    rate_mbps: Annotated[float, Field(gt=0)]
    packets: Packets
    quick_packets: Packets


class PriorityQueueing(StrictModel):
    """Processing times of a high-priority flow, alone and beside three low-priority flows."""

    shows: Literal["priority-queueing"]
    bursts: Bursts
    quick_bursts: Bursts


class InterferenceCase(StrictModel):
    """Traffic of low priority beside the bursts of high priority (`priority_queueing.InterferingTraffic`)."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    """Part of the names of the case's findings."""
    label: str
    high_bytes: Annotated[int, Field(ge=64, le=1518)] = HIGH_BYTES
    low_bytes: Annotated[int, Field(ge=64, le=1518)] = LOW_BYTES[0]
    low_flows: Annotated[int, Field(ge=1, le=8)] = 1
    low_percent: Annotated[float, Field(gt=0, le=100)] = 100


class Interferences(StrictModel):
    """Excess of priority queueing over equation 2, beside other sizes, numbers and rates of flows."""

    shows: Literal["interferences"]
    bursts: Bursts
    quick_bursts: Bursts
    cases: list[InterferenceCase] = Field(min_length=2)


class Rates(StrictModel):
    """A range of rates with both ends included."""

    low_mbps: Annotated[float, Field(gt=0)]
    high_mbps: Annotated[float, Field(gt=0)]
    step_mbps: Annotated[float, Field(gt=0)]

    def values(self, every: int = 1) -> list[float]:
        """Return the rates in Mbit/s, or only each `every`-th of them."""
        count = int((self.high_mbps - self.low_mbps) / self.step_mbps) + 1
        return [self.low_mbps + place * self.step_mbps for place in range(0, count, every)]


class SnakeTest(StrictModel):
    """Received rate by sent rate in a snake test (RFC 8239)."""

    shows: Literal["throughput"]
    rates: Rates
    packets: Packets
    """Packets of each source at each rate."""
    quick_packets: Packets


class Throughputs(StrictModel):
    """The highest rates without loss of the shortest and the longest frames."""

    shows: Literal["throughput-table"]
    packets: Packets
    quick_packets: Packets


class Specifications(StrictModel):
    """Specifications of the switches, and the ports of the devices that stand for them."""

    shows: Literal["specifications"]


class Verdicts(StrictModel):
    """The marks of table I, computed from the whole campaign."""

    shows: Literal["verdicts"]
    packets: Packets
    bursts: Bursts
    snake_packets: Packets


Entries = Annotated[int, Field(ge=1, le=60_000)]
Runs = Annotated[int, Field(ge=1, le=1_000)]


class Divergence(StrictModel):
    """Numbers of entries that a switch reports and forwards, by the rate at which entries are added."""

    shows: Literal["divergence"]
    rates_per_s: list[Annotated[int, Field(ge=1, le=1_000)]] = Field(min_length=1)
    runs: Runs
    """Runs at each rate, each with another seed."""
    quick_runs: Runs
    most_entries: Entries


class Aging(StrictModel):
    """Numbers of entries that are reported and forwarded, in successive runs on one switch."""

    shows: Literal["aging"]
    waits_s: list[Annotated[int, Field(ge=0, le=10_000)]] = Field(min_length=1)
    per_s: Annotated[int, Field(ge=1, le=1_000)]
    runs: Runs
    quick_runs: Runs
    most_entries: Entries


class Alternation(StrictModel):
    """Numbers of entries that the table accepts, in runs that alternate between two actions."""

    shows: Literal["alternation"]
    runs: Runs
    quick_runs: Runs
    most_entries: Entries


class Insertion(StrictModel):
    """Number of entries over time, with a barrier after each."""

    shows: Literal["insertion"]
    most_entries: Entries


class TableSizes(StrictModel):
    """Numbers of entries that the chip holds, by match and action."""

    shows: Literal["table-sizes"]
    most_entries: Entries


class Buffers(StrictModel):
    """Frames that a queue holds while others are full."""

    shows: Literal["buffers"]
    frame_bytes: list[Annotated[int, Field(ge=64, le=1518)]] = Field(min_length=1)
    ports: list[Annotated[int, Field(ge=1, le=6)]] = Field(min_length=1)
    queues: list[Annotated[int, Field(ge=1, le=8)]] = Field(min_length=1)
    quick_ports: list[Annotated[int, Field(ge=1, le=6)]] = Field(min_length=1)


class TagStacks(StrictModel):
    """Processing times of frames whose outermost tag is removed, by number of tags."""

    shows: Literal["tag-stacks"]
    tags: list[Annotated[int, Field(ge=1, le=16)]] = Field(min_length=1)
    packets: Packets
    quick_packets: Packets


class Services(StrictModel):
    """How many independent services a switch has, by trains of frames into several ports at once."""

    shows: Literal["independent-services"]
    ports: Annotated[int, Field(ge=2, le=16)]
    """Most ports that are loaded; fewer on a switch that has fewer."""


Shown = Annotated[
    ProcessingTimes
    | SoftwareTimes
    | PriorityQueueing
    | Interferences
    | SnakeTest
    | Throughputs
    | Specifications
    | Verdicts
    | Divergence
    | Aging
    | Alternation
    | Insertion
    | TableSizes
    | Buffers
    | TagStacks
    | Services,
    Field(discriminator="shows"),
]


class Predictability(FindingFigure):
    """A figure or table of the predictability study."""

    supported_options = IN_TASKS
    kind: Literal["predictability"]
    devices: list[str] = Field(min_length=1)
    """Names of device profiles."""
    measures: Shown

    def for_replication(self) -> Self | None:
        """See `Figure.for_replication`: devices that the claims' findings name, or all of them."""
        part = super().for_replication()
        if part is None:
            return None
        named = [[each for each in self.devices if each.replace("-", "_") in name] for name in part.read]
        devices = [each for each in self.devices if any(each in names for names in named)]
        return part.model_copy(update={"devices": devices if all(named) else self.devices})
