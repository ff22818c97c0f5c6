"""The lab's hosts and cables, built by Mininet inside the confined tree.

Mininet prints an error and goes on when the kernel refuses something, so this module asks the kernel what
came out (`LiveNetwork.verify`). Cables are plain veth pairs without any shaping: line rate and delay are the
emulator's business, and a host's own shaper is set per run (`loko_testbed.live.shaping`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Node

from loko.topology.lab import Endpoint, Host, Lab
from loko_testbed.instruments.cables import set_up
from loko_testbed.instruments.emulator import OFFLOADS
from loko_testbed.instruments.network_namespace import namespace_of, set_up_namespace
from loko_testbed.instruments.programs import require, run, run_json
from loko_testbed.live.cards import wait_for_carrier
from loko_testbed.live.interfaces import device_of, interface_name
from loko_testbed.live.lab_capture.capture_request import CableTap
from loko_testbed.live.messages import PortStatus
from loko_testbed.live.routes import commands
from loko_testbed.mininet import ZodiacFX
from loko_testbed.simulation.runner import RunError

_RECEIVED, _SENT = 1, 9
"""Where /proc/net/dev has an interface's frames."""


class LabNetwork(Mininet):  # type: ignore[misc]  # Mininet carries no types
    """Mininet without its first step, which raises kernel limits for the whole machine and for good."""

    inited = True

    @classmethod
    def init(cls) -> None:
        """Leave the machine's limits alone."""


def interface(end: Endpoint, lab: Lab) -> str:
    """Return the interface at an end of a cable, as Mininet names it.

    Raises `RunError` if Linux would not accept the name.
    """
    if host := lab.hosts.get(end.node):
        return device_of(host, lab)
    return interface_name(f"{end.node}-eth{end.port}", node=end.node, where=str(lab.path))


