"""Labs from files or values: each is checked before anybody sees it."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface, ip_network
from pathlib import Path
from types import MappingProxyType

from loko.document import LABS, InputError, error_at, find, read
from loko.lazy_mapping import LazyMapping
from loko.switch_model.device import (
    Profile,
    has_lower_speeds,
    load_device,
    profile_file,
    settings_problem,
)
from loko.topology.cabling import disagreement, load_cabling
from loko.topology.lab.file import HostFile, LabFile, MultihomedHostFile
from loko.topology.lab.structure import OF_MACHINE, Backend, Endpoint, Host, Lab, Link, Switch
from loko.topology.ring import Ring
from loko.units import rate_text


def load_lab(name_or_path: str | Path, cabling: Path | None = None) -> Lab:
    """Load a lab by name (`two-switch`), by its folder, or by the path of its `lab.yml`.

    `cabling` is the file that says which of its switches are real boards. Raises `InputError` in one line
    if a file or what it describes is wrong.
    """
    if Path(name_or_path).is_dir() and (Path(name_or_path) / "lab.yml").is_file():
        name_or_path = Path(name_or_path) / "lab.yml"
    path = find(name_or_path, LABS, "/lab.yml", "lab")
    file = read(path, LabFile)
    return _Checker(path, file if cabling is None else _with_cabling(file, cabling), cabling).lab()


def stays_loaded() -> None:
    """Keep the garbage collector from examining loaded modules again and again.

    For programs that have loaded a lab and go on to many decisions. In a lab of 1,000 switches these take a
    quarter to a third less time then, and none of them waits for a collection of all objects.
    """
    gc.freeze()


def cabled(lab: Lab, cabling: Path | None) -> Lab:
    """Return a lab with the real boards of a cabling; as it is without one. Raises `InputError`."""
    if cabling is None:
        return lab
    with_boards = load_lab(lab.path, cabling)
    return with_boards.as_printed() if lab.is_as_printed else with_boards


def lab_of(values: Mapping[str, object]) -> Lab:
    """A lab without a file, of values as in a `lab.yml`.

    Raises `InputError` if they do not fit together, `pydantic.ValidationError` if they are not such values.
    """
    return _Checker(Path(str(values.get("name"))), LabFile.model_validate(dict(values))).lab()


def ring_lab(ring: Ring) -> Lab:
    """The lab of a ring, without a file. Raises `InputError` for a profile that does not exist."""
    return lab_of({"name": "ring", "title": f"Ring of {ring.switches} switches", "ring": ring})


def _with_cabling(file: LabFile, path: Path) -> LabFile:
    """The lab's file with the real boards of a cabling."""
    switches = dict(file.switches)
    for name, cards in load_cabling(path).switches.items():
        if name not in switches:
            raise error_at(path, ["switches", name], f"the lab has the switches {', '.join(switches)}")
        switches[name] = switches[name].model_copy(update={"backend": Backend.HARDWARE, "cards": cards})
    return file.model_copy(update={"switches": switches})


def _host(name: str, file: HostFile) -> Host:
    return Host(name=name, mac=file.mac, ip=IPv4Interface(file.ip), speed_bps=_whole_bps(file.speed))


def _whole_bps(speed: float | None) -> int | None:
    return None if speed is None else max(1, round(speed))


