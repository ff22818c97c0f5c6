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


Shown = Annotated[
    ProcessingTimes | SoftwareTimes | PriorityQueueing | Lace | Throughputs | Verdicts,
    Field(discriminator="shows"),
]


class Predictability(FindingFigure):
    """One figure or table."""

    kind: Literal["predictability"]
    devices: list[str] = Field(min_length=1)
    """Profiles."""
    measures: Shown
