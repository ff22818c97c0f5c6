"""OpenFlow 1.0 on the wire, as far as the switch driver speaks it: values to bytes and back.

An entry is kept as the bytes that the switch gets. So it can be compared with what the switch lists, and
deleted by exactly these bytes, which is how the Zodiac FX finds it (quirks 43 and 48).

It is written with `struct`, not with os-ken's parser, for three reasons: the driver is pure and runs beside
Ryu as well, the bytes of an entry must be its own, and this is a hot path (a FLOW_MOD in 1 us instead of 60).
`tests/unit/control/test_building.py` has os-ken build the same messages, and compares.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, wraps
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from loko.control.entries import (
    Action,
    Enqueue,
    Failover,
    Fields,
    FlowEntry,
    Output,
    PopVlan,
    PushVlan,
    SetVlan,
)
from loko.control.framing import HEADER, SEGMENT_BYTES, framed
from loko.control.port_links import PORTS_10, PortsReply
from loko.document import InputError

VERSION: Final = 1
_message: Final = partial(framed, VERSION)

BARRIER_BYTES: Final = 8
"""Length of a BARRIER_REQUEST, in either version."""

_HELLO, _ERROR, _FEATURES_REQUEST, _FEATURES_REPLY, _PORT_STATUS, _FLOW_MOD = 0, 1, 5, 6, 12, 14
_STATS_REQUEST, _STATS_REPLY, _BARRIER_REQUEST, _BARRIER_REPLY = 16, 17, 18, 19
_FLOW_STATS, _TABLE_STATS, _MORE = 1, 3, 1
_ADD, _DELETE_STRICT = 0, 4
_ANY_PORT: Final = 0xFFFF
_NO_BUFFER: Final = 0xFFFF_FFFF
_NOTHING_FIXED: Final = 0x003F_FFFF
_WILDCARDS: Final = {
    "in_port": 1 << 0,
    "dl_vlan": 1 << 1,
    "dl_src": 1 << 2,
    "dl_dst": 1 << 3,
    "dl_type": 1 << 4,
    "nw_proto": 1 << 5,
    "tp_src": 1 << 6,
    "tp_dst": 1 << 7,
    "nw_src": 0x3F << 8,
    "nw_dst": 0x3F << 14,
    "dl_vlan_pcp": 1 << 20,
    "nw_tos": 1 << 21,
}
"""The bits that make a field a wildcard (OpenFlow 1.0.0, section 5.2.3). Those of an address count how many
of its last bits are open; from 32 on, all are."""
_PREFIXES: Final = {"nw_src": 8, "nw_dst": 14}
_WHOLE_ADDRESS: Final = 32
_MACS: Final = frozenset({"dl_src", "dl_dst"})
_NO_MAC: Final = "00:00:00:00:00:00"

_MATCH: Final = struct.Struct("!IH6s6sHBxHBBxxIIHH")
_IN_MATCH: Final = (
    *("in_port", "dl_src", "dl_dst", "dl_vlan", "dl_vlan_pcp", "dl_type", "nw_tos", "nw_proto"),
    *("nw_src", "nw_dst", "tp_src", "tp_dst"),
)
"""The fields of an `ofp_match` in their order, after the wildcards."""
_FLOW_MOD_BODY: Final = struct.Struct("!QHHHHIHH")
_OUTPUT: Final = struct.Struct("!HHHH")
_SET_VLAN_VID: Final = struct.Struct("!HHHxx")
_STRIP_VLAN: Final = struct.Struct("!HH4x")
_ENQUEUE: Final = struct.Struct("!HHH6xI")
_LISTED: Final = struct.Struct("!HBx40sIIHHH6xQQQ")
_COUNTED: Final = struct.Struct("!B3x32sIIIQQ")
_FEATURES: Final = struct.Struct("!QIB3xII")


@dataclass(frozen=True, slots=True)
class WireEntry:
    """An entry of a flow table in the switch's own terms."""

    cookie: int
    priority: int
    match: bytes
    """The 40 bytes of an `ofp_match`."""
    actions: bytes

    @property
    def fields(self) -> tuple[object, ...]:
        """Key for comparing with a listing: the match, however its open fields are written."""
        return tuple(self._set_fields().items())

    @property
    def flow_mod_bytes(self) -> int:
        """Length of the longest message about this entry: the one that adds it."""
        return HEADER.size + len(self.match) + _FLOW_MOD_BODY.size + len(self.actions)

    def _set_fields(self) -> dict[str, tuple[int | bytes, int]]:
        """Return by name the value of each field that is not open, and how many of its last bits are."""
        wildcards, *values = _MATCH.unpack(self.match)
        fields = {}
        for name, value in zip(_IN_MATCH, values, strict=True):
            open_bits = (wildcards & _WILDCARDS[name]) >> _PREFIXES.get(name, 0)
            if open_bits == 0 or (name in _PREFIXES and open_bits < _WHOLE_ADDRESS):
                fields[name] = (value, open_bits)
        # A VLAN priority without a VLAN means nothing, nor does a type of service without IP. A type of
        # service of 0 counts as open: switches list it differently, and no entry of this project uses it.
        if "dl_vlan" not in fields:
            fields.pop("dl_vlan_pcp", None)
        if "dl_type" not in fields or fields.get("nw_tos", (0, 0))[0] == 0:
            fields.pop("nw_tos", None)
        return fields

    def __str__(self) -> str:
        said = [_field_text(name, *field) for name, field in self._set_fields().items()]
        return f"{' '.join(said) or 'every frame'} cookie {self.cookie:#x}"