class LiveNetwork:
    """Hosts, each with a network namespace of its own, and veth pairs, in the order of the lab file."""

    def __init__(self, lab: Lab) -> None:
        """Build and verify the network. Raises `RunError` in one line."""
        self.lab = lab
        self._cards = lab.cards()
        self._interfaces = {
            (end.node, end.port): self._cards.get(end) or self._name(end)
            for link in lab.links
            for end in (link.a, link.b)
            if not lab.is_real(end.node)
        }
        self._build(lab)
        self._configure()
        self.verify()

    def _name(self, end: Endpoint) -> str:
        return interface(end, self.lab)

    def _build(self, lab: Lab) -> None:
        """Build the network in the current network namespace."""
        require("ifconfig")
        require("mnexec")
        setLogLevel("error")
        self._net = LabNetwork(controller=None, build=False)
        for machine, (first, *_) in lab.machines.items():
            self._net.addHost(machine, ip=str(first.ip), mac=first.mac)
            set_up_namespace(f"{machine}: network", self.inside(machine))
        for switch in lab.switches.values():
            # One process runs all boards, and other programs run other switches.
            self._net.addSwitch(switch.name, cls=ZodiacFX, external=True, dpid=f"{switch.datapath_id:016x}")
        for end, card in self._cards.items():
            self._plug_in(end, card)
        for link in lab.links:
            if not (lab.is_real(link.a.node) or lab.is_real(link.b.node)):
                self._cable(link.a, link.b)
        self._net.build()
        for _, *others in lab.machines.values():  # Mininet gives addresses to the first interface only
            for host in others:
                address = ["ip", "address", "add", str(host.ip), "dev", self.interface(host.name)]
                run(address, what=f"{host.name}: address", prefix=self.inside(host.name))

    def ports(self, switch: str) -> dict[int, str]:
        """Return the interface of each connected port of a switch."""
        return {port: name for (node, port), name in self._interfaces.items() if node == switch}

    def set_link(self, a: Endpoint, b: Endpoint, *, is_up: bool) -> None:
        """Set one end of a cable up or down; the other end has a carrier only with it. Raises `RunError`.

        That end is a switch's, since a host whose interface goes down loses its routes.
        """
        end = b if a.node in self.lab.hosts else a
        device = self._interfaces.get((end.node, end.port))
        if device is None or end in self._cards:
            raise RunError(f"cable {a}-{b}: leads to a real board; pull it by hand")
        command = ["ip", "link", "set", "dev", device, "up" if is_up else "down"]
        run(command, what=f"cable {a}-{b}", prefix=self._prefix(end.node))

    def counts(self) -> Iterator[PortStatus]:
        """Yield the switch ports in this network namespace, with the frames that have passed them."""
        lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()[2:]
        frames = {name.strip(): values.split() for name, _, values in (line.partition(":") for line in lines)}
        far = {end: other for link in self.lab.links for end, other in ((link.a, link.b), (link.b, link.a))}
        for (node, port), name in self._interfaces.items():
            if node in self.lab.switches and name in frames:
                peer = far[Endpoint(node=node, port=port)]
                values = frames[name]
                yield PortStatus(
                    switch=node,
                    port=port,
                    peer=peer.node if peer.node in self.lab.hosts else str(peer),
                    received=int(values[_RECEIVED]),
                    sent=int(values[_SENT]),
                )

    def cable_taps(self) -> Iterator[CableTap]:
        """Yield for each cable its two ends, where what comes through it can be captured."""
        for link in self.lab.links:
            for source, end in ((link.a, link.b), (link.b, link.a)):
                yield CableTap(
                    interface=self._interfaces[end.node, end.port],
                    namespace=self.namespace(end.node) if end.node in self.lab.hosts else None,
                    source=source,
                    destination=end,
                )

    def interface(self, host: str) -> str:
        """The interface of a host."""
        return self._interfaces[host, 1]

    def namespace(self, host: str) -> Path:
        """Return the file of a host's network namespace, which all interfaces of its machine share."""
        return namespace_of(self._node(host).pid)

    def inside(self, host: str) -> list[str]:
        """Return the words to put before a command to run it in a host's namespace."""
        return [require("mnexec"), "-a", str(self._node(host).pid)]

    def verify(self) -> None:
        """Compare every interface with the lab file. Raises `RunError` at the first difference."""
        places = {
            place: self._existing_interfaces(place)
            for place in {self._place(node) for node, _ in self._interfaces}
        }
        for (node, port), name in self._interfaces.items():
            where = f"{node}: port {port} ({name})"
            addresses_of, queues_of = places[self._place(node)]
            address, queues = addresses_of[name], queues_of.get(name, [])
            refuse_difference(where, "state UP", "UP", "UP" if "LOWER_UP" in address["flags"] else "DOWN")
            prefix = self._prefix(node)
            offloads = run_json(["ethtool", "--json", "-k", name], what=where, prefix=prefix)[0]
            for shown in OFFLOADS.values():
                refuse_difference(where, shown, False, offloads[shown]["active"])
            if name not in self._cards.values():  # a card has queues of its own
                refuse_difference(where, "shaping", ["noqueue"], queues)
            addresses = [f"{entry['local']}/{entry['prefixlen']}" for entry in address["addr_info"]]
            if host := self.lab.hosts.get(node):
                refuse_difference(where, "MAC address", host.mac, address["address"])
                refuse_difference(where, "addresses", [str(host.ip)], addresses)
            else:
                refuse_difference(where, "addresses", [], addresses)

    def wait_for_cards(self) -> None:
        """Wait until every network card has a link. Raises `RunError`."""
        for (node, _), name in self._interfaces.items():
            if name in self._cards.values():
                wait_for_carrier(name, prefix=self._prefix(node))

    def _place(self, node: str) -> tuple[str, ...]:
        """Return what identifies the namespace of a node: most switches share one."""
        return tuple(self._prefix(node))

    def _existing_interfaces(self, prefix: Sequence[str]) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """Return a namespace's interfaces: addresses by name, and kinds of queueing disciplines by name."""
        what = f"{self.lab.path}: network"
        addresses = run_json(["ip", "-json", "address", "show"], what=what, prefix=prefix)
        queues: dict[str, list[str]] = {}
        for entry in run_json(["tc", "-json", "qdisc", "show"], what=what, prefix=prefix):
            queues.setdefault(entry["dev"], []).append(entry["kind"])
        return {entry["ifname"]: entry for entry in addresses}, queues

    def _configure(self) -> None:
        for (node, port), name in self._interfaces.items():
            where, prefix = f"{node}: port {port} ({name})", self._prefix(node)
            set_up(name, what=where, prefix=prefix)
        self.wait_for_cards()
        for host in self.lab.hosts.values():
            self._introduce_others(host)
        for machine, interfaces in self.lab.machines.items():
            lines = commands(self.lab, machine, [self.interface(host.name) for host in interfaces])
            if lines:
                self._ip(machine, "routes", lines)

    def _introduce_others(self, host: Host) -> None:
        """Give a host static neighbour entries for all others, so that no host ever asks by ARP."""
        device = self.interface(host.name)
        lines = [
            f"neighbour replace to {other.ip.ip} lladdr {other.mac} dev {device} nud permanent"
            for other in self.lab.hosts.values()
            if other.name != host.name
        ]
        self._ip(host.name, "neighbours", lines)

    def _ip(self, host: str, what: str, lines: Sequence[str]) -> None:
        """Have ``ip`` carry out these lines in the namespace of a host."""
        text = "".join(f"{line}\n" for line in lines)
        run(["ip", "-batch", "-"], what=f"{host}: {what}", prefix=self.inside(host), stdin=text)

    def _plug_in(self, end: Endpoint, card: str) -> None:
        """Move a card that is cabled to a real board to its host; a switch's card is in place already."""
        if host := self.lab.hosts.get(end.node):
            Intf(card, node=self._node(host.name), port=self._port(end), mac=host.mac)

    def _cable(self, a: Endpoint, b: Endpoint) -> None:
        names = [self._interfaces[end.node, end.port] for end in (a, b)]
        macs = [self.lab.hosts[end.node].mac if end.node in self.lab.hosts else None for end in (a, b)]
        numbers = [self._port(end) for end in (a, b)]
        options = {f"addr{side}": mac for side, mac in enumerate(macs, start=1) if mac}
        try:
            self._net.addLink(
                *(self._machine(a.node), self._machine(b.node), *numbers),
                cls=Link,
                intfName1=names[0],
                intfName2=names[1],
                **options,
            )
        except Exception as error:  # noqa: BLE001 (Mininet raises plain Exception)
            raise RunError(
                f"{self.lab.path}: cable {a} - {b}: {str(error).strip().splitlines()[-1]}"
            ) from None

    def _port(self, end: Endpoint) -> int:
        """Return Mininet's number for a port: a host's interfaces are counted from 0."""
        host = self.lab.hosts.get(end.node)
        return end.port if host is None else self.lab.machines[host.machine].index(host)

    def _machine(self, node: str) -> str:
        """Return the node that has a namespace: for an interface of a host, the whole machine."""
        host = self.lab.hosts.get(node)
        return node if host is None else host.machine

    def _node(self, name: str) -> Node:
        return self._net.getNodeByName(self._machine(name))

    def _prefix(self, node: str) -> Sequence[str]:
        return self.inside(node) if node in self.lab.hosts else ()


def refuse_difference(where: str, what: str, wanted: object, actual: object) -> None:
    """Raise `RunError` if what the kernel has differs from what was asked of it."""
    if wanted != actual:
        raise RunError(
            f"{where}: {what} should be {wanted} but is {actual}: Mininet or this kernel did not obey"
        )
