"""Parts of a lab: switches, hosts and the cables between them."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv4Interface, IPv4Network, IPv6Network
from pathlib import Path
from types import MappingProxyType
from typing import Final

from loko.document import PROFILES, InputError
from loko.switch_model.device import Device, deterministic, with_buffers
from loko.switch_model.mix import Mix
from loko.switch_model.speed import fastest, slowed, slowest
from loko.switch_model.tolerance import EXACT
from loko.topology.cabling import Cards
from loko.topology.ring import Setting

OF_MACHINE: Final = ":"
"""Between the names of a host and of one of its interfaces."""


def _read_only(values: dict[str, object]) -> MappingProxyType[str, object]:
    return MappingProxyType(values)


# Labs go to other processes with what is sent through them.
copyreg.pickle(MappingProxyType, lambda view: (_read_only, (dict(view),)))


class Backend(StrEnum):
    """Stand-in for a board in live runs."""

    FIRMWARE = "firmware"
    """The emulated board."""
    OVS = "ovs"
    """The coarse stand-in: Open vSwitch behind one shared, rate-limited queue (docs/stand-in.md)."""
    OVS_TIMED = "ovs-timed"
    """The timed stand-in: Open vSwitch that holds frames as long as the board would (docs/stand-in.md)."""
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
    speed_bps: int | None = None
    """The speed that the lab sets for it; None: its ports negotiate the highest that both have."""

    @property
    def name(self) -> str:
        """Its name for people, such as ``s1:3-s2:3``."""
        return f"{self.a}-{self.b}"

    @property
    def ends(self) -> frozenset[tuple[str, int]]:
        """Both ends: nodes, each with a port."""
        return frozenset({(self.a.node, self.a.port), (self.b.node, self.b.port)})


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
    fastest_profile: Device | None = None
    """The device at its fastest, for bounds from below; `profile` is then the device at its slowest.

    None: the device is as its profile says.
    """
    addresses: tuple[IPv4Network | IPv6Network, ...] | None = None
    """From where it may connect to the controller, if the lab says so."""
    certificate: str | None = None
    """The name in its certificate, if it must connect by TLS."""

    @property
    def fastest(self) -> Device:
        """The device at its fastest."""
        return self.fastest_profile or self.profile

    @property
    def emulated_as(self) -> str:
        """The profile as the emulator takes it: its name, or its path if it did not come with the testbed."""
        own = self.profile_file is not None and self.profile_file.parent != PROFILES.resolve()
        return str(self.profile_file) if own else self.profile.name


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host of a lab, or one interface of a host with several: each has its own cable and addresses."""

    name: str
    """Its name in links and flows: `server`, or `server:eth1` if the host has several interfaces."""
    mac: str
    ip: IPv4Interface
    speed_bps: int | None = None
    """The highest speed of its network card; None: no less than that of the switch's port."""

    @property
    def machine(self) -> str:
        """The name of the whole host. Its interfaces share it; nothing passes between them inside."""
        return self.name.partition(OF_MACHINE)[0]

    @property
    def interface(self) -> str | None:
        """The interface's own name, such as `eth1`; None if the lab does not name it, since there is one."""
        return self.name.partition(OF_MACHINE)[2] or None

    @property
    def device(self) -> str:
        """Name of the interface on Linux in live labs: `server-eth1`, or `H1-eth0` as in Mininet."""
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

    padding: int = 0
    """Entries that no frame hits, which the service keeps in every table (docs/service.md)."""
    separate: bool = False
    """Whether each emulated board is a process of its own in live runs, or all share one."""

    def __repr__(self) -> str:
        counts = ((len(self.switches), "switches"), (len(self.machines), "hosts"), (len(self.links), "links"))
        return f"Lab({self.name!r}: {', '.join(f'{count} {what}' for count, what in counts)})"

    @property
    def control_settings(self) -> dict[str, str]:
        """Settings of a board that reaches the controller through its control port; else none."""
        if self.controller is None:
            return {}
        return {
            "control": "network",
            "netmask": str(self.controller.netmask),
            "controller_address": str(self.controller.ip),
        }

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
        """Ask for an interface if the name is a whole host, or none of its interfaces; else return None."""
        machine, _, label = name.partition(OF_MACHINE)
        if name in self.hosts or machine in self.hosts or machine not in self.machines:
            return None
        choice = " or ".join(host.name for host in self.machines[machine])
        if label:
            return f"'{machine}' has no interface '{label}': write {choice}"
        return f"say which interface of '{machine}': {choice}"

    @property
    def is_as_printed(self) -> bool:
        """Whether promises are made as the papers print them: `as_printed`."""
        return all(switch.profile.tolerance == EXACT for switch in self.switches.values())

    def as_printed(self) -> Lab:
        """The lab as the papers have it: one clock for all, and cables that take no time.

        Who admits flows to it reserves nothing for what boards do by themselves (`AS_PRINTED`).
        """
        return self._with_devices(lambda profile, fast: (profile.with_exact_clocks(), fast))

    def with_buffers(self, count: int) -> Lab:
        """The lab with `count` times the receive buffer in each switch.

        Raises `InputError` for switches without one, which are not boards.
        """
        return self._with_devices(lambda profile, fast: (with_buffers(deterministic(profile), count), fast))

    @property
    def is_robust(self) -> bool:
        """Whether plans hold wherever in its range each number of a profile lies: `robust`."""
        return any(switch.fastest_profile is not None for switch in self.switches.values())

    def robust(self) -> Lab:
        """The lab for plans that hold wherever in its range each number of a profile lies."""
        return self._with_devices(lambda profile, fast: (slowest(profile), fastest(fast or profile)))

    def slowed(self, slower_ppm: int) -> Lab:
        """The lab for plans that hold although each switch takes up to so many millionths longer."""
        return self._with_devices(lambda profile, fast: (slowed(profile, slower_ppm), fast or profile))

    def _with_devices(self, change: Callable[[Device, Device | None], tuple[Device, Device | None]]) -> Lab:
        """Return the lab with another `profile` and `fastest_profile` of each switch.

        Switches that shared a profile share one again: schemes compute what is alike once.
        """
        changed: dict[tuple[int, int], tuple[Device, Device | None]] = {}
        switches = {}
        for name, switch in self.switches.items():
            kind = id(switch.profile), id(switch.fastest_profile)
            if kind not in changed:
                changed[kind] = change(switch.profile, switch.fastest_profile)
            slow, fast = changed[kind]
            switches[name] = replace(switch, profile=slow, fastest_profile=fast)
        return replace(self, switches=MappingProxyType(switches))

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
        """Return the end that is plugged in at `end`, if any."""
        return self.far_end(end.node, end.port)

    @property
    def loop_cables(self) -> tuple[Link, ...]:
        """The cables that lead from a switch back to itself: paths may visit it again by them."""
        return tuple(link for link in self.links if link.a.node == link.b.node)

    def far_end(self, node: str, port: int) -> Endpoint | None:
        """Return the end that is plugged in at a port of a node, if any."""
        return self._far_ends.get((node, port))

    def cables(self) -> Iterator[tuple[Endpoint, Endpoint]]:
        """Every cable, once from each end: (own end, far end)."""
        for link in self.links:
            yield link.a, link.b
            yield link.b, link.a

    def outgoing_cables(self, node: str) -> tuple[tuple[int, Endpoint], ...]:
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
        """The receiving ends of one-way cables: no flow leaves by them."""
        return frozenset((link.b.node, link.b.port) for link in self.links if link.one_way)

    @cached_property
    def _neighbours(self) -> Mapping[str, tuple[tuple[int, Endpoint], ...]]:
        neighbours: dict[str, list[tuple[int, Endpoint]]] = {}
        for end, far in self.cables():
            neighbours.setdefault(end.node, []).append((end.port, far))
        return {node: tuple(sorted(here, key=lambda cable: cable[0])) for node, here in neighbours.items()}

    def rate_bps(self, link: Link) -> int:
        """Rate of a cable: what its ends negotiate, the lower of their speeds, or less if the lab says so.

        Between two hosts without a speed it is that of any switch.
        """
        speeds = [link.speed_bps, *(self._port_speed_bps(end.node) for end in (link.a, link.b))]
        known = [speed for speed in speeds if speed is not None]
        return min(known) if known else next(iter(self.switches.values())).profile.ports.link_rate_bps.value

    def _port_speed_bps(self, node: str) -> int | None:
        switch = self.switches.get(node)
        return self.hosts[node].speed_bps if switch is None else switch.profile.ports.link_rate_bps.value

    def port_rate_bps(self, node: str, port: int) -> int:
        """Rate at which a port sends: that of its cable. Raises `KeyError` for a port without one."""
        return self._port_rates_bps[node, port]

    def slowest_rate_bps(self, switch: str) -> int:
        """Rate of a switch's slowest cable; without any, that of its ports."""
        rates = (self.port_rate_bps(switch, port) for port, _ in self.neighbours(switch))
        return min(rates, default=self.switches[switch].profile.ports.link_rate_bps.value)

    @cached_property
    def _port_rates_bps(self) -> Mapping[tuple[str, int], int]:
        return {end: self.rate_bps(link) for link in self.links for end in link.ends}
