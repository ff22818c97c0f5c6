"""The document of a figure of transfers of iperf3 through a sliced port."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from loko.slicing.document import FrameBytes
from loko_testbed.reproduce.figure_types.slice_transfers.document import Mbps, QuickTransfers
from loko_testbed.reproduce.finding_checks import FindingFigure


class LiveTransfers(FindingFigure):
    """Transfers of iperf3 over the kernel's TCP, and over the simulator's in its place."""

    kind: Literal["live_transfers"]
    shows: Literal["throughput", "window", "cpu"]
    slices: str
    """The port, as a name in `labs/slicing/slices` or a path. Its first queue gets all rates in turn."""
    device: str
    """Name of the switch's profile in virtual time."""
    queue_rates_mbps: list[Mbps] = Field(min_length=1)
    frame_bytes: FrameBytes
    """A full segment, with FCS."""
    congestion_controls: list[Literal["cubic", "reno"]] = Field(min_length=1)
    seconds: float = Field(ge=1, le=60)
    """Length of each transfer. Its first quarter is left out of all results."""
    quick: QuickTransfers

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if self.queue_rates_mbps != sorted(set(self.queue_rates_mbps)):
            raise ValueError("queue_rates_mbps do not rise; give each once, in order")
        if len(set(self.congestion_controls)) < len(self.congestion_controls):
            raise ValueError("a congestion control is named twice; name each once")
        return self
