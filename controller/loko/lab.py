"""A lab: switches, hosts and links, as `labs/NAME/lab.yml` describes them."""

from __future__ import annotations

import copyreg
import gc
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from loko.allocation import allocation_name
from loko.cabling import Cards, disagreement, load_cabling
from loko.device import Device, Profile, load_device, profile_file
from loko.document import LABS, PROFILES, InputError, Strict, error_at, find, read
from loko.mix import Mix
from loko.on_demand import OnDemand
from loko.ring import Ring, Setting
from loko.tolerance import EXACT

_OF_MACHINE: Final = ":"
"""Between the names of a host and of one of its interfaces."""


def _read_only(values: dict[str, object]) -> MappingProxyType[str, object]:
    return MappingProxyType(values)


# Labs go to other processes with what is sent through them.
copyreg.pickle(MappingProxyType, lambda view: (_read_only, (dict(view),)))


class Backend(StrEnum):
    """What stands in the place of a board in live runs."""

    FIRMWARE = "firmware"
    """The emulated board."""
    OVS = "ovs"
    """The coarse twin: Open vSwitch behind one shared, rate-limited queue (docs/twin.md)."""
    OVS_TIMED = "ovs-timed"
    """The timed twin: Open vSwitch whose frames are held until the board would send them (docs/twin.md)."""
    MININET_LINK = "mininet-link"
    """Open vSwitch with Mininet's rate-limited links, for comparison: what is usually done."""
    HARDWARE = "hardware"
    """A real board, cabled to network cards of this machine (docs/hardware.md)."""

    @property
    def is_board(self) -> bool:
        """Whether it behaves as a board's firmware does, emulated or real."""
        return self in {Backend.FIRMWARE, Backend.HARDWARE}


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One end of a link: a switch and its port, or a host (or one interface of a host) and port 1."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Link:
    """A cable between two endpoints."""

    a: Endpoint
    b: Endpoint
    one_way: bool = False
    """Whether flows use it from a to b only."""


@dataclass(frozen=True, kw_only=True)
class Switch:
    """A switch of a lab. `config` holds the board's settings by name, as the emulator takes them."""

    name: str
    datapath_id: int
    profile: Device
    config: Mapping[str, Setting]
    profile_file: Path | None = None
    """Where the profile is written, if the lab comes from a file."""
    backend: Backend = Backend.FIRMWARE
    cards: Cards = field(default_factory=dict)
    """Of a real board: by port, the network card of this machine at the other end of its cable."""

    @property
    def emulated_as(self) -> str:
        """The profile as the emulator takes it: its name, or its path if it did not come with the testbed."""
        own = self.profile_file is not None and self.profile_file.parent != PROFILES.resolve()
        return str(self.profile_file) if own else self.profile.name


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host of a lab, or one interface of a host with several: each has its own cable and addresses."""

    name: str
    """What links and flows call it: `server`, or `server:eth1` if the host has several interfaces."""
    mac: str
    ip: IPv4Interface

    @property
    def machine(self) -> str:
        """The name of the whole host. Its interfaces share it; nothing passes between them inside."""
        return self.name.partition(_OF_MACHINE)[0]

    @property
    def interface(self) -> str | None:
        """The interface's own name, such as `eth1`; None if the lab does not name it, since there is one."""
        return self.name.partition(_OF_MACHINE)[2] or None

    @property
    def device(self) -> str:
        """What Linux calls the interface in live labs: `server-eth1`, or `H1-eth0` as in Mininet."""
        return f"{self.machine}-{self.interface or 'eth0'}"


