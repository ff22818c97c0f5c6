"""Flow tables as values: what stands in each switch for a set of admitted flows (section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from loko.document import InputError
from loko.flow import Flow, refuse_doubles
from loko.lab import Lab
from loko.network import Routed

ETHERTYPE_IPV4: Final = 0x0800
PROTOCOL_UDP: Final = 17
EVALUATION_ENTRIES: Final = 17
"""Entries a switch of section 6: 4 used and 13 dummies."""

_DUMMY_NETWORK: Final = IPv4Network("192.0.2.0/24")  # TEST-NET-1, RFC 5737: never assigned to a host
_DUMMY_UDP_PORT: Final = 9  # "discard", RFC 863; a zero port would be a wildcard on the board
_FIRST_PRIORITY: Final = 100
_FILLER_PRIORITY: Final = 200


@dataclass(frozen=True, kw_only=True)
class FlowEntry:
    """A five-tuple entry with a single output, the only kind that section 6 uses."""

    priority: int
    nw_src: IPv4Address
    nw_dst: IPv4Address
    tp_src: int
    tp_dst: int
    output_port: int
    dl_type: int = ETHERTYPE_IPV4
    nw_proto: int = PROTOCOL_UDP


def switch_entries(
    lab: Lab, routed: Sequence[Routed], *, entries: int = EVALUATION_ENTRIES
) -> dict[str, tuple[FlowEntry, ...]]:
    """The table of every switch of the lab: dummies first, used entries at the end, increasing priorities.

    Every flow has an entry at each switch of its path, and nowhere else.
    So the search visits every entry for each frame, the worst case of section 6, whatever the flows are.
    No traffic of the lab hits a dummy. Raises `InputError` if a table would not hold its flows.
    """
    refuse_doubles([one.flow for one in routed])
    _refuse_reserved_addresses(lab)
    passing: dict[str, list[tuple[Flow, int]]] = {name: [] for name in lab.switches}
    for one in routed:
        for hop in one.path:
            passing[hop.switch].append((one.flow, hop.output_port))
    return {name: _table(lab, name, passing[name], entries) for name in lab.switches}


def filler_entries(lab: Lab, count: int) -> tuple[FlowEntry, ...]:
    """Entries that no frame of the lab hits, for tables in which flows come and go.

    Their priority is above the flows': wherever they stand, the search compares every one of them for each
    frame, also behind a hit. So no frame is handled sooner than with so many entries and its own. Raises
    `InputError` if hosts have the addresses of dummies.
    """
    _refuse_reserved_addresses(lab)
    return tuple(replace(_dummy(number), priority=_FILLER_PRIORITY) for number in range(count))


def _table(lab: Lab, switch: str, used: list[tuple[Flow, int]], entries: int) -> tuple[FlowEntry, ...]:
    limit = lab.switches[switch].profile.table.entries.value
    if entries > limit:
        raise InputError(f"{switch}: {entries} entries planned, its table holds {limit}; plan fewer")
    if len(used) > entries:
        raise InputError(
            f"{switch}: {len(used)} flows pass, {entries} entries are planned; plan more entries"
        )
    dummies = [_dummy(number) for number in range(entries - len(used))]
    real = [flow_entry(lab, flow, port) for flow, port in used]
    return tuple(
        replace(entry, priority=_FIRST_PRIORITY + place) for place, entry in enumerate([*dummies, *real])
    )


def flow_entry(lab: Lab, flow: Flow, output_port: int) -> FlowEntry:
    """The entry that sends a flow out of a port."""
    return FlowEntry(
        priority=_FIRST_PRIORITY,
        nw_src=lab.hosts[flow.source].ip.ip,
        nw_dst=lab.hosts[flow.destination].ip.ip,
        tp_src=flow.udp_source,
        tp_dst=flow.udp_destination,
        output_port=output_port,
    )


@lru_cache(maxsize=256)
def _dummy(number: int) -> FlowEntry:
    # It has an output: an entry without actions would inherit old ones on the board (quirk Q55).
    return FlowEntry(
        priority=_FIRST_PRIORITY,
        nw_src=_DUMMY_NETWORK[1 + number],
        nw_dst=_DUMMY_NETWORK[254],
        tp_src=_DUMMY_UDP_PORT,
        tp_dst=_DUMMY_UDP_PORT,
        output_port=1,
    )


def _refuse_reserved_addresses(lab: Lab) -> None:
    for host in lab.hosts.values():
        if host.ip.ip in _DUMMY_NETWORK:
            raise InputError(f"{lab.path}: hosts.{host.name}.ip: {_DUMMY_NETWORK} is kept for dummy entries")
