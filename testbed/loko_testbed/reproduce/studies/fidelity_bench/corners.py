"""The corners of Table 1, and their flow tables."""

from __future__ import annotations

import itertools
from ipaddress import IPv4Address
from typing import Any, Final

from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.entries import ETHERTYPE_IPV4, PROTOCOL_UDP
from loko.control.os_ken_messages import flow_mod, output_to
from loko.switch_model.scenario import (
    TABLE_1_ENTRIES,
    TABLE_1_FRAME_BYTES,
    ActionType,
    Case,
    MatchType,
    PriorityOrder,
    Scenario,
    UsedEntry,
)
from loko_testbed.live.one_board import udp_frame

MATCHES: Final = (MatchType.PORT, MatchType.ALL)
"""The types of match with the least and the greatest cost."""
ACTIONS: Final = (ActionType.OUTPUT, ActionType.SET_NW_SRC)
"""The cheapest action, and that with the paper's longest processing time (section 3.3.3)."""

INPUT_PORT, OUTPUT_PORT, UNUSED_PORT = 1, 2, 3
_UDP_PORT: Final = 5000
_HOST_ADDRESSES: Final = (IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2"))
_HOST_MACS: Final = ("02:00:00:00:00:01", "02:00:00:00:00:02")
_DUMMY_ADDRESS: Final = IPv4Address("192.0.2.1")  # TEST-NET-1, RFC 5737
_NEW_SOURCE: Final = 0x0A00_0009
_FIRST_PRIORITY: Final = 100


def corners() -> tuple[Case, ...]:
    """Return all combinations of extreme values of Table 1; with one entry, there is only one order."""
    orders = tuple(itertools.product(UsedEntry, PriorityOrder))
    return tuple(
        Case(
            entries=entries,
            match=match,
            action=action,
            used_entry=used,
            priorities=priorities,
            frame_bytes=frame_bytes,
        )
        for entries in (min(TABLE_1_ENTRIES), max(TABLE_1_ENTRIES))
        for match in MATCHES
        for action in ACTIONS
        for used, priorities in (orders if entries > 1 else orders[:1])
        for frame_bytes in (min(TABLE_1_FRAME_BYTES), max(TABLE_1_FRAME_BYTES))
    )


def few_corners() -> tuple[Case, ...]:
    """Return a few corners with each extreme value in at least one, for a quick run."""
    every = corners()
    return (every[0], every[7], every[8], every[13], every[-2], every[-1])


def label(corner: Case) -> str:
    """Return a corner's name, also used for its file."""
    order = f"-{corner.used_entry.value}-{corner.priorities.value}" if corner.entries > 1 else ""
    return f"{corner.entries}-{corner.match.value}-{corner.action.value}{order}-{corner.frame_bytes}B"


def scenario(corner: Case) -> Scenario:
    """Convert a corner to a scenario of the model."""
    return Scenario(
        entries=corner.entries,
        match=corner.match,
        action=corner.action,
        packet_sizes_bytes=(corner.frame_bytes,),
        priorities=corner.priorities,
        used_entry=corner.used_entry,
    )


def frame(corner: Case) -> bytes:
    """Return the frame to send, without FCS; it matches the used entry only."""
    return udp_frame(0, frame_bytes=corner.frame_bytes, udp_port=_UDP_PORT)


def table(corner: Case) -> list[bytes]:
    """Return the FLOW_MODs of the corner's table, in order."""
    used = 0 if corner.used_entry is UsedEntry.FIRST else corner.entries - 1
    rising = corner.priorities is PriorityOrder.INCREASING
    return [
        _add(
            corner,
            priority=_FIRST_PRIORITY + (place if rising else corner.entries - place),
            dummy=None if place == used else place,
        )
        for place in range(corner.entries)
    ]


def _add(corner: Case, *, priority: int, dummy: int | None) -> bytes:
    source, in_port = _HOST_ADDRESSES[0], INPUT_PORT
    if dummy is not None:
        # Change one field: the input port if it is the only one, else the source address.
        source = _DUMMY_ADDRESS + dummy
        in_port = UNUSED_PORT if corner.match is MatchType.PORT else INPUT_PORT
    values: dict[str, Any] = {
        "in_port": in_port,
        "dl_src": _HOST_MACS[0],
        "dl_dst": _HOST_MACS[1],
        "dl_type": ETHERTYPE_IPV4,
        "nw_tos": 0,
        "nw_proto": PROTOCOL_UDP,
        "nw_src": str(source),
        "nw_dst": str(_HOST_ADDRESSES[1]),
        "tp_src": _UDP_PORT,
        "tp_dst": _UDP_PORT,
    }
    match = parser.OFPMatch(**{field: values[field] for field in corner.match.fields})
    return flow_mod(match, _actions(corner.action), priority=priority, xid=priority)


def _actions(action: ActionType) -> list[Any]:
    if action is ActionType.OUTPUT:
        return [output_to(OUTPUT_PORT)]
    if action is ActionType.SET_NW_SRC:
        return [parser.OFPActionSetNwSrc(_NEW_SOURCE), output_to(OUTPUT_PORT)]
    raise ValueError(f"action {action.value} is at no corner")
