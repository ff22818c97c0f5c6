"""Traffic of low priority beside an admitted set, on switches with queues for each port.

It waits in the lowest queues. It makes frames of the flows wait for checks of the queues and for frames on
the wire, and takes shared memory (docs/port-queues.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Interface, IPv4Network
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from loko.admission.port_queues.conditions import OTHER_TRAFFIC_LOWEST_QUEUE
from loko.admission.port_queues.device import BESIDE_BYTES, queue_of, table_entries
from loko.admission.schemes import conditions_of, variant_named
from loko.control.entries import FlowEntry, flow_entry
from loko.switch_model.device import has_shared_server
from loko.switch_model.flow import Flow
from loko.topology.lab import Endpoint, Host, Lab, Link
from loko.topology.network import Routed, shortest_path
from loko_testbed.simulation.traffic import Instants, Releases, Sender
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet

_LEAST_NUMBER: Final = 700
"""Numbers of these flows begin here, or above those of the admitted ones."""
_FRAME_BYTES: Final = 1518
_BENCHMARKS: Final = IPv4Network("198.18.0.0/15")  # RFC 2544: never assigned to a host
_MAC: Final = "02:4f:00:00:00:01"
"""Of every sending host at a free port: no frame is for them."""


@dataclass(frozen=True, kw_only=True)
class OtherTraffic:
    """Flows that nobody has admitted, with all that they need in a lab."""

    lab: Lab
    """The lab with the hosts that send them."""
    entries: Mapping[str, Sequence[FlowEntry]] = field(default_factory=dict)
    """The entries of these flows by switch. They name no queue, so their frames wait in the lowest one."""
    senders: tuple[Sender, ...] = ()
    unfilled: tuple[str, ...] = ()
    """Switches without a free port at which a host could send, or without room for its entry."""


def allowed_beside(case: AdmittedSet, *, duration_ns: int) -> OtherTraffic | None:
    """Return the most other traffic that the guarantees of a case allow for; None if they allow for none."""
    if all(queue_of(switch.profile) is None for switch in case.lab.switches.values()):
        return None
    conditions = conditions_of(variant_named(case.scheme)).conditions
    if OTHER_TRAFFIC_LOWEST_QUEUE.id not in {condition.id for condition in conditions}:
        return None
    return at_line_rate(case.lab, case.admitted, duration_ns=duration_ns)


def from_hosts(lab: Lab, *, duration_ns: int) -> OtherTraffic:
    """Let each host send the largest frames, up to half of 1 Gbit/s, along a shortest path.

    Such paths stay away from switches that forward for all ports by one server.
    """
    hosts = list(lab.hosts)
    entries: dict[str, list[FlowEntry]] = {}
    senders = []
    for number, source in enumerate(hosts):
        apart = (other for other in reversed(hosts) if _keeps_apart(lab, source, other))
        if (destination := next(apart, None)) is None:
            continue
        flow = _flow(_LEAST_NUMBER + number, source, destination)
        for hop in shortest_path(lab, source, destination):
            entries.setdefault(hop.switch, []).append(_entry(lab, flow, hop.output_port))
        senders.append(_sender(flow, np.arange(0, duration_ns, 25_000 + 100 * number, dtype=np.int64)))
    return OtherTraffic(lab=lab, entries=entries, senders=tuple(senders))


def at_line_rate(lab: Lab, routed: Sequence[Routed], *, duration_ns: int) -> OtherTraffic:
    """Fill the ports of all switches with queues that the flows cross, from hosts at their free ports.

    Filled are the ports by which flows may leave, but those to switches without queues: these would forward
    such frames by the CPU that forwards the flows. The frames pass one cable. Where free ports are few,
    several ports share the line of a host; where the flows leave few entries, fewer ports are filled.
    """
    passing = Counter(hop.switch for route in routed for hop in route.path)
    may_fill = {name: ports for name in sorted(passing) if (ports := _ports_to_fill(lab, name))}
    filled = {
        name: ports[: max(0, table_entries(lab.switches[name].profile) - passing[name])]
        for name, ports in may_fill.items()
    }
    lines = list(_lines(lab, filled))
    destination = next(iter(lab.hosts))
    first_number = max(_LEAST_NUMBER, len(routed))
    with_hosts = replace(
        lab,
        hosts=MappingProxyType({**lab.hosts, **{line.host.name: line.host for line in lines}}),
        links=(*lab.links, *(line.link for line in lines)),
    )
    entries: dict[str, list[FlowEntry]] = {}
    senders: list[Sender] = []
    for line in lines:
        frame_ns = int((_FRAME_BYTES + BESIDE_BYTES) * 8e9 / with_hosts.rate_bps(line.link))
        period_ns = frame_ns * len(line.output_ports)
        for turn, output_port in enumerate(line.output_ports):
            flow = _flow(first_number + len(senders), line.host.name, destination)
            entry = _entry(with_hosts, flow, output_port, line.link.b.port)
            entries.setdefault(line.switch, []).append(entry)
            senders.append(_sender(flow, np.arange(turn * frame_ns, duration_ns, period_ns, dtype=np.int64)))
    return OtherTraffic(
        lab=with_hosts,
        entries=entries,
        senders=tuple(senders),
        unfilled=tuple(sorted(may_fill.keys() - entries.keys())),
    )


def _keeps_apart(lab: Lab, source: str, destination: str) -> bool:
    """Return whether every switch on the shortest path between two hosts has a queue for low priority."""
    return source != destination and not any(
        has_shared_server(lab.switches[hop.switch].profile) for hop in shortest_path(lab, source, destination)
    )


class _Line(NamedTuple):
    """A host at a free port of a switch, and the ports that it fills."""

    host: Host
    link: Link
    switch: str
    output_ports: Sequence[int]


def _lines(lab: Lab, filled: Mapping[str, Sequence[int]]) -> Iterator[_Line]:
    """Yield the hosts that fill these ports, by switch."""
    taken = {host.ip.ip for host in lab.hosts.values()}
    addresses = (address for address in _BENCHMARKS.hosts() if address not in taken)
    for switch, output_ports in filled.items():
        free = _free_ports(lab, switch)
        for place, port in enumerate(free[: len(output_ports)]):
            host = Host(
                name=f"other-traffic-{switch}-{port}", mac=_MAC, ip=IPv4Interface((next(addresses), 15))
            )
            link = Link(a=Endpoint(node=host.name, port=1), b=Endpoint(node=switch, port=port))
            yield _Line(host, link, switch, output_ports[place :: len(free)])


def _ports_to_fill(lab: Lab, switch: str) -> list[int]:
    if queue_of(lab.switches[switch].profile) is None:
        return []
    return [
        port
        for port, far in lab.outgoing_cables(switch)
        if far.node in lab.hosts or queue_of(lab.switches[far.node].profile) is not None
    ]


def _free_ports(lab: Lab, switch: str) -> list[int]:
    ports = range(1, lab.switches[switch].profile.ports.count.value + 1)
    return [port for port in ports if port != lab.control_port and lab.far_end(switch, port) is None]


def _flow(number: int, source: str, destination: str) -> Flow:
    return Flow(
        id=f"low{number}",
        source=source,
        destination=destination,
        udp_source=number,
        udp_destination=number,
        rate_bps=5e8,
        burst_bytes=float(_FRAME_BYTES),
        frame_bytes=_FRAME_BYTES,
    )


def _entry(lab: Lab, flow: Flow, output_port: int, input_port: int | None = None) -> FlowEntry:
    return replace(flow_entry(lab, flow, output_port, in_port=input_port), priority=1)


def _sender(flow: Flow, instants_ns: Instants) -> Sender:
    return Sender.of(flow.udp_source, flow, Releases(instants_ns=instants_ns, bucket=None), observed=False)
