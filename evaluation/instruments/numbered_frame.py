"""Frames that carry a number: what is sent to see when, and whether, it comes out of a switch, and where."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import dpkt

FCS_BYTES: Final = 4
TAG_BYTES: Final = 4

MAC_IN: Final = "02:00:00:00:00:01"
MAC_OUT: Final = "02:00:00:00:00:02"
IP_IN: Final = "10.0.0.1"
IP_OUT: Final = "10.0.1.2"
UDP_IN: Final = 5000
UDP_OUT: Final = 6000
TOS: Final = 0
VLAN: Final = 5
"""Of those that come with a tag."""
FIELDS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "dl_src": MAC_IN,
        "dl_dst": MAC_OUT,
        "dl_vlan_pcp": 0,
        "dl_type": 0x0800,
        "nw_tos": TOS,
        "nw_proto": 17,
        "nw_src": IP_IN,
        "nw_dst": IP_OUT,
        "tp_src": UDP_IN,
        "tp_dst": UDP_OUT,
    }
)
"""What a match of OpenFlow 1.0 sees of a frame, but for its port and its VLAN."""
_TRAILER: Final = b"loko"


def frame(frame_bytes: int, number: int, *, udp: int = UDP_OUT, tagged: bool = False) -> bytes:
    """A frame, without FCS. It carries `number`, which no action of Table 1 touches.

    `udp` is its destination port, which tells frames for different entries apart.
    """
    return _frame(frame_bytes, udp, tagged)[:-4] + number.to_bytes(4, "big")


@lru_cache
def _frame(frame_bytes: int, udp_out: int, tagged: bool) -> bytes:
    tag = bytes.fromhex("8100") + VLAN.to_bytes(2, "big") if tagged else b""
    room = frame_bytes - FCS_BYTES - 14 - len(tag) - 20 - 8
    payload = bytes(room - 8) + _TRAILER + bytes(4)
    udp = dpkt.udp.UDP(sport=UDP_IN, dport=udp_out, data=payload)
    udp.ulen = len(udp)
    ip = dpkt.ip.IP(src=_address(IP_IN), dst=_address(IP_OUT), p=17, tos=TOS, ttl=64, data=udp)
    ip.len = len(ip)
    return _mac(MAC_OUT) + _mac(MAC_IN) + tag + bytes.fromhex("0800") + bytes(ip)


def announcement() -> bytes:
    """A frame, without FCS, from where numbered frames go: a switch that learns finds the port by it."""
    return bytes.fromhex("ffffffffffff" + MAC_OUT.replace(":", "") + "0806").ljust(60, b"\0")


def number_of(data: bytes) -> int | None:
    """The number that a frame carries; None for other frames."""
    if data[-8:-4] != _TRAILER:
        return None
    return int.from_bytes(data[-4:], "big")


def _address(text: str) -> bytes:
    return bytes(map(int, text.split(".")))


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
