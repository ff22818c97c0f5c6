"""OpenFlow 1.3 on the wire, as far as the switch driver speaks it: the values of `wire` to bytes and back.

As in 1.0, an entry is kept as the bytes that the switch gets, since the Zodiac FX finds it by exactly these
(quirks 124 and 135). All entries are in the first table. `wire` says why it is written with `struct`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from loko.control.entries import (
    PROTOCOL_TCP,
    UNTAGGED,
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
from loko.control.framing import HEADER, framed
from loko.control.port_links import PORTS_13
from loko.control.wire import (
    AddEntry,
    BarrierReply,
    BarrierRequest,
    DeleteEntry,
    ErrorReply,
    FlowStatsReply,
    FlowStatsRequest,
    PortsRequest,
    TableStatsReply,
    TableStatsRequest,
    WireEntry,
    WireReply,
    WireRequest,
    none_if_malformed,
    one_segment,
)

VERSION: Final = 4
_message: Final = partial(framed, VERSION)

_ERROR, _PORT_STATUS, _FLOW_MOD, _GROUP_MOD, _BARRIER_REQUEST, _BARRIER_REPLY = 1, 12, 14, 15, 20, 21
_MULTIPART_REQUEST, _MULTIPART_REPLY = 18, 19
_FLOW_STATS, _AGGREGATE, _PORT_DESCRIPTION, _MORE = 1, 2, 13, 1
_ADD, _DELETE_STRICT = 0, 4
_ANY: Final = 0xFFFF_FFFF
"""Any port, group or buffer. The board deletes nothing for a specific port or group (quirk 133)."""
_WHOLE_COOKIE: Final = 0xFFFF_FFFF_FFFF_FFFF
"""The only cookie mask that the board compares correctly (quirk 132)."""
_ALL_TABLES: Final = 0xFF

_FLOW_MOD_BODY: Final = struct.Struct("!QQBBHHHIIIH2x")
_FLOW_STATS_BODY: Final = struct.Struct("!HH4xB3xII4xQQ")
_LISTED: Final = struct.Struct("!HBxIIHHHH4xQQQ")
_AGGREGATED: Final = struct.Struct("!QQI4x")
_MULTIPART: Final = struct.Struct("!HH4x")
_MATCH_HEADER: Final = struct.Struct("!HH")
_OXM_MATCH: Final = 1
_OXM_CLASS: Final = 0x8000
_OXM_HEADER: Final = struct.Struct("!HBB")
_TCP_SRC: Final = 13
_UDP_SRC: Final = 15
_OXMS: Final = {
    "in_port": 0,
    "dl_dst": 3,
    "dl_src": 4,
    "dl_vlan": 6,
    "dl_vlan_pcp": 7,
    "dl_type": 5,
    "nw_tos": 8,
    "nw_proto": 10,
    "nw_src": 11,
    "nw_dst": 12,
    "tp_src": _UDP_SRC,
    "tp_dst": 16,
}
"""The OXM number of each field of OpenFlow 1.0, in the order in which a match has them."""
_OXM_BYTES: Final = {
    "in_port": 4,
    "dl_vlan": 2,
    "dl_vlan_pcp": 1,
    "dl_type": 2,
    "nw_tos": 1,
    "nw_proto": 1,
    "tp_src": 2,
    "tp_dst": 2,
}
"""Lengths of the fields that are numbers."""
_TAGGED: Final = 0x1000
"""OFPVID_PRESENT."""
_TAG_TYPE: Final = 0x8100
_ADDRESS_BYTES: Final = 4
_NAMES: Final = {
    _OXM_HEADER.pack(_OXM_CLASS, _OXMS[field] << 1, _OXM_BYTES.get(field, _ADDRESS_BYTES)): name
    for field, name in (
        ("in_port", "in port"),
        ("dl_vlan", "VLAN"),
        ("dl_type", "type"),
        ("nw_proto", "protocol"),
        ("nw_src", "from"),
        ("nw_dst", "to"),
        ("tp_src", "source port"),
        ("tp_dst", "destination port"),
    )
}
"""Names of the fields in this project's own matches, by header."""
_APPLY_ACTIONS: Final = struct.Struct("!HH4x")
_OUTPUT: Final = struct.Struct("!HHIH6x")
_PUSH_VLAN: Final = struct.Struct("!HHHxx")
_POP_VLAN: Final = struct.Struct("!HH4x")
_SET_QUEUE: Final = struct.Struct("!HHI")
_GROUP: Final = struct.Struct("!HHI")
_GROUP_MOD_BODY: Final = struct.Struct("!HBxI")
_BUCKET: Final = struct.Struct("!HHII4x")
_FAST_FAILOVER: Final = 3
_SEND_ALL: Final = 0xFFFF