def entry_of(flow: FlowEntry, *, cookie: int) -> WireEntry:
    """Return a planned entry as the switch gets it. Raises `InputError` for what OpenFlow 1.0 cannot say."""
    return WireEntry(
        cookie=cookie,
        priority=flow.priority,
        match=_match_of(flow.match),
        actions=b"".join(map(_action_of, flow.actions)),
    )


def _match_of(match: Fields) -> bytes:
    wildcards = _NOTHING_FIXED
    values: list[int | bytes] = []
    for name in _IN_MATCH:
        value = getattr(match, name)
        if value is not None:
            wildcards &= ~_WILDCARDS[name]
        if isinstance(value, IPv4Network):
            wildcards |= (_WHOLE_ADDRESS - value.prefixlen) << _PREFIXES[name]
            value = value.network_address
        if name in _MACS:
            value = bytes.fromhex((value or _NO_MAC).replace(":", ""))
        values.append(value if isinstance(value, bytes) else int(value or 0))
    return _MATCH.pack(wildcards, *values)


def _action_of(action: Action) -> bytes:
    match action:
        case Output(port=port):
            return _OUTPUT.pack(0, _OUTPUT.size, port, 0xFFFF)
        case SetVlan(vid=vid):
            return _SET_VLAN_VID.pack(1, _SET_VLAN_VID.size, vid)
        case PopVlan():
            return _STRIP_VLAN.pack(3, _STRIP_VLAN.size)
        case Enqueue(port=port, queue=queue):
            return _ENQUEUE.pack(11, _ENQUEUE.size, port, queue)
        case Failover():
            raise InputError("fast failover: OpenFlow 1.0 has no groups; ask for 1.3")
        case PushVlan(vid=vid):
            raise InputError(
                f"push-vlan {vid}: OpenFlow 1.0 cannot put a tag in front of another; ask for 1.3"
            )


@dataclass(frozen=True, slots=True)
class AddEntry:
    """Append an entry without timeouts. There is no reply unless it is refused."""

    xid: int
    entry: WireEntry


@dataclass(frozen=True, slots=True)
class DeleteEntry:
    """Remove the entry with exactly this match and, on the board, this cookie. There is no reply."""

    xid: int
    entry: WireEntry


@dataclass(frozen=True, slots=True)
class BarrierRequest:
    """Ask for confirmation that all earlier requests are done."""

    xid: int


@dataclass(frozen=True, slots=True)
class TableStatsRequest:
    """Ask for the number of entries."""

    xid: int


@dataclass(frozen=True, slots=True)
class FlowStatsRequest:
    """Ask for the entries."""

    xid: int


@dataclass(frozen=True, slots=True)
class PortsRequest:
    """Ask for the links of all ports."""

    xid: int


WireRequest = AddEntry | DeleteEntry | BarrierRequest | TableStatsRequest | FlowStatsRequest | PortsRequest


def encode(request: WireRequest) -> bytes:
    """Return the bytes of a request."""
    match request:
        case AddEntry(xid=xid, entry=entry):
            return _flow_mod(xid, entry, _ADD, entry.actions)
        case DeleteEntry(xid=xid, entry=entry):
            return _flow_mod(xid, entry, _DELETE_STRICT, b"")
        case BarrierRequest(xid=xid):
            return _message(_BARRIER_REQUEST, xid)
        case TableStatsRequest(xid=xid):
            return _message(_STATS_REQUEST, xid, struct.pack("!HH", _TABLE_STATS, 0))
        case PortsRequest(xid=xid):
            return _message(_FEATURES_REQUEST, xid)
        case FlowStatsRequest(xid=xid):
            everything = struct.pack("!I36x", _NOTHING_FIXED)
            return _message(
                _STATS_REQUEST, xid, struct.pack("!HH40sBxH", _FLOW_STATS, 0, everything, 0xFF, _ANY_PORT)
            )


