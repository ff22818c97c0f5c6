"""Frames that carry a number, to see whether, when and where each comes out of a switch."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import dpkt
import numpy as np
from numpy.typing import NDArray

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
"""VLAN of the frames that carry a tag."""
_LABEL: Final = 9
_BOTTOM_OF_STACK: Final = 0x100
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
"""The fields of a frame that a match of OpenFlow 1.0 compares, except port and VLAN."""
_TRAILER: Final = b"loko"


class FrameLayout(Enum):
    """The protocols of a numbered frame."""

    UDP = "udp"
    TAGGED = "tagged"
    """UDP with a VLAN tag."""
    TCP = "tcp"
    """A TCP segment that belongs to no connection."""
    MPLS = "mpls"
    """UDP under one MPLS label."""


def frame(
    frame_bytes: int, number: int, *, udp: int = UDP_OUT, shape: FrameLayout = FrameLayout.UDP
) -> bytes:
    """Return a frame, without FCS, that carries `number`, which no action of Table 1 changes.

    `udp` is the destination port, also for TCP. It distinguishes frames for different entries.
    """
    return _frame(frame_bytes, udp, shape)[:-4] + number.to_bytes(4, "big")


def frames(frame_bytes: int, count: int, *, shape: FrameLayout = FrameLayout.UDP) -> list[bytes]:
    """Return frames as `frame` does, with the numbers from 0 on."""
    train = _train(frame_bytes, shape)
    if len(train) < count:
        front = _frame(frame_bytes, UDP_OUT, shape)[:-4]
        train.extend([front + number.to_bytes(4, "big") for number in range(len(train), count)])
    return train[:count]


@lru_cache(maxsize=1)  # a search sends trains of one length again and again
def _train(_frame_bytes: int, _shape: FrameLayout) -> list[bytes]:
    """Return the frames of this kind that `frames` has made so far."""
    return []


@lru_cache(maxsize=1 << 13)  # each entry of a full table has its frame, and is probed several times
def _frame(frame_bytes: int, port_out: int, shape: FrameLayout) -> bytes:
    tag = bytes.fromhex("8100") + VLAN.to_bytes(2, "big") if shape is FrameLayout.TAGGED else b""
    label = (_LABEL << 12 | _BOTTOM_OF_STACK | 64).to_bytes(4, "big") if shape is FrameLayout.MPLS else b""
    over_ip = 20 if shape is FrameLayout.TCP else 8
    room = frame_bytes - FCS_BYTES - 14 - len(tag) - len(label) - 20 - over_ip
    payload = bytes(room - 8) + _TRAILER + bytes(4)
    segment: dpkt.Packet
    if shape is FrameLayout.TCP:
        segment = dpkt.tcp.TCP(sport=UDP_IN, dport=port_out, data=payload)
    else:
        segment = dpkt.udp.UDP(sport=UDP_IN, dport=port_out, data=payload)
        segment.ulen = len(segment)
    protocol = dpkt.ip.IP_PROTO_TCP if shape is FrameLayout.TCP else dpkt.ip.IP_PROTO_UDP
    ip = dpkt.ip.IP(src=_address(IP_IN), dst=_address(IP_OUT), p=protocol, tos=TOS, ttl=64, data=segment)
    ip.len = len(ip)
    kind = bytes.fromhex("8847" if shape is FrameLayout.MPLS else "0800")
    return _mac(MAC_OUT) + _mac(MAC_IN) + tag + kind + label + bytes(ip)


def announcement() -> bytes:
    """Return a frame, without FCS, from where numbered frames go, so that a switch learns the port."""
    return bytes.fromhex("ffffffffffff" + MAC_OUT.replace(":", "") + "0806").ljust(60, b"\0")


def number_of(data: bytes) -> int | None:
    """Return the number that a frame carries; None for other frames."""
    if data[-8:-4] != _TRAILER:
        return None
    return int.from_bytes(data[-4:], "big")


def numbers_of(tails: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which frames carry a number, and their numbers, from the last eight bytes of all frames."""
    numbered = tails >> np.uint64(32) == int.from_bytes(_TRAILER, "big")
    return numbered, (tails[numbered] & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _address(text: str) -> bytes:
    return bytes(map(int, text.split(".")))


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
