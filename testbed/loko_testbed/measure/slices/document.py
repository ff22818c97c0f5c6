"""The document of a sliced switch under test: what was configured, and how to reach the switch."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from loko.document import LABS, StrictModel, find, read
from loko.slicing.document import Bytes, Port, Rate, load_slices
from loko.slicing.lengths import Protocol, Scheduler, counted, on_wire, payload
from loko_testbed.measure.slices.injection import InjectionMethod
from loko_testbed.measure.slices.policed_port import Policer

FOLDER: Final = LABS / "slicing" / "devices"
_A_LENGTH: Final = 1024
"""Any length above the headers: what is counted differs from it by a constant."""


class CountedBytes(StrEnum):
    """Which bytes of each frame a rate counts."""

    WIRE = "wire"
    """With preamble and gap."""
    FRAME = "frame"
    """With FCS."""
    FRAME_WITHOUT_FCS = "frame-without-fcs"
    IP_PACKET = "ip-packet"
    UDP_PAYLOAD = "udp-payload"

    @property
    def more_bytes(self) -> int:
        """The bytes that a rate counts beyond a frame's length with FCS; negative if it counts fewer."""
        lengths = {
            CountedBytes.WIRE: on_wire(_A_LENGTH),
            CountedBytes.FRAME: _A_LENGTH,
            CountedBytes.FRAME_WITHOUT_FCS: counted(Scheduler.HTB, _A_LENGTH),
            CountedBytes.IP_PACKET: counted(Scheduler.TRTCM, _A_LENGTH),
            CountedBytes.UDP_PAYLOAD: payload(Protocol.UDP, _A_LENGTH),
        }
        return lengths[self] - _A_LENGTH


class VirtualSwitch(StrictModel):
    """A switch in virtual time that does what another port's file says, or the same one."""

    kind: Literal["virtual"]
    profile: str = "open-vswitch-1g"
    does: str | None = None
    """The port that the switch really has, named like the configured one. Default: the configured port."""


class MeterDevice(StrictModel):
    """A meter in virtual time: a token bucket that drops, and may count any part of a frame."""

    kind: Literal["meter"]
    rate_bps: Rate
    burst_bytes: Bytes
    counts: Annotated[CountedBytes, Field(strict=False)]
    latency_us: float = Field(default=0, ge=0, le=10**6)


class HtbSwitch(StrictModel):
    """Open vSwitch with `tc htb` in a namespace of its own, built as configured. Needs root."""

    kind: Literal["open-vswitch"]
    injection: Annotated[InjectionMethod | None, Field(strict=False)] = None
    """How frames get into the queues. Default: the best that this kernel has."""


class DpdkSwitch(StrictModel):
    """Open vSwitch with DPDK and a policer, in a namespace of its own, built as configured. Needs root."""

    kind: Literal["open-vswitch-dpdk"]
    policer: Annotated[Policer, Field(strict=False)] = Policer.TRTCM


class SlicedSwitch(StrictModel):
    """A sliced switch under test."""

    title: str
    configured: str
    """The configured port, as a name in `labs/slicing/slices` or a path, relative to this file too."""
    counts: Annotated[CountedBytes | None, Field(strict=False)] = None
    """Bytes that the configured rates are meant to count. Default: those that the scheduler counts."""
    switch: Annotated[VirtualSwitch | MeterDevice | HtbSwitch | DpdkSwitch, Field(discriminator="kind")]

    def port(self) -> Port:
        """The configured port. Raises `InputError`."""
        return load_slices(self.configured)

    @property
    def real_time(self) -> bool:
        """Whether it is a program of this machine, measured by the machine's clock."""
        return isinstance(self.switch, HtbSwitch | DpdkSwitch)

    def counted_as(self) -> CountedBytes:
        """Bytes that the configured rates are meant to count."""
        if self.counts is not None:
            return self.counts
        return CountedBytes.FRAME_WITHOUT_FCS if self.port().scheduler == "htb" else CountedBytes.IP_PACKET


def load_sliced_switch(name_or_path: str | Path) -> SlicedSwitch:
    """Load a sliced switch by name (in `labs/slicing/devices`) or path. Raises `InputError`.

    The files of ports that it names are looked for beside it first.
    """
    path = find(name_or_path, FOLDER, ".yml", "sliced switch")
    switch = read(path, SlicedSwitch)
    how = switch.switch
    if isinstance(how, VirtualSwitch) and how.does is not None:
        how = how.model_copy(update={"does": _beside(path, how.does)})
    return switch.model_copy(update={"configured": _beside(path, switch.configured), "switch": how})


def _beside(path: Path, written: str) -> str:
    """Return a port's file beside the device's, if there is one; else what is written."""
    file = path.parent / written
    return str(file) if file.is_file() else written
