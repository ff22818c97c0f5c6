"""Entries that the procedures of the control plane add, change and delete."""

from __future__ import annotations

from typing import Any, Final

from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.controller.messages import flow_mod

XID: Final = 7
TABLE_ENTRIES: Final = 128
_FIRST_PRIORITY: Final = 100
_OUT_PORT: Final = 2


def adds(count: int, actions: int) -> list[bytes]:
    """FLOW_MODs that add so many different entries."""
    return [add(place, actions) for place in range(count)]


def add(place: int, actions: int) -> bytes:
    """FLOW_MOD that adds one of them."""
    return table_change(of.OFPFC_ADD, entry_match(place), actions=actions, priority=_FIRST_PRIORITY + place)


def entry_match(place: int) -> Any:
    """What it matches."""
    return parser.OFPMatch(dl_type=0x0800, nw_proto=17, tp_dst=7000 + place)


def table_change(command: int, match: Any, *, actions: int = 0, priority: int = _FIRST_PRIORITY) -> bytes:
    """A FLOW_MOD. All have the same cookie, which the Zodiac FX compares in a strict DELETE (quirk 48)."""
    outputs = [parser.OFPActionOutput(_OUT_PORT, 0xFFFF) for _ in range(actions)]
    return flow_mod(match, outputs, priority=priority, xid=XID, command=command, cookie=1)