@dataclass(frozen=True, kw_only=True)
class Lab:
    """A checked lab: every name resolves, no port is used twice, every host reaches every other."""

    name: str
    title: str
    path: Path
    switches: Mapping[str, Switch]
    hosts: Mapping[str, Host]
    """By name. A host with several interfaces is here once for each of them (`server:eth1`)."""
    links: tuple[Link, ...]
    control_port: int
    """0 if the controller's sessions are kept beside the network."""
    controller: IPv4Interface | None = None
    """The controller's address if the boards reach it by frames on their control ports (`control: network`).
    Else the emulator keeps their TCP sessions for them.
    """
    allocation: str | None = None
    """How Loko allocates if nobody says otherwise."""
    mix: Mix | None = None
    """The traffic for which the allocation `optimised` is chosen."""

    cabling: Path | None = None
    """The file that says which switches are real boards."""

    fillers: int = 0
    """Entries that no frame hits, which the service keeps in every table (docs/service.md)."""
    separate: bool = False
    """Whether each emulated board is a process of its own in live runs, or all share one."""

    def __repr__(self) -> str:
        counts = ((len(self.switches), "switches"), (len(self.hosts), "hosts"), (len(self.links), "links"))
        return f"Lab({self.name!r}: {', '.join(f'{count} {what}' for count, what in counts)})"

    def with_backend(self, backend: Backend | None) -> Lab:
        """The lab with this backend for every switch but real boards; as it is without any.

        Raises `InputError` for real boards, of which it must be known how they are cabled.
        """
        if backend is None:
            return self
        if backend is Backend.HARDWARE:
            raise InputError(
                "--backend hardware: say with --cabling FILE which boards are real (docs/hardware.md)"
            )
        switches = {
            name: switch if switch.backend is Backend.HARDWARE else replace(switch, backend=backend)
            for name, switch in self.switches.items()
        }
        return replace(self, switches=MappingProxyType(switches))

    @cached_property
    def machines(self) -> Mapping[str, tuple[Host, ...]]:
        """The interfaces of each whole host, in the order of the file."""
        machines: dict[str, tuple[Host, ...]] = {}
        for host in self.hosts.values():
            machines[host.machine] = (*machines.get(host.machine, ()), host)
        return machines

    def which_interface(self, name: str) -> str | None:
        """Ask for one of the interfaces, if the name is that of a host as a whole; None if it is not."""
        if name in self.hosts or name not in self.machines:
            return None
        return f"say which interface of '{name}': {' or '.join(host.name for host in self.machines[name])}"

    @property
    def is_as_printed(self) -> bool:
        """Whether promises are made as the papers print them: `as_printed`."""
        return all(switch.profile.tolerance == EXACT for switch in self.switches.values())

    def as_printed(self) -> Lab:
        """The lab as the papers have it: one clock for all, and cables that take no time.

        Who admits flows to it reserves nothing for what boards do by themselves (`AS_PRINTED`).
        """
        switches = {
            name: replace(switch, profile=switch.profile.with_exact_clocks())
            for name, switch in self.switches.items()
        }
        return replace(self, switches=MappingProxyType(switches))

    def cabled(self, cabling: Path | None) -> Lab:
        """The lab with the real boards of a cabling; as it is without one. Raises `InputError`."""
        if cabling is None:
            return self
        lab = load_lab(self.path, cabling)
        return lab.as_printed() if self.is_as_printed else lab

    def behind(self, backend: Backend) -> tuple[Switch, ...]:
        """The switches of one backend, in the order of the file."""
        return tuple(switch for switch in self.switches.values() if switch.backend is backend)

    @property
    def backends(self) -> tuple[Backend, ...]:
        """Every backend that is used, each once."""
        return tuple(backend for backend in Backend if self.behind(backend))

    def is_real(self, node: str) -> bool:
        """Whether a node is a real board."""
        return node in self.switches and self.switches[node].backend is Backend.HARDWARE

    def cards(self) -> Mapping[Endpoint, str]:
        """The network cards that stand in this machine for an end of a cable, by that end."""
        return {
            far: switch.cards[port]
            for switch in self.behind(Backend.HARDWARE)
            for port, far in self.neighbours(switch.name)
            if port in switch.cards
        }

    def peer(self, end: Endpoint) -> Endpoint | None:
        """What is plugged in at `end`, if anything."""
        return self.far_end(end.node, end.port)

    @property
    def laces(self) -> tuple[Link, ...]:
        """The cables that lead from a switch back to itself: paths may visit it again by them."""
        return tuple(link for link in self.links if link.a.node == link.b.node)

    def far_end(self, node: str, port: int) -> Endpoint | None:
        """What is plugged in at a port of a node, if anything."""
        return self._far_ends.get((node, port))

    def cables(self) -> Iterator[tuple[Endpoint, Endpoint]]:
        """Every cable, once from each end: (own end, far end)."""
        for link in self.links:
            yield link.a, link.b
            yield link.b, link.a

    def ways(self, node: str) -> tuple[tuple[int, Endpoint], ...]:
        """The cables by which flows leave a node: (own port, far end), in order of ports."""
        if self.is_two_way:
            return self.neighbours(node)
        against = self._against_one_way
        return tuple((port, far) for port, far in self.neighbours(node) if (node, port) not in against)

    def arrivals(self, node: str) -> tuple[Endpoint, ...]:
        """The far ends of the cables by which flows come to a node, in order of its ports."""
        against = self._against_one_way
        return tuple(far for _, far in self.neighbours(node) if (far.node, far.port) not in against)

    def neighbours(self, node: str) -> tuple[tuple[int, Endpoint], ...]:
        """The cables of a node: (own port, far end), in order of ports."""
        return self._neighbours.get(node, ())

    @property
    def is_two_way(self) -> bool:
        """Whether flows use every cable both ways."""
        return not self._against_one_way

    @cached_property
    def _far_ends(self) -> Mapping[tuple[str, int], Endpoint]:
        return {(end.node, end.port): far for end, far in self.cables()}

    @cached_property
    def _against_one_way(self) -> frozenset[tuple[str, int]]:
        """Ends by which no flow leaves."""
        return frozenset((link.b.node, link.b.port) for link in self.links if link.one_way)

    @cached_property
    def _neighbours(self) -> Mapping[str, tuple[tuple[int, Endpoint], ...]]:
        neighbours: dict[str, list[tuple[int, Endpoint]]] = {}
        for end, far in self.cables():
            neighbours.setdefault(end.node, []).append((end.port, far))
        return {node: tuple(sorted(here, key=lambda cable: cable[0])) for node, here in neighbours.items()}

    def rate_bps(self, link: Link) -> int:
        """Rate of a cable: that of the switches' ports. Between two hosts it is that of any switch."""
        ends = [self.switches[end.node] for end in (link.a, link.b) if end.node in self.switches]
        return (ends or list(self.switches.values()))[0].profile.ports.link_rate_bps.value


