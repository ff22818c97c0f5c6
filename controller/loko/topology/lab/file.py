"""A lab's file, `lab.yml`, as it is written down: its keys, and what each may hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Interface, ip_network
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from loko.document import StrictModel
from loko.switch_model.allocation import allocation_name
from loko.switch_model.mix import Mix
from loko.topology.lab.structure import Backend
from loko.topology.ring import Ring, Setting
from loko.units import Rate


class SwitchFile(StrictModel):
    """A switch."""

    datapath_id: str
    profile: str
    config: dict[str, Setting] = Field(default_factory=dict)
    backend: Backend = Field(default=Backend.FIRMWARE, strict=False)  # YAML knows no enumerations
    cards: dict[int, str] = Field(default_factory=dict)
    addresses: list[str] | None = Field(default=None, min_length=1)
    certificate: str | None = Field(default=None, min_length=1)

    @field_validator("addresses")
    @classmethod
    def _networks(cls, texts: list[str] | None) -> list[str] | None:
        for text in texts or ():
            try:
                ip_network(text)
            except ValueError:
                raise ValueError(
                    f"'{text}' is neither an address nor a network, such as 10.0.1.99 or 10.0.1.0/24"
                ) from None
        return texts

    @field_validator("datapath_id")
    @classmethod
    def _eight_bytes(cls, text: str) -> str:
        if not re.fullmatch(r"[0-9a-f]{2}(:[0-9a-f]{2}){7}", text):
            raise ValueError(f"'{text}' is not eight bytes such as 00:00:70:b3:d5:6c:00:01")
        return text


def _with_prefix(text: str) -> str:
    try:
        IPv4Interface(text)
    except ValueError:
        raise ValueError(f"'{text}' is not an IPv4 address with prefix such as 10.0.0.1/24") from None
    if "/" not in text:
        raise ValueError(f"'{text}' lacks its prefix length, such as {text}/24")
    return text


def _of_a_host(text: str) -> str:
    """Return an address with its prefix as it is. Raises `ValueError` if no host may have it."""
    interface = IPv4Interface(text)
    address, network = interface.ip, interface.network
    ends = (network.network_address, network.broadcast_address) if network.prefixlen < 31 else ()
    if address in ends:
        raise ValueError(f"'{text}' is the first or last address of its network, which no host may have")
    if address.is_multicast or address.is_loopback or address.is_unspecified or address.is_reserved:
        raise ValueError(f"'{text}' is no address that a host may have, such as 10.0.0.1/24")
    return text


class HostFile(StrictModel):
    """A host, or one interface of a host with several."""

    mac: str
    ip: str
    speed: Rate | None = None

    @field_validator("mac")
    @classmethod
    def _six_bytes(cls, text: str) -> str:
        if not re.fullmatch(r"[0-9a-f][02468ace](:[0-9a-f]{2}){5}", text) or not int(
            text.replace(":", ""), 16
        ):
            raise ValueError(f"'{text}' is not a unicast MAC address such as 02:00:00:00:00:01")
        return text

    @field_validator("ip")
    @classmethod
    def _address(cls, text: str) -> str:
        return _of_a_host(_with_prefix(text))


def is_interface_name(text: str) -> bool:
    """Whether a host with several interfaces may give one of them this name."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", text) is not None


class MultihomedHostFile(StrictModel):
    """A host with several interfaces."""

    interfaces: dict[str, HostFile] = Field(min_length=1)

    @field_validator("interfaces")
    @classmethod
    def _names(cls, interfaces: dict[str, HostFile]) -> dict[str, HostFile]:
        for name in interfaces:
            if not is_interface_name(name):
                raise ValueError(f"'{name}' is not an interface's name of letters and digits such as eth1")
        return interfaces


def _one_or_several(values: object) -> object:
    """Read a host in the form that its keys show, so that errors are about that form only."""
    several = isinstance(values, dict) and "interfaces" in values
    return (MultihomedHostFile if several else HostFile).model_validate(values)


class LinkFile(StrictModel):
    """A cable, with its ends as text."""

    a: str
    b: str
    one_way: bool = False
    speed: Rate | None = None


class LabFile(StrictModel):
    """A whole file."""

    renamed_keys: ClassVar[Mapping[str, str]] = {"fillers": "padding"}

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    ring: Ring | None = None
    switches: dict[str, SwitchFile] = Field(min_length=1)
    hosts: dict[str, Annotated[HostFile | MultihomedHostFile, BeforeValidator(_one_or_several)]] = Field(
        min_length=1
    )
    links: list[LinkFile] = Field(min_length=1)
    control_port: int = Field(default=0, ge=0)
    control: Literal["session", "network"] = "session"
    controller: str | None = None
    allocation: str | None = None
    mix: Mix | None = None
    padding: int = Field(default=0, ge=0, le=127)
    processes: Literal["together", "separate"] = "together"

    @field_validator("allocation")
    @classmethod
    def _known_allocation(cls, text: str | None) -> str | None:
        return None if text is None else allocation_name(text)

    @field_validator("controller")
    @classmethod
    def _address(cls, text: str | None) -> str | None:
        return None if text is None else _with_prefix(text)

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, values: object) -> object:
        """A ring in place of switches, hosts and links."""
        if not isinstance(values, dict) or values.get("ring") is None:
            return values
        ring = values["ring"] if isinstance(values["ring"], Ring) else Ring.model_validate(values["ring"])
        parts = ring.written_out()
        double = ", ".join(part for part in parts if part in values)
        if double:
            raise ValueError(f"the ring stands for {double}; leave one of them out")
        return {**values, **parts}

    @model_validator(mode="after")
    def _controller_has_a_port(self) -> Self:
        if self.control == "network" and self.control_port == 0:
            raise ValueError("control: network needs a control_port")
        return self


def lab_schema() -> dict[str, Any]:
    """The JSON Schema of a lab's file: a ring, or its switches, hosts and links."""
    schema = LabFile.model_json_schema()
    parts = ["switches", "hosts", "links"]
    schema["required"] = [key for key in schema["required"] if key not in parts]
    schema["anyOf"] = [{"required": ["ring"]}, {"required": parts}]
    return schema
