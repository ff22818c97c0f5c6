"""Flow tables as values: the entries of each switch for a set of admitted flows (section 6.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from loko.admission.port_queues.device import planned_entries, queue_of
from loko.admission.protection import ProtectedPlan
from loko.document import InputError
from loko.switch_model.device import Profile
from loko.switch_model.flow import Flow, refuse_duplicates
from loko.switch_model.scenario import UNKNOWN, MatchType, Unknown
from loko.topology.lab import Lab
from loko.topology.network import Hop, Routed, Visit, visits

ETHERTYPE_IPV4: Final = 0x0800
PROTOCOL_TCP: Final = 6
PROTOCOL_UDP: Final = 17
UNTAGGED: Final = 0xFFFF
"""Used instead of a VID: the frame has no tag (OFP_VLAN_NONE)."""
EVALUATION_ENTRIES: Final = 17
"""Entries a switch of section 6: 4 used and 13 padding entries."""

_PADDING_NETWORK: Final = IPv4Network("192.0.2.0/24")  # TEST-NET-1, RFC 5737: never assigned to a host
_PADDING_DESTINATION: Final = _PADDING_NETWORK[254]
_DUMMY_HOSTS: Final = 253
_DUMMY_UDP_PORT: Final = 9  # "discard", RFC 863; a zero port would be a wildcard on the board
_FIRST_PRIORITY: Final = 100
_PADDING_PRIORITY: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The fields that a frame must have to match, as in OpenFlow 1.0 (5.2.3). One not set is a wildcard."""

    in_port: int | None = None
    dl_src: str | None = None
    """A MAC address such as `02:00:00:00:00:01`, as is `dl_dst`."""
    dl_dst: str | None = None
    dl_vlan: int | None = None
    """VID of the outermost tag, 1 to 4094, or `UNTAGGED`."""
    dl_vlan_pcp: int | None = None
    dl_type: int | None = None
    nw_tos: int | None = None
    """DSCP in the upper six bits of the byte."""
    nw_proto: int | None = None
    nw_src: IPv4Address | IPv4Network | None = None
    nw_dst: IPv4Address | IPv4Network | None = None
    tp_src: int | None = None
    tp_dst: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that are set, in this order."""
        return tuple(name for name in self.__slots__ if getattr(self, name) is not None)


@dataclass(frozen=True, slots=True)
class Output:
    """Send the frame, with all changes made so far, out of a port."""

    port: int


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Send the frame out of a port through one of the port's queues."""

    port: int
    queue: int


@dataclass(frozen=True, slots=True)
class PopVlan:
    """Take off the outermost tag: OpenFlow 1.0's strip-vlan."""


@dataclass(frozen=True, slots=True)
class PushVlan:
    """Put a tag in front of any that are there. OpenFlow 1.0 has no such action."""

    vid: int


@dataclass(frozen=True, slots=True)
class SetVlan:
    """Replace the VID of the outermost tag. In OpenFlow 1.0 an untagged frame gets one."""

    vid: int


@dataclass(frozen=True, slots=True)
class Failover:
    """Send the frame out of the first of some ports that is up, by a group of type fast failover.

    OpenFlow 1.0 has no such action.
    """

    buckets: tuple[Output | Enqueue, ...]

    @property
    def group_id(self) -> int:
        """Number of the group, the same for all flows with these ports."""
        working, backup = (bucket.port for bucket in self.buckets)
        return working << 16 | backup


Action = Output | Enqueue | PopVlan | PushVlan | SetVlan | Failover


@dataclass(frozen=True, kw_only=True)
class FlowEntry:
    """An entry of a flow table: which frames match, and the actions on them, in order."""

    priority: int
    match: Fields
    actions: tuple[Action, ...]

    @property
    def output_port(self) -> int:
        """The port of its one output. Raises `ValueError` if it has none, or several."""
        (port,) = (action.port for action in self.actions if isinstance(action, Output | Enqueue))
        return port


