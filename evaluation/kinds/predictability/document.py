"""The document of a figure of the predictability study."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evaluation.finding_checks import FindingFigure
from loko.document import Strict

Packets = Annotated[int, Field(ge=100, le=1_000_000)]
Bursts = Annotated[int, Field(ge=100, le=100_000)]


class ProcessingTimes(Strict):
    """Processing times in hardware over one dimension of table III."""

    shows: Literal["processing-time"]
    varies: Literal["entries", "match", "action", "order", "frame_bytes", "rate_mbps"]
    """`order` varies priorities and matching rule, all combinations."""
    packets: Packets
    quick_packets: Packets


class SoftwareTimes(Strict):
    """Processing times of what is forwarded in software, at a rate that the CPU carries."""

    shows: Literal["software-time"]
    rate_mbps: Annotated[float, Field(gt=0)]
    packets: Packets
    quick_packets: Packets


class PriorityQueueing(Strict):
    """Times of a flow of high priority, alone and beside three of low priority."""

    shows: Literal["priority-queueing"]
    bursts: Bursts
    quick_bursts: Bursts


class Rates(Strict):
    """From, to, step, all included."""

    low_mbps: Annotated[float, Field(gt=0)]
    high_mbps: Annotated[float, Field(gt=0)]
    step_mbps: Annotated[float, Field(gt=0)]

    def values(self, every: int = 1) -> list[float]:
        """The rates in Mbit/s, or one of so many of them."""
        count = int((self.high_mbps - self.low_mbps) / self.step_mbps) + 1
        return [self.low_mbps + place * self.step_mbps for place in range(0, count, every)]


class Lace(Strict):
    """What comes back through a shoelace, over what is sent."""

    shows: Literal["throughput"]
    rates: Rates
    packets: Packets
    """Of each source at each rate."""
    quick_packets: Packets


class Throughputs(Strict):
    """The highest rate without loss, of the shortest and the longest frames."""

    shows: Literal["throughput-table"]
    packets: Packets
    quick_packets: Packets


class Verdicts(Strict):
    """The marks of table I, from the whole campaign."""

    shows: Literal["verdicts"]
    packets: Packets
    bursts: Bursts
    lace_packets: Packets


Entries = Annotated[int, Field(ge=1, le=60_000)]
Runs = Annotated[int, Field(ge=1, le=1_000)]


class Divergence(Strict):
    """What a switch reports and what it forwards, by the rate at which entries come."""

    shows: Literal["divergence"]
    rates_per_s: list[Annotated[int, Field(ge=1, le=1_000)]] = Field(min_length=1)
    runs: Runs
    """At each rate, with another seed."""
    quick_runs: Runs
    most_entries: Entries


class Aging(Strict):
    """Entries that are reported and forwarded, in runs on one switch."""

    shows: Literal["aging"]
    waits_s: list[Annotated[int, Field(ge=0, le=10_000)]] = Field(min_length=1)
    per_s: Annotated[int, Field(ge=1, le=1_000)]
    runs: Runs
    quick_runs: Runs
    most_entries: Entries


class Alternation(Strict):
    """Entries that the table takes, in runs with two actions in turn."""

    shows: Literal["alternation"]
    runs: Runs
    quick_runs: Runs
    most_entries: Entries


class Insertion(Strict):
    """How many entries there are after how long, with a barrier after each."""

    shows: Literal["insertion"]
    most_entries: Entries


class TableSizes(Strict):
    """How many entries of each match and action the chip holds."""

    shows: Literal["table-sizes"]
    most_entries: Entries


class Buffers(Strict):
    """What a queue holds while others are full."""

    shows: Literal["buffers"]
    frame_bytes: list[Annotated[int, Field(ge=64, le=1518)]] = Field(min_length=1)
    ports: list[Annotated[int, Field(ge=1, le=6)]] = Field(min_length=1)
    queues: list[Annotated[int, Field(ge=1, le=8)]] = Field(min_length=1)
    quick_ports: list[Annotated[int, Field(ge=1, le=6)]] = Field(min_length=1)


class TagStacks(Strict):
    """Processing times of frames whose outermost tag is taken off, by the number of tags."""

    shows: Literal["tag-stacks"]
    tags: list[Annotated[int, Field(ge=1, le=16)]] = Field(min_length=1)
    packets: Packets
    quick_packets: Packets


Shown = Annotated[
    ProcessingTimes
    | SoftwareTimes
    | PriorityQueueing
    | Lace
    | Throughputs
    | Verdicts
    | Divergence
    | Aging
    | Alternation
    | Insertion
    | TableSizes
    | Buffers
    | TagStacks,
    Field(discriminator="shows"),
]


class Predictability(FindingFigure):
    """One figure or table."""

    kind: Literal["predictability"]
    devices: list[str] = Field(min_length=1)
    """Profiles."""
    measures: Shown
