"""OpenFlow 1.0 on the wire, as far as the switch driver speaks it: values to bytes and back.

An entry is kept as the bytes that the switch gets. So what it lists can be compared with what was sent, and
be deleted by exactly these bytes, which is how the Zodiac FX finds it (quirks 43 and 48).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from loko.entries import FlowEntry

VERSION: Final = 1
SEGMENT_BYTES: Final = 536
"""TCP segment size of the board (MSS option in its SYN); it reassembles nothing (quirks 10 and 11)."""

_HELLO, _ERROR, _FEATURES_REQUEST, _FLOW_MOD = 0, 1, 5, 14
_STATS_REQUEST, _STATS_REPLY, _BARRIER_REQUEST, _BARRIER_REPLY = 16, 17, 18, 19
_FLOW_STATS, _TABLE_STATS, _MORE = 1, 3, 1
_ADD, _DELETE_STRICT = 0, 4
_ANY_PORT: Final = 0xFFFF
_NO_BUFFER: Final = 0xFFFF_FFFF
_FIVE_TUPLE_WILDCARDS: Final = 0x0030_000F
"""nw_tos, dl_vlan_pcp; in_port, dl_vlan, dl_src, dl_dst (OpenFlow 1.0.0, section 5.2.3)."""
_COMPARED: Final = 0x000F_FFFF
"""All but dl_vlan_pcp and nw_tos, which mean nothing beside a wildcard for VLANs."""
_NOTHING_FIXED: Final = 0x003F_FFFF

_HEADER: Final = struct.Struct("!BBHI")
_MATCH: Final = struct.Struct("!IH6x6xHxxHBBxxIIHH")
_FLOW_MOD_BODY: Final = struct.Struct("!QHHHHIHH")
_OUTPUT: Final = struct.Struct("!HHHH")
_LISTED: Final = struct.Struct("!HBx40sIIHHH6xQQQ")
_COUNTED: Final = struct.Struct("!B3x32sIIIQQ")


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a flow table in the switch's own terms."""

    cookie: int
    priority: int
    match: bytes
    """The 40 bytes of an `ofp_match`."""
    actions: bytes

    @property
    def fields(self) -> tuple[object, ...]:
        """What is compared with what a switch lists: the match, however its open fields are written."""
        wildcards, in_port, vlan, dl_type, tos, proto, source, destination, tp_src, tp_dst = _MATCH.unpack(
            self.match
        )
        if wildcards & _COMPARED == _FIVE_TUPLE_WILDCARDS & _COMPARED:
            return (dl_type, proto, source, destination, tp_src, tp_dst)
        return (wildcards, in_port, vlan, dl_type, tos, proto, source, destination, tp_src, tp_dst)

    def __str__(self) -> str:
        _, _, _, dl_type, _, proto, source, destination, tp_src, tp_dst = _MATCH.unpack(self.match)
        return (
            f"type {dl_type:#06x} protocol {proto} {_dotted(source)}:{tp_src} ->"
            f" {_dotted(destination)}:{tp_dst} cookie {self.cookie:#x}"
        )


def entry_of(flow: FlowEntry, *, cookie: int) -> Entry:
    """A planned entry as the switch gets it."""
    match = _MATCH.pack(
        _FIVE_TUPLE_WILDCARDS,
        0,
        0,
        flow.dl_type,
        0,
        flow.nw_proto,
        int(flow.nw_src),
        int(flow.nw_dst),
        flow.tp_src,
        flow.tp_dst,
    )
    return Entry(
        cookie=cookie,
        priority=flow.priority,
        match=match,
        actions=_OUTPUT.pack(0, 8, flow.output_port, 0xFFFF),
    )


@dataclass(frozen=True, slots=True)
class Add:
    """Append an entry, without timeouts. No reply, unless it is refused."""

    xid: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class DeleteStrict:
    """Remove the entry with exactly this match and, on the board, this cookie. No reply."""

    xid: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class Barrier:
    """Ask to confirm that all before is done."""

    xid: int


@dataclass(frozen=True, slots=True)
class TableStats:
    """Ask for the number of entries."""

    xid: int


@dataclass(frozen=True, slots=True)
class FlowStats:
    """Ask for the entries."""

    xid: int


Request = Add | DeleteStrict | Barrier | TableStats | FlowStats