def load_lab(name_or_path: str | Path, cabling: Path | None = None) -> Lab:
    """Load a lab by name (`two-switch`), by its folder, or by the path of its `lab.yml`.

    `cabling` is the file that says which of its switches are real boards. Raises `InputError` in one line
    if a file or what it describes is wrong.
    """
    if Path(name_or_path).is_dir() and (Path(name_or_path) / "lab.yml").is_file():
        name_or_path = Path(name_or_path) / "lab.yml"
    path = find(name_or_path, LABS, "/lab.yml", "lab")
    file = read(path, _LabFile)
    return _Checker(path, file if cabling is None else _with_cabling(file, cabling), cabling).lab()


def stays_loaded() -> None:
    """What has been loaded until now stays: the garbage collector need not look at it again and again.

    For programs that have loaded a lab and go on to many decisions. In a lab of 1,000 switches these take a
    quarter to a third less time then, and none of them waits for a collection of all objects.
    """
    gc.freeze()


def lab_of(values: Mapping[str, object]) -> Lab:
    """A lab without a file, of values as in a `lab.yml`.

    Raises `InputError` if they do not fit together, `pydantic.ValidationError` if they are not such values.
    """
    return _Checker(Path(str(values.get("name"))), _LabFile.model_validate(dict(values))).lab()


def ring_lab(ring: Ring) -> Lab:
    """The lab of a ring, without a file. Raises `InputError` for a profile that does not exist."""
    return lab_of({"name": "ring", "title": f"Ring of {ring.switches} switches", "ring": ring})