def five_tuple_entry(
    *,
    priority: int,
    nw_src: IPv4Address,
    nw_dst: IPv4Address,
    tp_src: int,
    tp_dst: int,
    output_port: int,
    in_port: int | None = None,
) -> FlowEntry:
    """Return an entry with a single output for a UDP flow, the only kind that section 6 uses.

    With `in_port`, it matches only frames that arrive at this port.
    """
    match = Fields(
        in_port=in_port,
        dl_type=ETHERTYPE_IPV4,
        nw_proto=PROTOCOL_UDP,
        nw_src=nw_src,
        nw_dst=nw_dst,
        tp_src=tp_src,
        tp_dst=tp_dst,
    )
    return FlowEntry(priority=priority, match=match, actions=(Output(output_port),))


def match_of(lab: Lab) -> MatchType:
    """Return what the entries of a lab's flows compare: also input ports, if paths may revisit a switch."""
    return MatchType.FIVE_TUPLE_AND_PORT if lab.loop_cables else MatchType.FIVE_TUPLE


def default_entries(lab: Lab) -> int | Unknown:
    """Return the entries that tables are planned for by default; `UNKNOWN` is all that each device holds.

    A board compares a frame with every entry, so each planned entry lengthens all guarantees: the default is
    that of section 6. Elsewhere entries cost no time.
    """
    boards = any(isinstance(switch.profile, Profile) for switch in lab.switches.values())
    return EVALUATION_ENTRIES if boards else UNKNOWN


def switch_entries(
    lab: Lab, routed: Sequence[Routed], *, entries: int | Unknown = EVALUATION_ENTRIES
) -> dict[str, tuple[FlowEntry, ...]]:
    """Return the table of every switch of the lab: padding first, used entries last, increasing priorities.

    Every flow has an entry for each visit to a switch of its path, and nowhere else. So the search visits
    every entry for each frame, the worst case of section 6, whatever the flows are. No traffic of the lab
    hits a padding entry. Where all that a table holds is planned
    for (`planned_entries`) there are no padding entries.
    Raises `InputError` if a table would not hold its flows.
    """
    refuse_duplicates([route.flow for route in routed])
    _refuse_reserved_addresses(lab)
    passing: dict[str, list[FlowEntry]] = {name: [] for name in lab.switches}
    for route in routed:
        for visit, entry in path_entries(lab, route):
            passing[visit.switch].append(entry)
    planned = planned_entries(lab, entries)
    return {
        name: _table(name, used, planned[name], is_filled=planned[name] == entries)
        for name, used in passing.items()
    }


def path_entries(lab: Lab, routed: Routed) -> tuple[tuple[Visit, FlowEntry], ...]:
    """Return the entries that send a flow along its path: one for each visit to a switch, in order.

    Where the path visits a switch several times, the entries tell the visits apart by the input port. Raises
    `InputError` as `visits` does.
    """
    return tuple(
        (
            visit,
            _queued(
                lab,
                visit.switch,
                routed.flow.traffic_class,
                flow_entry(
                    lab, routed.flow, visit.output_port, in_port=visit.input_port if visit.of > 1 else None
                ),
            ),
        )
        for visit in visits(lab, routed.flow.source, routed.path)
    )


def failover_entries(lab: Lab, plan: ProtectedPlan) -> tuple[tuple[str, FlowEntry], ...]:
    """Return the entries of a plan whose switches have groups of type fast failover, each with its switch.

    They send along the working paths, by a group where there is one, and along what is preinstalled of the
    backup paths. The second copies of duplicated flows are flows of their own (`path_entries`).
    """
    entries: list[tuple[str, FlowEntry]] = []
    for flow_id, flow in plan.flows.items():
        of_flow = {visit.switch: entry for visit, entry in path_entries(lab, flow.working)}
        for group in plan.groups.get(flow_id, ()):
            backup = flow_entry(lab, flow.working.flow, group.backup_port)
            backup = _queued(lab, group.switch, flow.working.flow.traffic_class, backup)
            sends = (of_flow[group.switch].actions[-1], backup.actions[-1])
            buckets = tuple(action for action in sends if isinstance(action, Output | Enqueue))
            of_flow[group.switch] = replace(of_flow[group.switch], actions=(Failover(buckets),))
        of_flow |= dict(hop_entries(lab, flow.working, plan.preinstalled.get(flow_id, ())))
        entries += of_flow.items()
    return tuple(entries)


