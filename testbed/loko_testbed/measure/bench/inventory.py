"""The inventory: which switch is on the bench, between which interfaces, and where its controller is."""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, RootModel, field_validator, model_validator

from loko.document import LABS, StrictModel, find, read
from loko.topology.ring import Setting
from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.measure.bench.equations import LinkTiming

BENCHES: Final = LABS / "bench"
_VETH_RATE_BPS: Final = 100_000_000_000
"""A veth has no rate. At this one, the wire takes only a few nanoseconds in the equations."""
_ADDRESS: Final = re.compile(r"(\d+\.\d+\.\d+\.\d+):(\d{1,5})")
_INTERFACE: Final = re.compile(r"[^\s/:]{1,15}")
_DATAPATH: Final = re.compile(r"[0-9a-f]{16}")

Name = Annotated[str, Field(min_length=1)]


class InventoryBoard(StrictModel):
    """An emulated board in real time. The bench builds everything around it."""

    kind: Literal["emulator"]
    name: Name
    profile: str = "zodiac-fx"
    config: dict[str, Setting] = Field(default_factory=dict)
    """The board's settings by name."""


class SoftwareSwitch(StrictModel):
    """An Open vSwitch with its datapath in user space. The bench builds everything around it."""

    kind: Literal["openvswitch"]
    name: Name
    link_rate_bps: Annotated[int, Field(ge=1_000_000)] = _VETH_RATE_BPS
    """The link rate for the equations. The links are veths, so there is no need to give it."""
    real_time: bool = False
    """Whether its threads get real-time priority, so that other programs do not slow it down."""

    def wire(self) -> LinkTiming:
        """Return the links as the equations need them."""
        return LinkTiming(rate_bps=self.link_rate_bps, tag_bytes=0)


class InventoryPort(StrictModel):
    """A port of the switch, as seen from this machine."""

    interface: str
    """The interface at the other end of the port's cable, which sends or receives the frames."""
    tap: str | None = None
    """The interface that sees the frames pass, such as a card behind an optical tap. Default: `interface`."""

    @field_validator("interface", "tap")
    @classmethod
    def _possible(cls, name: str | None) -> str | None:
        if name is not None and not _INTERFACE.fullmatch(name):
            raise ValueError(f"'{name}' is no name of a network interface, such as enp3s0f0")
        return name

    @property
    def tap_interface(self) -> str:
        """The interface that is tapped."""
        return self.tap or self.interface

    @property
    def passive(self) -> bool:
        """Whether the tap only listens."""
        return self.tap_interface != self.interface


class ControllerPort(InventoryPort):
    """The link on which the switch finds its controller; the bench listens there."""

    listen: str
    """Address and TCP port of the controller, as set in the switch."""

    @field_validator("listen")
    @classmethod
    def _address(cls, text: str) -> str:
        match = _ADDRESS.fullmatch(text)
        if not match or not 0 < int(match[2]) < 65536:
            raise ValueError(f"'{text}' is no address and port, such as 10.0.1.8:6633")
        IPv4Address(match[1])
        return text

    @property
    def address(self) -> str:
        """The address to listen at."""
        return self.listen.partition(":")[0]

    @property
    def port(self) -> int:
        """The TCP port to listen at."""
        return int(self.listen.partition(":")[2])


class LinkParameters(StrictModel):
    """The switch's links, as far as the equations need them."""

    rate_bps: Annotated[int, Field(ge=1_000_000)] = 100_000_000
    preamble_bytes: Annotated[int, Field(ge=0)] = 8
    gap_bytes: Annotated[int, Field(ge=0)] = 12
    tag_bytes: Annotated[int, Field(ge=0)] = 1
    """Bytes that a frame carries in addition on the way to the CPU; 1 for the Zodiac FX."""

    def wire(self) -> LinkTiming:
        """Return the links as the equations need them."""
        return LinkTiming(**self.model_dump())


class Hardware(StrictModel):
    """A real switch on real interfaces of this machine."""

    kind: Literal["hardware"]
    name: Name
    ports: dict[int, InventoryPort]
    controller: ControllerPort
    datapath_id: str | None = None
    """The datapath id that the switch reports, 16 hexadecimal digits. Tells switches of one kind apart."""
    link: LinkParameters = LinkParameters()
    console: str | None = None
    """The board's serial console, such as /dev/ttyACM0; `is-time` switches OpenFlow off and on there."""

    @field_validator("datapath_id")
    @classmethod
    def _sixteen_digits(cls, text: str | None) -> str | None:
        if text is not None and not _DATAPATH.fullmatch(text):
            raise ValueError(f"'{text}' is no datapath id: write 16 hexadecimal digits in quotes")
        return text

    @model_validator(mode="after")
    def _distinct(self) -> Hardware:
        if set(self.ports) != {IN_PORT, OUT_PORT}:
            raise ValueError(f"ports: the bench needs ports {IN_PORT} and {OUT_PORT} and no others")
        ends = [*(self.ports[port] for port in (IN_PORT, OUT_PORT)), self.controller]
        names = [name for end in ends for name in dict.fromkeys((end.interface, end.tap_interface))]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"interface {name} is named for two ends; each needs one of its own")
        return self


Inventory = InventoryBoard | SoftwareSwitch | Hardware


class _InventoryFile(RootModel[Annotated[Inventory, Field(discriminator="kind")]]):
    pass


def load_inventory(name_or_path: str | Path) -> Inventory:
    """An inventory by name in ``labs/bench`` (`lab` is the lab there), or by path. Raises `InputError`."""
    return read(find(name_or_path, BENCHES, ".yml", "inventory", but={"lab"}), _InventoryFile).root