class _SwitchFile(Strict):
    datapath_id: str
    profile: str
    config: dict[str, Setting] = Field(default_factory=dict)
    backend: Backend = Field(default=Backend.FIRMWARE, strict=False)  # YAML knows no enumerations
    cards: dict[int, str] = Field(default_factory=dict)

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


class _HostFile(Strict):
    mac: str
    ip: str

    @field_validator("mac")
    @classmethod
    def _six_bytes(cls, text: str) -> str:
        if not re.fullmatch(r"[0-9a-f][02468ace](:[0-9a-f]{2}){5}", text):
            raise ValueError(f"'{text}' is not a unicast MAC address such as 02:00:00:00:00:01")
        return text

    @field_validator("ip")
    @classmethod
    def _address(cls, text: str) -> str:
        return _with_prefix(text)


class _SeveralFile(Strict):
    """A host with several interfaces."""

    interfaces: dict[str, _HostFile] = Field(min_length=1)

    @field_validator("interfaces")
    @classmethod
    def _names(cls, interfaces: dict[str, _HostFile]) -> dict[str, _HostFile]:
        for name in interfaces:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", name):
                raise ValueError(f"'{name}' is not an interface's name of letters and digits such as eth1")
        return interfaces


def _one_or_several(values: object) -> object:
    """Read a host by what it says, so that mistakes are told of that form alone."""
    several = isinstance(values, dict) and "interfaces" in values
    return (_SeveralFile if several else _HostFile).model_validate(values)


class _LinkFile(Strict):
    a: str
    b: str
    one_way: bool = False


class _LabFile(Strict):
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    ring: Ring | None = None
    switches: dict[str, _SwitchFile] = Field(min_length=1)
    hosts: dict[str, Annotated[_HostFile | _SeveralFile, BeforeValidator(_one_or_several)]] = Field(
        min_length=1
    )
    links: list[_LinkFile] = Field(min_length=1)
    control_port: int = Field(default=0, ge=0)
    control: Literal["session", "network"] = "session"
    controller: str | None = None
    allocation: str | None = None
    mix: Mix | None = None
    fillers: int = Field(default=0, ge=0, le=127)
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
    schema = _LabFile.model_json_schema()
    parts = ["switches", "hosts", "links"]
    schema["required"] = [key for key in schema["required"] if key not in parts]
    schema["anyOf"] = [{"required": ["ring"]}, {"required": parts}]
    return schema


def _with_cabling(file: _LabFile, path: Path) -> _LabFile:
    """The lab's file with the real boards of a cabling."""
    switches = dict(file.switches)
    for name, cards in load_cabling(path).switches.items():
        if name not in switches:
            raise error_at(path, ["switches", name], f"the lab has the switches {', '.join(switches)}")
        switches[name] = switches[name].model_copy(update={"backend": Backend.HARDWARE, "cards": cards})
    return file.model_copy(update={"switches": switches})


