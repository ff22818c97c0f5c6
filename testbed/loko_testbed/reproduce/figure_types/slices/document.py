"""The document of a figure of a sliced port."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from loko.document import StrictModel
from loko.slicing.document import FrameBytes
from loko_testbed.reproduce.figure import IN_TASKS
from loko_testbed.reproduce.finding_checks import FindingFigure

BurstPackets = Annotated[int, Field(ge=1, le=1000)]


class BurstSeries(StrictModel):
    """Bursts of packets, with a pause after each."""

    shows: Literal["burst-latency", "packet-latency"]
    """Latency of whole bursts by length, or of packets by their place in the burst."""
    packets: list[BurstPackets] = Field(min_length=1)
    """Lengths of the bursts in packets; a stair needs all of a range, as `[1, 2, 3]` or with `up_to`."""
    up_to: bool = False
    """Whether every length from 1 to the last of `packets` is sent."""

    @property
    def lengths(self) -> list[int]:
        """The lengths of all bursts in packets."""
        return list(range(1, self.packets[-1] + 1)) if self.up_to else self.packets


class SegmentedMessage(StrictModel):
    """A message, which is delivered when its last packet has arrived."""

    name: str
    packets: BurstPackets
    holds: list[Literal["data", "command"]] = Field(min_length=1)


class Segmentation(StrictModel):
    """One way in which a sender segments and orders data and command."""

    name: str
    messages: list[SegmentedMessage] = Field(min_length=1)
    interleaved: bool = False
    """Whether messages take turns packet by packet; else they follow each other."""

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        held = {part for message in self.messages for part in message.holds}
        if held != {"data", "command"}:
            raise ValueError("the messages hold no data, or no command; give both")
        return self

    def order(self) -> list[int]:
        """Return the index of each packet's message, in the order of sending."""
        left = [message.packets for message in self.messages]
        if not self.interleaved:
            return [place for place, count in enumerate(left) for _ in range(count)]
        order = []
        while any(left):
            for place, count in enumerate(left):
                if count:
                    order.append(place)
                    left[place] -= 1
        return order


class Messages(StrictModel):
    """Data and command, segmented and ordered in several ways."""

    shows: Literal["messages"]
    cases: list[Segmentation] = Field(min_length=2)


class QuickSlices(StrictModel):
    """The scale of a replay with ``--quick``."""

    repetitions: int = Field(ge=1)


class Slices(FindingFigure):
    """Arrivals of what one host sends at once through a slice."""

    supported_options = IN_TASKS
    kind: Literal["slices"]
    device: str
    """Name of the switch's profile."""
    slices: str
    """The sliced port, as a name in `labs/slicing/slices` or a path. Its first queue is used."""
    frame_bytes: FrameBytes
    sends: Annotated[BurstSeries | Messages, Field(discriminator="shows")]
    pause_ms: float = Field(gt=0, le=10_000)
    """Pause after each burst, long enough for the buckets to fill up again."""
    repetitions: int = Field(ge=1)
    """Repetitions of each burst or case, each at another phase of the scheduler's timers."""
    quick: QuickSlices