@dataclass(frozen=True, slots=True)
class WireEntry13(WireEntry):
    """An entry of a flow table. `match` are its OXMs, `actions` its instructions."""

    table: int = 0

    @property
    def fields(self) -> tuple[object, ...]:
        """Key for comparing with a listing: the match and its place, whatever the order of the OXMs."""
        return (self.table, self.priority, tuple(sorted(_oxms(self.match))))

    @property
    def flow_mod_bytes(self) -> int:
        """Length of the longest message about this entry: the one that adds it."""
        return HEADER.size + _FLOW_MOD_BODY.size + len(_match(self.match)) + len(self.actions)

    def __str__(self) -> str:
        oxms = " ".join(_oxm_text(header, value) for header, value in _oxms(self.match))
        return f"table {self.table} priority {self.priority} {oxms or 'every frame'} cookie {self.cookie:#x}"


def entry_of(flow: FlowEntry, *, cookie: int) -> WireEntry13:
    """Return a planned entry as the switch gets it.

    The fields are in the order of `_OXMS`, as those of `loko.switch_model.scenario.Match.oxms`: their cost
    depends on it. Each comes after those that it presupposes.
    """
    actions = b"".join(map(_action_of, flow.actions))
    instructions = _APPLY_ACTIONS.pack(4, _APPLY_ACTIONS.size + len(actions)) + actions
    return WireEntry13(
        cookie=cookie, priority=flow.priority, match=b"".join(_oxms_of(flow.match)), actions=instructions
    )


def _oxms_of(match: Fields) -> Iterator[bytes]:
    for name, field in _OXMS.items():
        value = getattr(match, name)
        if value is None:
            continue
        is_of_tcp = name in {"tp_src", "tp_dst"} and match.nw_proto == PROTOCOL_TCP
        yield _oxm(field - is_of_tcp * (_UDP_SRC - _TCP_SRC), *_oxm_value(name, value))


def _oxm_value(name: str, value: int | str | IPv4Address | IPv4Network) -> tuple[bytes, bytes]:
    """Return a field's value, and its mask if it has one."""
    match value:
        case IPv4Network():
            return value.network_address.packed, value.netmask.packed
        case IPv4Address():
            return value.packed, b""
        case str():
            return bytes.fromhex(value.replace(":", "")), b""
    if name == "dl_vlan":
        value = 0 if value == UNTAGGED else _TAGGED | value
    if name == "nw_tos":
        value >>= 2  # the DSCP
    return value.to_bytes(_OXM_BYTES[name], "big"), b""


def _action_of(action: Action) -> bytes:
    match action:
        case Output(port=port):
            return _OUTPUT.pack(0, _OUTPUT.size, port, _SEND_ALL)
        case Enqueue(port=port, queue=queue):
            return _SET_QUEUE.pack(21, _SET_QUEUE.size, queue) + _action_of(Output(port))
        case Failover(group_id=group_id):
            return _GROUP.pack(22, _GROUP.size, group_id)
        case PopVlan():
            return _POP_VLAN.pack(18, _POP_VLAN.size)
        case PushVlan(vid=vid):
            return _PUSH_VLAN.pack(17, _PUSH_VLAN.size, _TAG_TYPE) + _action_of(SetVlan(vid))
        case SetVlan(vid=vid):
            oxm = _oxm(_OXMS["dl_vlan"], (_TAGGED | vid).to_bytes(2, "big"))
            size = _padded(4 + len(oxm))
            return (struct.pack("!HH", 25, size) + oxm).ljust(size, b"\0")


def encode(request: WireRequest) -> bytes:
    """Return the bytes of a request."""
    match request:
        case AddEntry(xid=xid, entry=entry):
            return _flow_mod(xid, entry, _ADD, cookie_mask=0, instructions=entry.actions)
        case DeleteEntry(xid=xid, entry=entry):
            return _flow_mod(xid, entry, _DELETE_STRICT, cookie_mask=_WHOLE_COOKIE)
        case BarrierRequest(xid=xid):
            return _message(_BARRIER_REQUEST, xid)
        case TableStatsRequest(xid=xid):
            return _multipart(xid, _AGGREGATE)
        case FlowStatsRequest(xid=xid):
            return _multipart(xid, _FLOW_STATS)
        case PortsRequest(xid=xid):
            return _message(_MULTIPART_REQUEST, xid, _MULTIPART.pack(_PORT_DESCRIPTION, 0))


