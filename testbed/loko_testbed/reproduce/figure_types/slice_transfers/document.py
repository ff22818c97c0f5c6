"""The document of a figure of transfers over TCP through sliced ports."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from loko.document import StrictModel
from loko.slicing.document import FrameBytes, Rate
from loko_testbed.reproduce.figure import IN_TASKS
from loko_testbed.reproduce.finding_checks import FindingFigure

Mbps = Annotated[int, Field(ge=1, le=10**6)]


class SlicedPort(StrictModel):
    """A sliced port whose first queue gets one rate after the other."""

    name: str = Field(pattern=r"^[a-z0-9]+$")
    """Its name in findings."""
    label: str
    slices: str
    """The port, as a name in `labs/slicing/slices` or a path. Its scheduler decides which switch is live."""
    live_slices: str | None = None
    """The port in real time, if that is another one."""
    device: str
    """Name of the switch's profile in virtual time."""
    link_rate_bps: Rate
    """The rate of the links on both sides, instead of the file's."""


class QuickTransfers(StrictModel):
    """The scale of a replay with ``--quick``."""

    seconds: float = Field(gt=0, le=60)


class RealTime(StrictModel):
    """Rates and seconds in real time, in place of those of virtual time."""

    queue_rates_mbps: list[Mbps] = Field(min_length=1)
    """Those that this machine's switches do not carry are left out."""
    seconds: float = Field(ge=1, le=60)
    quick: QuickTransfers


class SliceTransfers(FindingFigure):
    """Latency, retransmissions or window of a bulk transfer over TCP, by the rate of its queue."""

    supported_options = IN_TASKS
    kind: Literal["slice_transfers"]
    shows: Literal["latency", "retransmissions", "window"]
    ports: list[SlicedPort] = Field(min_length=1)
    queue_rates_mbps: list[Mbps] = Field(min_length=1)
    frame_bytes: FrameBytes
    """A full segment, with FCS."""
    congestion_control: Literal["cubic", "reno"] = "cubic"
    seconds: float = Field(gt=0, le=60)
    """Length of each transfer. Its first quarter is left out of all results."""
    quick: QuickTransfers
    live: RealTime | None = None

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [port.name for port in self.ports]
        if len(set(names)) < len(names):
            raise ValueError(f"two ports have one name ({', '.join(names)}); name them apart")
        live_rates_mbps = [] if self.live is None else self.live.queue_rates_mbps
        for rates_mbps in (self.queue_rates_mbps, live_rates_mbps):
            if rates_mbps != sorted(set(rates_mbps)):
                raise ValueError("queue_rates_mbps do not rise; give each once, in order")
        if ("live" in self.modes) != (self.live is not None):
            raise ValueError("live: give rates and seconds of real time for the mode live, and only for it")
        return self