class _Checker:
    """Turns a syntactically right lab file into a `Lab`, or says what does not fit together."""

    def __init__(self, path: Path, file: _LabFile, cabling: Path | None = None) -> None:
        self._path = path
        self._file = file
        self._cabling = cabling
        self._files = OnDemand(self._profile_file)
        """Where the profiles are, by how the file names them."""
        self._devices = OnDemand(load_device)
        self._hosts = {host.name: (place, host) for place, host in self._placed_hosts()}
        """By name, with the place in the file."""
        self._names = {name: name for name in (*self._hosts, *file.switches)}
        """Each name once: a path is looked for in less time if equal names are the same object."""

    def lab(self) -> Lab:
        for name in self._file.hosts:
            if name in self._file.switches:
                raise self._error(f"hosts.{name}", "a switch has this name already; rename one of them")
            if _OF_MACHINE in name:
                raise self._error(f"hosts.{name}", "the name has a colon; give the host `interfaces` instead")
        switches = {name: self._switch(name) for name in self._file.switches}
        self._refuse_doubles(
            "datapath_id",
            ((name, ("switches", name), switch.datapath_id) for name, switch in switches.items()),
        )
        hosts = {name: host for name, (_, host) in self._hosts.items()}
        placed = [(name, place, host) for name, (place, host) in self._hosts.items()]
        self._refuse_doubles("mac", ((name, place, host.mac) for name, place, host in placed))
        self._refuse_doubles("ip", ((name, place, host.ip.ip) for name, place, host in placed))
        lab = Lab(
            name=self._file.name,
            title=self._file.title,
            path=self._path,
            switches=MappingProxyType(switches),
            hosts=MappingProxyType(hosts),
            links=self._links(switches),
            control_port=self._file.control_port,
            controller=self._controller(switches),
            fillers=self._file.fillers,
            separate=self._file.processes == "separate",
            allocation=self._file.allocation,
            mix=self._file.mix,
            cabling=self._cabling,
        )
        self._refuse_unreachable(lab)
        self._refuse_miscabled(lab)
        return lab

    def _placed_hosts(self) -> Iterator[tuple[tuple[str, ...], Host]]:
        """Yield every host, or each interface of a host with several, with its place in the file."""
        for name, file in self._file.hosts.items():
            if isinstance(file, _HostFile):
                yield ("hosts", name), Host(name=name, mac=file.mac, ip=IPv4Interface(file.ip))
                continue
            for label, interface in file.interfaces.items():
                host = Host(
                    name=f"{name}{_OF_MACHINE}{label}", mac=interface.mac, ip=IPv4Interface(interface.ip)
                )
                yield ("hosts", name, "interfaces", label), host

    def _profile_file(self, written: str) -> Path:
        """Of a name, or of a path from the lab's file; what is not there may be a path from here."""
        if "/" not in written and not written.endswith(".toml"):
            return profile_file(written)
        beside = self._path.parent / written
        return profile_file(beside if beside.is_file() else written)

    def _switch(self, name: str) -> Switch:
        file = self._file.switches[name]
        try:
            path = self._files[file.profile]
            profile = self._devices[path]
        except InputError as error:
            raise self._error(f"switches.{name}.profile", str(error)) from None
        config = dict(file.config)
        if self._file.ring is not None and not isinstance(profile, Profile):
            config = {"mac": config["mac"], **self._file.ring.stated_config}
        if self._file.control_port == 0 and isinstance(profile, Profile):
            ports = list(range(1, profile.ports.count.value + 1))
            if "openflow_ports" not in config and "native_ports" not in config:
                config |= {"openflow_ports": ports, "native_ports": []}
        if self._file.control_port > profile.ports.count.value:
            raise self._error("control_port", f"{name} has ports 1 to {profile.ports.count.value}")
        mac = file.config.get("mac")
        if mac is not None and file.datapath_id != f"00:00:{mac}":
            expected = f"00:00:{mac}"
            raise self._error(
                f"switches.{name}.datapath_id", f"the board's MAC address makes it {expected}; write that"
            )
        return Switch(
            name=name,
            datapath_id=int(file.datapath_id.replace(":", ""), 16),
            profile=profile,
            profile_file=path,
            config=MappingProxyType(config),
            backend=file.backend,
            cards=MappingProxyType(dict(file.cards)),
        )

    def _controller(self, switches: Mapping[str, Switch]) -> IPv4Interface | None:
        real = any(switch.backend is Backend.HARDWARE for switch in switches.values())
        if self._file.control == "session" and not real:
            return None
        if self._file.controller is None:
            why = "real boards need" if real else "control: network needs"
            raise self._error("controller", f"{why} its address, such as 10.0.1.8/24")
        controller = IPv4Interface(self._file.controller)
        owners = {controller.ip: "the controller"}
        for name, switch in switches.items():
            where = f"switches.{name}.config"
            if "mac" not in switch.config or "ip_address" not in switch.config:
                raise self._error(where, "control: network needs the board's mac and ip_address")
            try:
                address = IPv4Address(switch.config["ip_address"])
            except ValueError:
                text = switch.config["ip_address"]
                raise self._error(
                    f"{where}.ip_address", f"'{text}' is not an address such as 10.0.1.99"
                ) from None
            if address not in controller.network:
                raise self._error(
                    f"{where}.ip_address",
                    f"{address} is not in the controller's network {controller.network}",
                )
            if address in owners:
                raise self._error(
                    f"{where}.ip_address", f"{owners[address]} has {address} already; change one"
                )
            owners[address] = name
        return controller

    def _links(self, switches: Mapping[str, Switch]) -> tuple[Link, ...]:
        links: list[Link] = []
        used: dict[Endpoint, int] = {}
        for index, file in enumerate(self._file.links):
            ends = []
            for side, text in (("a", file.a), ("b", file.b)):
                where = f"links.{index}.{side}"
                end = self._endpoint(where, text, switches)
                if end in used:
                    raise self._error(where, f"'{text}' is used by links.{used[end]} already")
                used[end] = index
                ends.append(end)
            rates = {
                switches[end.node].profile.ports.link_rate_bps.value for end in ends if end.node in switches
            }
            if len(rates) > 1:
                both = " and ".join(f"{rate} bit/s" for rate in sorted(rates))
                raise self._error(f"links.{index}", f"its ports run at {both}; connect equal ones")
            links.append(Link(a=ends[0], b=ends[1], one_way=file.one_way))
        return tuple(links)

    def _endpoint(self, where: str, text: str, switches: Mapping[str, Switch]) -> Endpoint:
        if text in self._hosts:
            return Endpoint(node=self._names[text], port=1)
        node, _, port_text = text.partition(":")
        node = self._names.get(node, node)
        if isinstance(host := self._file.hosts.get(node), _SeveralFile):
            names = " or ".join(f"{node}{_OF_MACHINE}{label}" for label in host.interfaces)
            raise self._error(where, f"'{text}' is no interface; write {names}")
        if host is not None:
            raise self._error(where, f"a host has one interface; write '{node}' instead of '{text}'")
        if node not in switches:
            known = ", ".join([*self._hosts, *switches])
            raise self._error(where, f"unknown host or switch '{node}' (known: {known})")
        count = switches[node].profile.ports.count.value
        if not port_text.isdecimal() or not 1 <= int(port_text) <= count:
            raise self._error(where, f"'{text}' names no port; write {node}:1 to {node}:{count}")
        if int(port_text) == self._file.control_port:
            raise self._error(where, f"port {port_text} is the control port; use another one")
        return Endpoint(node=node, port=int(port_text))

    def _refuse_doubles(self, key: str, values: Iterable[tuple[str, tuple[str, ...], object]]) -> None:
        """Refuse equal values of a key; each comes with the name of its owner and that one's place."""
        owners: dict[object, str] = {}
        for name, place, value in values:
            if value in owners:
                raise error_at(self._path, [*place, key], f"{owners[value]} has the same {key}; change one")
            owners[value] = name

    def _refuse_miscabled(self, lab: Lab) -> None:
        real = frozenset(switch.name for switch in lab.behind(Backend.HARDWARE))
        for switch in lab.switches.values():
            if switch.name not in real:
                if switch.cards:
                    raise self._error(f"switches.{switch.name}.cards", "for `backend: hardware` only")
                continue
            far = {port: end.node for port, end in lab.neighbours(switch.name)}
            if problem := disagreement(switch.cards, far=far, real=real, control_port=lab.control_port):
                raise error_at(self._cabling or self._path, ["switches", switch.name], problem)

    def _refuse_unreachable(self, lab: Lab) -> None:
        start = next(iter(lab.hosts))
        seen, waiting = {start}, deque([start])
        while waiting:
            for _, far in lab.neighbours(waiting.popleft()):
                if far.node not in seen:
                    seen.add(far.node)
                    waiting.append(far.node)
        for name in [*lab.hosts, *lab.switches]:
            if name not in seen:
                raise self._error("links", f"{name} cannot be reached from {start}; add a link")

    def _error(self, location: str, message: str) -> InputError:
        parts = [int(part) if part.isdecimal() else part for part in location.split(".")]
        return error_at(self._path, parts, message)