def add_group(xid: int, failover: Failover) -> bytes:
    """GROUP_MOD that adds the group of an action: a bucket for each port, which it watches (7.3.4.2)."""
    buckets = b""
    for bucket in failover.buckets:
        actions = _action_of(bucket)
        buckets += _BUCKET.pack(_BUCKET.size + len(actions), 0, bucket.port, _ANY) + actions
    body = _GROUP_MOD_BODY.pack(_ADD, _FAST_FAILOVER, failover.group_id)
    return _message(_GROUP_MOD, xid, body + buckets)


def segment(requests: Iterable[WireRequest]) -> bytes:
    """Return the bytes of requests for one TCP segment. Raises `ValueError` if they do not fit one."""
    return one_segment(map(encode, requests))


@none_if_malformed
def decode(message: bytes) -> WireReply | None:
    """Decode a whole message of a switch; None if it is of no interest here, or malformed."""
    _, kind, _, xid = HEADER.unpack_from(message)
    if kind == _BARRIER_REPLY:
        return BarrierReply(xid)
    if kind == _ERROR:
        return ErrorReply(xid, *struct.unpack_from("!HH", message, HEADER.size))
    if kind == _PORT_STATUS:
        return PORTS_13.changed(xid, message[HEADER.size :])
    return _multipart_reply(xid, message) if kind == _MULTIPART_REPLY else None


def _multipart_reply(xid: int, message: bytes) -> WireReply | None:
    subject, flags = _MULTIPART.unpack_from(message, HEADER.size)
    body = message[HEADER.size + _MULTIPART.size :]
    if subject == _AGGREGATE:
        return TableStatsReply(xid, _AGGREGATED.unpack_from(body)[2])
    if subject == _PORT_DESCRIPTION:
        return PORTS_13.described(xid, body, more=bool(flags & _MORE))
    if subject == _FLOW_STATS:
        return FlowStatsReply(xid, tuple(_listed(body)), more=bool(flags & _MORE))
    return None


def _listed(body: bytes) -> Iterator[WireEntry13]:
    """Yield the listed entries. Padding between match and instructions holds stale bytes (quirk 107)."""
    at = 0
    while at < len(body):
        length, table, _, _, priority, _, _, _, cookie, _, _ = _LISTED.unpack_from(body, at)
        entry = body[at : at + length]
        _, match_bytes = _MATCH_HEADER.unpack_from(entry, _LISTED.size)
        instructions_at = _LISTED.size + _padded(match_bytes)
        if length < instructions_at or match_bytes < _MATCH_HEADER.size:
            raise struct.error(f"an entry of {length} bytes with a match of {match_bytes}")
        match = entry[_LISTED.size + _MATCH_HEADER.size : _LISTED.size + match_bytes]
        yield WireEntry13(cookie, priority, match, entry[instructions_at:], table)
        at += length


def _flow_mod(
    xid: int, entry: WireEntry, command: int, *, cookie_mask: int, instructions: bytes = b""
) -> bytes:
    table = entry.table if isinstance(entry, WireEntry13) else 0
    body = _FLOW_MOD_BODY.pack(
        *(entry.cookie, cookie_mask, table, command, 0, 0, entry.priority, _ANY, _ANY, _ANY, 0)
    )
    return _message(_FLOW_MOD, xid, body + _match(entry.match) + instructions)


def _multipart(xid: int, subject: int) -> bytes:
    """Return a MULTIPART_REQUEST about all entries of all tables."""
    everything = _FLOW_STATS_BODY.pack(subject, 0, _ALL_TABLES, _ANY, _ANY, 0, 0) + _match(b"")
    return _message(_MULTIPART_REQUEST, xid, everything)


def _match(oxms: bytes) -> bytes:
    size = _MATCH_HEADER.size + len(oxms)
    return (_MATCH_HEADER.pack(_OXM_MATCH, size) + oxms).ljust(_padded(size), b"\0")


def _padded(size: int) -> int:
    return -(-size // 8) * 8


def _oxm(field: int, value: bytes, mask: bytes = b"") -> bytes:
    header = _OXM_HEADER.pack(_OXM_CLASS, field << 1 | bool(mask), len(value) + len(mask))
    return header + value + mask


def _oxms(match: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the header and value of each OXM; the rest of an ill-formed one comes last."""
    at = 0
    while at < len(match):
        header = match[at : at + _OXM_HEADER.size]
        end = at + _OXM_HEADER.size + (header[3] if len(header) == _OXM_HEADER.size else 0)
        yield header, match[at + _OXM_HEADER.size : end]
        at = end


def _oxm_text(header: bytes, value: bytes) -> str:
    known = _NAMES.get(header)
    if known is None:
        return f"{header.hex()}={value.hex()}"
    is_address = known in {"from", "to"}
    return f"{known} {IPv4Address(value) if is_address else int.from_bytes(value, 'big')}"