class _Checker:
    """Turns a syntactically right lab file into a `Lab`, or says what does not fit together."""

    def __init__(self, path: Path, file: LabFile, cabling: Path | None = None) -> None:
        self._path = path
        self._file = file
        self._cabling = cabling
        self._files = LazyMapping(self._profile_file)
        """Where the profiles are, by how the file names them."""
        self._devices = LazyMapping(load_device)
        self._hosts = {host.name: (place, host) for place, host in self._placed_hosts()}
        """By name, with the place in the file."""
        self._names = {name: name for name in (*self._hosts, *file.switches)}
        """Each name once: a path is looked for in less time if equal names are the same object."""

    def lab(self) -> Lab:
        for name in self._file.switches:
            if OF_MACHINE in name:
                raise self._error(
                    ("switches", name), "the name has a colon, which comes before a port; take it out"
                )
        for name in self._file.hosts:
            if name in self._file.switches:
                raise self._error(("hosts", name), "a switch has this name already; rename one of them")
            if OF_MACHINE in name:
                raise self._error(("hosts", name), "the name has a colon; give the host `interfaces` instead")
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
            padding=self._file.padding,
            separate=self._file.processes == "separate",
            allocation=self._file.allocation,
            mix=self._file.mix,
            cabling=self._cabling,
        )
        self._refuse_unreachable(lab)
        self._refuse_miscabled(lab)
        self._refuse_settings(lab)
        self._refuse_speeds(lab)
        return lab

    def _placed_hosts(self) -> Iterator[tuple[tuple[str, ...], Host]]:
        """Yield every host, or each interface of a host with several, with its place in the file."""
        for name, file in self._file.hosts.items():
            if isinstance(file, HostFile):
                yield ("hosts", name), _host(name, file)
                continue
            for label, interface in file.interfaces.items():
                yield ("hosts", name, "interfaces", label), _host(f"{name}{OF_MACHINE}{label}", interface)

    def _profile_file(self, written: str) -> Path:
        """Find a profile by name, or by a path from the lab's file or else from the working folder."""
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
            raise self._error(("switches", name, "profile"), str(error)) from None
        config = dict(file.config)
        if isinstance(profile, Profile) and "mac" not in config:
            config["mac"] = self._mac(name)
        if self._file.ring is not None and not isinstance(profile, Profile):
            config = {"mac": config["mac"], **self._file.ring.stated_config}
        if self._file.control_port == 0 and isinstance(profile, Profile):
            ports = list(range(1, profile.ports.count.value + 1))
            if "openflow_ports" not in config and "native_ports" not in config:
                config |= {"openflow_ports": ports, "native_ports": []}
        if self._file.control_port > profile.ports.count.value:
            raise self._error(("control_port",), f"{name} has ports 1 to {profile.ports.count.value}")
        mac = config.get("mac")
        if mac is not None and file.datapath_id != f"00:00:{mac}":
            expected = f"00:00:{mac}"
            raise self._error(
                ("switches", name, "datapath_id"), f"the board's MAC address makes it {expected}; write that"
            )
        return Switch(
            name=name,
            datapath_id=int(file.datapath_id.replace(":", ""), 16),
            profile=profile,
            profile_file=path,
            config=MappingProxyType(config),
            backend=file.backend,
            cards=MappingProxyType(dict(file.cards)),
            addresses=None if file.addresses is None else tuple(map(ip_network, file.addresses)),
            certificate=file.certificate,
        )

    def _mac(self, name: str) -> str:
        """Return the MAC address of a board, which its datapath id states."""
        datapath_id = self._file.switches[name].datapath_id
        if not datapath_id.startswith("00:00:"):
            raise self._error(
                ("switches", name, "datapath_id"),
                f"a board's is its MAC address after two zero bytes; write 00:00:{datapath_id[6:]}",
            )
        return datapath_id[len("00:00:") :]

    def _controller(self, switches: Mapping[str, Switch]) -> IPv4Interface | None:
        real = any(switch.backend is Backend.HARDWARE for switch in switches.values())
        if self._file.control == "session" and not real:
            return None
        if self._file.controller is None:
            why = "real boards need" if real else "control: network needs"
            raise self._error(("controller",), f"{why} its address, such as 10.0.1.8/24")
        controller = IPv4Interface(self._file.controller)
        owners = {controller.ip: "the controller"}
        for name, switch in switches.items():
            where = ("switches", name, "config")
            if switch.backend is not Backend.HARDWARE and not isinstance(switch.profile, Profile):
                raise self._error(
                    ("switches", name, "profile"),
                    f"an emulated {switch.profile.name} has no control port; write control: session",
                )
            if "ip_address" not in switch.config:
                raise self._error(where, "control: network needs the board's ip_address")
            try:
                address = IPv4Address(switch.config["ip_address"])
            except ValueError:
                text = switch.config["ip_address"]
                raise self._error(
                    (*where, "ip_address"), f"'{text}' is not an address such as 10.0.1.99"
                ) from None
            if address not in controller.network:
                raise self._error(
                    (*where, "ip_address"),
                    f"{address} is not in the controller's network {controller.network}",
                )
            if address in owners:
                raise self._error(
                    (*where, "ip_address"), f"{owners[address]} has {address} already; change one"
                )
            owners[address] = name
        return controller

    def _links(self, switches: Mapping[str, Switch]) -> tuple[Link, ...]:
        links: list[Link] = []
        used: dict[Endpoint, int] = {}
        for index, file in enumerate(self._file.links):
            ends = []
            for side, text in (("a", file.a), ("b", file.b)):
                where = ("links", index, side)
                end = self._endpoint(where, text, switches)
                if end in used:
                    raise self._error(where, f"'{text}' is used by links.{used[end]} already")
                used[end] = index
                ends.append(end)
            links.append(Link(a=ends[0], b=ends[1], one_way=file.one_way, speed_bps=_whole_bps(file.speed)))
        return tuple(links)

    def _endpoint(self, where: Sequence[int | str], text: str, switches: Mapping[str, Switch]) -> Endpoint:
        if text in self._hosts:
            return Endpoint(node=self._names[text], port=1)
        node, _, port_text = text.partition(":")
        node = self._names.get(node, node)
        if isinstance(host := self._file.hosts.get(node), MultihomedHostFile):
            names = " or ".join(f"{node}{OF_MACHINE}{label}" for label in host.interfaces)
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
                    raise self._error(("switches", switch.name, "cards"), "for `backend: hardware` only")
                continue
            far = {port: end.node for port, end in lab.neighbours(switch.name)}
            if problem := disagreement(switch.cards, far=far, real=real, control_port=lab.control_port):
                raise error_at(self._cabling or self._path, ["switches", switch.name], problem)

    def _refuse_speeds(self, lab: Lab) -> None:
        """Refuse cables at a speed that no port has, or that a device of one speed does not have."""
        for index, link in enumerate(lab.links):
            rate_bps = lab.rate_bps(link)
            if link.speed_bps is not None and rate_bps < link.speed_bps:
                raise self._error(
                    ("links", index, "speed"),
                    f"its ports run at {rate_text(rate_bps)} at most; write that, or leave it out",
                )
            for end in (link.a, link.b):
                switch = lab.switches.get(end.node)
                if switch is None or has_lower_speeds(switch.profile):
                    continue
                own_bps = switch.profile.ports.link_rate_bps.value
                if rate_bps < own_bps:
                    raise self._error(
                        ("links", index),
                        f"its ports negotiate {rate_text(rate_bps)}, but {switch.profile.name} is known at"
                        f" {rate_text(own_bps)} only; use a faster port",
                    )

    def _refuse_settings(self, lab: Lab) -> None:
        """Refuse settings that an emulated device cannot have. The emulator, which takes them, decides."""
        for name, switch in lab.switches.items():
            if switch.backend is Backend.HARDWARE and not isinstance(switch.profile, Profile):
                continue  # no emulator gets its settings
            own_bps = switch.profile.ports.link_rate_bps.value
            if switch.config.get("link_rate_bps", own_bps) != own_bps:
                raise self._error(
                    ("switches", name, "config", "link_rate_bps"),
                    f"its profile says {rate_text(own_bps)}; give its links a lower speed, or it another one",
                )
            by_control_port = {} if switch.backend is Backend.HARDWARE else lab.control_settings
            problem = settings_problem(switch.emulated_as, {**switch.config, **by_control_port})
            if problem is not None:
                key, reason = problem
                raise self._error(("switches", name, "config", *([key] if key else [])), reason)

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
                raise self._error(("links",), f"{name} cannot be reached from {start}; add a link")

    def _error(self, place: Sequence[int | str], message: str) -> InputError:
        return error_at(self._path, place, message)