def encode(request: Request) -> bytes:
    """The bytes of a request."""
    match request:
        case Add(xid=xid, entry=entry):
            return _flow_mod(xid, entry, _ADD, entry.actions)
        case DeleteStrict(xid=xid, entry=entry):
            return _flow_mod(xid, entry, _DELETE_STRICT, b"")
        case Barrier(xid=xid):
            return _message(_BARRIER_REQUEST, xid)
        case TableStats(xid=xid):
            return _message(_STATS_REQUEST, xid, struct.pack("!HH", _TABLE_STATS, 0))
        case FlowStats(xid=xid):
            everything = struct.pack("!I36x", _NOTHING_FIXED)
            return _message(
                _STATS_REQUEST, xid, struct.pack("!HH40sBxH", _FLOW_STATS, 0, everything, 0xFF, _ANY_PORT)
            )


def segment(requests: Iterable[Request]) -> bytes:
    """Requests that go in one write, hence in one TCP segment. Raises `ValueError` if they do not fit one."""
    return one_segment(map(encode, requests))


def one_segment(messages: Iterable[bytes]) -> bytes:
    """Messages that go in one TCP segment, of either version. Raises `ValueError` if they do not fit one."""
    data = b"".join(messages)
    if len(data) > SEGMENT_BYTES:
        raise ValueError(f"{len(data)} bytes exceed a segment of {SEGMENT_BYTES}")
    return data


@dataclass(frozen=True, slots=True)
class BarrierReply:
    """All before the barrier is done."""

    xid: int


@dataclass(frozen=True, slots=True)
class TableCount:
    """How many entries there are."""

    xid: int
    active: int


@dataclass(frozen=True, slots=True)
class Listed:
    """Entries, in the order of the table."""

    xid: int
    entries: tuple[Entry, ...]
    more: bool
    """Another message with the same xid follows."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An error. `xid` is that of the request, or 0 if the switch does not say (quirk 31)."""

    xid: int
    kind: int
    code: int

    def __str__(self) -> str:
        return _REFUSALS.get((self.kind, self.code), f"error {self.kind}/{self.code}")


_FULL: Final = "its table or its memory is full"
_REFUSALS: Final = {
    (3, 0): _FULL,
    (5, 1): _FULL,  # OpenFlow 1.3; 1.0 has queues there, of which nothing is asked
    (2, 4): "it has no such output port",
}
"""Why an ADD was refused, by type and code."""

Reply = BarrierReply | TableCount | Listed | Refused


def decode(message: bytes) -> Reply | None:
    """What a whole message of a switch says; None if it is of no interest here, or malformed."""
    try:
        return _decode(message)
    except struct.error:
        return None


def _decode(message: bytes) -> Reply | None:
    _, kind, _, xid = _HEADER.unpack_from(message)
    if kind == _BARRIER_REPLY:
        return BarrierReply(xid)
    if kind == _ERROR:
        return Refused(xid, *struct.unpack_from("!HH", message, 8))
    if kind != _STATS_REPLY:
        return None
    subject, flags = struct.unpack_from("!HH", message, 8)
    if subject == _TABLE_STATS:
        tables = range(12, len(message), _COUNTED.size)
        return TableCount(xid, sum(_COUNTED.unpack_from(message, at)[4] for at in tables))
    if subject == _FLOW_STATS:
        return Listed(xid, tuple(_listed(message)), more=bool(flags & _MORE))
    return None


def _listed(message: bytes) -> Iterable[Entry]:
    at = 12
    while at < len(message):
        length, _, match, _, _, priority, _, _, cookie, _, _ = _LISTED.unpack_from(message, at)
        if length < _LISTED.size:
            raise struct.error(f"an entry of {length} bytes")
        yield Entry(cookie, priority, match, message[at + _LISTED.size : at + length])
        at += length


def _flow_mod(xid: int, entry: Entry, command: int, actions: bytes) -> bytes:
    body = _FLOW_MOD_BODY.pack(entry.cookie, command, 0, 0, entry.priority, _NO_BUFFER, _ANY_PORT, 0)
    return _message(_FLOW_MOD, xid, entry.match + body + actions)


def _message(kind: int, xid: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(VERSION, kind, _HEADER.size + len(body), xid) + body


def _dotted(address: int) -> str:
    return ".".join(str(byte) for byte in address.to_bytes(4, "big"))
