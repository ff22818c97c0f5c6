"""The documents of figures of transfers over TCP through sliced ports; `shows` tells them apart."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from loko.document import StrictModel
from loko.slicing.document import FrameBytes, Rate
from loko_testbed.reproduce.figure import IN_TASKS
from loko_testbed.reproduce.finding_checks import FindingFigure

CongestionControl = Literal["cubic", "reno"]
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
    bucket_bytes: int | None = Field(default=None, ge=1)
    """The bucket of the first queue, if that is not the file's."""


class QuickTransfers(StrictModel):
    """The scale of a replay with ``--quick``."""

    seconds: float = Field(gt=0, le=60)


class RealTime(StrictModel):
    """Rates and seconds in real time, in place of those of virtual time."""

    queue_rates_mbps: list[Mbps] = Field(min_length=1)
    """Those that this machine's switches do not carry are left out."""
    seconds: float = Field(ge=1, le=60)
    quick: QuickTransfers


class TransfersFigure(FindingFigure):
    """Bulk transfers over TCP by the rate of their queue."""

    kind: Literal["transfers"]
    shows: str
    queue_rates_mbps: list[Mbps] = Field(min_length=1)
    frame_bytes: FrameBytes
    """A full segment, with FCS."""
    seconds: float = Field(gt=0, le=60)
    """Length of each transfer. Its first quarter is left out of all results."""
    host_delay_us: float = Field(default=0, ge=0, le=10_000)
    """In virtual time, the delay of every frame between a host's tap and its cable, in both directions."""
    quick: QuickTransfers


class TransfersByPort(TransfersFigure):
    """Latency, retransmissions or window of a transfer through each of several ports."""

    supported_options = IN_TASKS
    shows: Literal["latency", "retransmissions", "window"]
    ports: list[SlicedPort] = Field(min_length=1)
    congestion_control: CongestionControl = "cubic"
    live: RealTime | None = None

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [port.name for port in self.ports]
        if len(set(names)) < len(names):
            raise ValueError(f"two ports have one name ({', '.join(names)}); name them apart")
        _refuse_unsorted(self.queue_rates_mbps)
        _refuse_unsorted([] if self.live is None else self.live.queue_rates_mbps)
        if ("live" in self.modes) != (self.live is not None):
            raise ValueError("live: give rates and seconds of real time for the mode live, and only for it")
        return self


class TransfersBesideIperf3(TransfersFigure):
    """Transfers of iperf3 over the kernel's TCP, and over the simulator's in its place."""

    shows: Literal["iperf3-throughput", "iperf3-window", "iperf3-cpu"]
    slices: str
    """The port, as a name in `labs/slicing/slices` or a path. Its first queue gets all rates in turn."""
    device: str
    """Name of the switch's profile in virtual time."""
    congestion_controls: list[CongestionControl] = Field(min_length=1)
    seconds: float = Field(ge=1, le=60)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        _refuse_unsorted(self.queue_rates_mbps)
        if len(set(self.congestion_controls)) < len(self.congestion_controls):
            raise ValueError("a congestion control is named twice; name each once")
        return self


def _refuse_unsorted(rates_mbps: list[Mbps]) -> None:
    if rates_mbps != sorted(set(rates_mbps)):
        raise ValueError("queue_rates_mbps do not rise; give each once, in order")