def hop_entries(lab: Lab, routed: Routed, hops: Iterable[Hop]) -> Iterator[tuple[str, FlowEntry]]:
    """Yield the entries that send a flow out at hops that need not be on its path, each with its switch.

    They match whatever the input port is: so no path of the flow visits one of these switches twice.
    """
    for hop in hops:
        entry = flow_entry(lab, routed.flow, hop.output_port)
        yield hop.switch, _queued(lab, hop.switch, routed.flow.traffic_class, entry)


def left_entries(lab: Lab, routed: Routed) -> tuple[tuple[str, FlowEntry], ...]:
    """Return the entries of a path of which the lab may have lost cables, each with its switch.

    There are none for a path that visits a switch twice: cables decide on the input ports of its entries.
    """
    flow, path = routed.flow, [hop for hop in routed.path if hop.switch in lab.switches]
    if not {flow.source, flow.destination} <= lab.hosts.keys() or len({hop.switch for hop in path}) < len(
        path
    ):
        return ()
    return tuple(hop_entries(lab, routed, path))


def _queued(lab: Lab, switch: str, traffic_class: int, entry: FlowEntry) -> FlowEntry:
    """Return the entry with its class's queue of the port, where a switch has such queues."""
    queue = queue_of(lab.switches[switch].profile, traffic_class)
    return entry if queue is None else replace(entry, actions=(Enqueue(entry.output_port, queue),))


def flow_entry(lab: Lab, flow: Flow, output_port: int, *, in_port: int | None = None) -> FlowEntry:
    """Return the entry that sends a flow out of a port; with `in_port`, only frames that arrive there."""
    return five_tuple_entry(
        priority=_FIRST_PRIORITY,
        nw_src=lab.hosts[flow.source].ip.ip,
        nw_dst=lab.hosts[flow.destination].ip.ip,
        tp_src=flow.udp_source,
        tp_dst=flow.udp_destination,
        output_port=output_port,
        in_port=in_port,
    )


def padding_entries(lab: Lab, count: int) -> tuple[FlowEntry, ...]:
    """Return entries that no frame of the lab hits, for tables in which flows come and go.

    Their priority is above the flows'. So the search compares every one of them for each frame, wherever they
    are in the table, even after a hit. No frame is handled sooner than with `count` entries and its own.
    Raises `InputError` if hosts have the addresses of padding entries.
    """
    _refuse_reserved_addresses(lab)
    return tuple(replace(_padding_entry(number), priority=_PADDING_PRIORITY) for number in range(count))


def is_padding(entry: FlowEntry) -> bool:
    """Return whether this is a padding entry, which no frame of a lab hits."""
    return entry.match.nw_dst == _PADDING_DESTINATION


def _table(switch: str, used: Sequence[FlowEntry], planned: int, *, is_filled: bool) -> tuple[FlowEntry, ...]:
    if len(used) > planned:
        raise InputError(
            f"{switch}: {len(used)} flows pass, {planned} entries are planned; plan more entries"
        )
    fill = planned - len(used) if is_filled else 0
    padding = [_padding_entry(number) for number in range(fill)]
    return tuple(
        replace(entry, priority=_FIRST_PRIORITY + place) for place, entry in enumerate([*padding, *used])
    )


@lru_cache(maxsize=256)
def _padding_entry(number: int) -> FlowEntry:
    # It has an output: an entry without actions would inherit old ones on the board (quirk Q55).
    return five_tuple_entry(
        priority=_FIRST_PRIORITY,
        nw_src=_PADDING_NETWORK[1 + number % _DUMMY_HOSTS],
        nw_dst=_PADDING_DESTINATION,
        tp_src=_DUMMY_UDP_PORT + number // _DUMMY_HOSTS,
        tp_dst=_DUMMY_UDP_PORT,
        output_port=1,
    )


def _refuse_reserved_addresses(lab: Lab) -> None:
    for host in lab.hosts.values():
        if host.ip.ip in _PADDING_NETWORK:
            raise InputError(
                f"{lab.path}: hosts.{host.name}.ip: {_PADDING_NETWORK} is kept for padding entries"
            )