def segment(requests: Iterable[WireRequest]) -> bytes:
    """Return the bytes of requests for one TCP segment. Raises `ValueError` if they do not fit one."""
    return one_segment(map(encode, requests))


def one_segment(messages: Iterable[bytes]) -> bytes:
    """Join messages of either version for one TCP segment. Raises `ValueError` if they do not fit one."""
    data = b"".join(messages)
    if len(data) > SEGMENT_BYTES:
        raise ValueError(f"{len(data)} bytes exceed a segment of {SEGMENT_BYTES}")
    return data


@dataclass(frozen=True, slots=True)
class BarrierReply:
    """All requests before the barrier are done."""

    xid: int


@dataclass(frozen=True, slots=True)
class TableStatsReply:
    """How many entries there are."""

    xid: int
    active: int


@dataclass(frozen=True, slots=True)
class FlowStatsReply:
    """Entries, in the order of the table."""

    xid: int
    entries: tuple[WireEntry, ...]
    more: bool
    """Whether another message with the same xid follows."""


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An error. `xid` is that of the request, or 0 if the switch does not say (quirk 31)."""

    xid: int
    kind: int
    code: int

    def __str__(self) -> str:
        return _REFUSALS.get((self.kind, self.code), f"error {self.kind}/{self.code}")


_FULL: Final = "its table or its memory is full"
_REFUSALS: Final = {
    (3, 0): _FULL,
    (5, 1): _FULL,  # OpenFlow 1.3; in 1.0 this is an error about queues, which are not used
    (2, 4): "it has no such output port",
}
"""Why an ADD was refused, by type and code."""

WireReply = BarrierReply | TableStatsReply | FlowStatsReply | ErrorReply | PortsReply
"""Message of a switch."""


def none_if_malformed(decode: Callable[[bytes], WireReply | None]) -> Callable[[bytes], WireReply | None]:
    """Have a decoder of either version return None for a message that is too short for what it says."""

    @wraps(decode)
    def decoded(message: bytes) -> WireReply | None:
        try:
            return decode(message)
        except struct.error:
            return None

    return decoded


@none_if_malformed
def decode(message: bytes) -> WireReply | None:
    """Decode a whole message of a switch; None if it is of no interest here, or malformed."""
    _, kind, _, xid = HEADER.unpack_from(message)
    if kind == _BARRIER_REPLY:
        return BarrierReply(xid)
    if kind == _ERROR:
        return ErrorReply(xid, *struct.unpack_from("!HH", message, 8))
    if kind == _PORT_STATUS:
        return PORTS_10.changed(xid, message[HEADER.size :])
    if kind == _FEATURES_REPLY:
        return PORTS_10.described(xid, message[HEADER.size + _FEATURES.size :])
    return _statistics(xid, message) if kind == _STATS_REPLY else None


def _statistics(xid: int, message: bytes) -> WireReply | None:
    subject, flags = struct.unpack_from("!HH", message, 8)
    if subject == _TABLE_STATS:
        tables = range(12, len(message), _COUNTED.size)
        return TableStatsReply(xid, sum(_COUNTED.unpack_from(message, at)[4] for at in tables))
    if subject == _FLOW_STATS:
        return FlowStatsReply(xid, tuple(_listed(message)), more=bool(flags & _MORE))
    return None


def _listed(message: bytes) -> Iterable[WireEntry]:
    at = 12
    while at < len(message):
        length, _, match, _, _, priority, _, _, cookie, _, _ = _LISTED.unpack_from(message, at)
        if length < _LISTED.size:
            raise struct.error(f"an entry of {length} bytes")
        yield WireEntry(cookie, priority, match, message[at + _LISTED.size : at + length])
        at += length


def _flow_mod(xid: int, entry: WireEntry, command: int, actions: bytes) -> bytes:
    body = _FLOW_MOD_BODY.pack(entry.cookie, command, 0, 0, entry.priority, _NO_BUFFER, _ANY_PORT, 0)
    return _message(_FLOW_MOD, xid, entry.match + body + actions)


def _field_text(name: str, value: int | bytes, open_bits: int) -> str:
    if isinstance(value, bytes):
        return f"{name} {value.hex(':')}"
    if name in _PREFIXES:
        prefix = f"/{_WHOLE_ADDRESS - open_bits}" if open_bits else ""
        return f"{name} {IPv4Address(value)}{prefix}"
    return f"{name} {value:#06x}" if name == "dl_type" else f"{name} {value}"
