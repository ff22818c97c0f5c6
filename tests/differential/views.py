"""The comparable parts of a switch's messages: not those that it may choose, such as order and durations."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from matches import match10, match13
from steps import Step, message

_ERROR, _PACKET_IN, _FLOW_REMOVED, _PORT_STATUS = 1, 10, 11, 12
STATS_REPLY: Final = {1: 17, 4: 19}
_FEATURES_REQUEST, _MULTIPART_REQUEST = 5, 18
_FLOW_STATS, _GROUP_STATS, _GROUP_DESC, _METER_STATS, _METER_CONFIG, _PORT_DESC = 1, 6, 7, 9, 10, 13
_FIRST_PORT_10, _PORT_BYTES_10 = 32, 48
_MULTIPART_BODY_AT, _PORT_BYTES_13 = 16, 64
_WRITE_METADATA, _WRITE_ACTIONS, _APPLY_ACTIONS = 2, 3, 4
_INVALID_TTL: Final = 2
_NO_SUCH_METER: Final = ((12, 2), (12, 3))
_MATCH_AT_13: Final = 48
_ACTIONS_AT: Final = 4
"""In the body of an instruction."""


def _addresses10(reply: bytes) -> dict[int, bytes]:
    ports = range(_FIRST_PORT_10, len(reply), _PORT_BYTES_10)
    return {int.from_bytes(reply[at : at + 2], "big"): reply[at + 2 : at + 8] for at in ports}


def _addresses13(reply: bytes) -> dict[int, bytes]:
    ports = range(_MULTIPART_BODY_AT, len(reply), _PORT_BYTES_13)
    return {int.from_bytes(reply[at : at + 4], "big"): reply[at + 8 : at + 14] for at in ports}


ADDRESSES: Final[dict[int, tuple[bytes, Callable[[bytes], dict[int, bytes]]]]] = {
    1: (message(1, _FEATURES_REQUEST), _addresses10),
    4: (message(4, _MULTIPART_REQUEST, struct.pack("!HH4x", _PORT_DESC, 0)), _addresses13),
}
"""The request that names the ports' addresses, and how to read its reply, by version."""


def _flows10(body: bytes) -> list[tuple[Any, ...]]:
    flows = []
    while body:
        length = int.from_bytes(body[:2], "big")
        flow, body = body[:length], body[length:]
        priority, idle, hard = struct.unpack("!HHH", flow[52:58])
        cookie, packets, octets = struct.unpack("!QQQ", flow[64:88])
        flows.append((match10(flow[4:44]), priority, idle, hard, cookie, packets, octets, flow[88:].hex()))
    return sorted(flows)


def _seen10(reply: bytes) -> tuple[Any, ...]:
    kind, body = reply[1], reply[8:]
    if kind == _PACKET_IN:
        in_port, reason = struct.unpack("!HB", body[6:9])
        return ("packet in", in_port, reason, body[10:].hex())
    if kind == _FLOW_REMOVED:
        cookie, priority, reason = struct.unpack("!QHB", body[40:51])
        packets, octets = struct.unpack("!QQ", body[64:80])
        return ("removed", match10(body[:40]), cookie, priority, reason, packets, octets)
    if kind == STATS_REPLY[1] and body[:2] == b"\0\1":
        return ("flows", *_flows10(body[4:]))
    return (kind, body.hex())


def _match_at(body: bytes, at: int) -> tuple[str, int]:
    """Return the match of 1.3 that begins there, and where what follows it begins."""
    length = int.from_bytes(body[at + 2 : at + 4], "big")
    return match13(body[at + 4 : at + length]), at + length + -length % 8


def _instructions(bytes_: bytes) -> tuple[tuple[int, str], ...]:
    """Return instructions in one order, without those that do nothing."""
    found = []
    while bytes_:
        kind, length = struct.unpack("!HH", bytes_[:4])
        body, bytes_ = bytes_[4:length], bytes_[length:]
        if kind == _WRITE_METADATA:
            value, mask = struct.unpack("!4xQQ", body)
            body = struct.pack("!QQ", value & mask, mask)
        if kind not in (_WRITE_ACTIONS, _APPLY_ACTIONS) or len(body) > _ACTIONS_AT:
            found.append((kind, body.hex()))
    return tuple(sorted(found))


def _records(body: bytes, length_at: int = 0) -> list[bytes]:
    records = []
    while body:
        length = int.from_bytes(body[length_at : length_at + 2], "big")
        records.append(body[:length])
        body = body[length:]
    return records


def _flow13(flow: bytes) -> tuple[Any, ...]:
    priority, idle, hard, flags = struct.unpack("!HHHH", flow[12:20])
    cookie, packets, octets = struct.unpack("!QQQ", flow[24:48])
    match, at = _match_at(flow, 48)
    return (flow[2], match, priority, idle, hard, flags, cookie, packets, octets, _instructions(flow[at:]))


def _multipart13(kind: int, body: bytes) -> tuple[Any, ...]:
    if kind == _FLOW_STATS:
        return ("flows", *sorted(map(_flow13, _records(body))))
    if kind == _GROUP_STATS:
        # Without the group's own counters and age.
        return ("groups", *sorted((it[4:12] + it[40:]).hex() for it in _records(body)))
    if kind == _GROUP_DESC:
        return ("group descriptions", *sorted(it.hex() for it in _records(body)))
    if kind == _METER_STATS:
        return ("meters", *sorted((it[:4] + it[12:32] + it[40:]).hex() for it in _records(body, 4)))
    if kind == _METER_CONFIG:
        return ("meter configurations", *sorted(it.hex() for it in _records(body)))
    return ("multipart", kind, body.hex())


def _seen13(reply: bytes) -> tuple[Any, ...]:
    kind, body = reply[1], reply[8:]
    if kind == _PACKET_IN:
        reason, table, cookie = struct.unpack("!BBQ", body[6:16])
        match, at = _match_at(body, 16)
        if reason == _INVALID_TTL:
            return ("packet in", reason, match, body[at + 2 :].hex())
        return ("packet in", reason, table, cookie, match, body[at + 2 :].hex())
    if kind == _FLOW_REMOVED:
        cookie, priority, reason, table = struct.unpack("!QHBB", body[:12])
        packets, octets = struct.unpack("!QQ", body[24:40])
        return ("removed", _match_at(body, 40)[0], cookie, priority, reason, table, packets, octets)
    if kind == STATS_REPLY[4]:
        return _multipart13(int.from_bytes(body[:2], "big"), body[8:])
    return (kind, body.hex())


_SEEN: Final = {1: _seen10, 4: _seen13}


def _view(reply: bytes) -> tuple[Any, ...]:
    if reply[1] == _ERROR:
        error = struct.unpack("!HH", reply[8:12])
        return ("error", "no such meter") if error in _NO_SUCH_METER else ("error", *error)
    return _SEEN[reply[0]](reply)


def _joined(messages: Sequence[bytes]) -> list[bytes]:
    """Return messages with replies of 1.3 that come in parts as one."""
    joined: list[bytes] = []
    goes_on = False
    for reply in messages:
        if goes_on:
            joined[-1] += reply[_MULTIPART_BODY_AT:]
        else:
            joined.append(reply)
        goes_on = reply[:2] == bytes((4, STATS_REPLY[4])) and reply[11] & 1 == 1
    return joined


def seen(messages: Sequence[bytes]) -> list[tuple[Any, ...]]:
    """Return messages as values, those of several entries in one order."""
    return sorted((_view(reply) for reply in _joined(messages) if reply[1] != _PORT_STATUS), key=repr)


def merged(some: Sequence[tuple[Any, ...]], late: Sequence[bytes]) -> list[tuple[Any, ...]]:
    """Return what `seen` returned, with messages that came later."""
    return sorted([*some, *seen(late)], key=repr)


def step_text(step: Step) -> str:
    """Return a step as a line for readers."""
    if step.kind == "frame":
        return f"frame at port {step.port}: {step.data.hex()}"
    if step.kind == "port":
        return f"PORT_MOD port {step.port}: config {step.config:#x} mask {step.mask:#x}"
    if step.data[:2] == b"\1\16":
        command, priority, buffer, flags = (
            int.from_bytes(step.data[at : at + size], "big")
            for at, size in ((56, 2), (62, 2), (64, 4), (70, 2))
        )
        return (
            f"FLOW_MOD command {command} priority {priority} flags {flags} buffer {buffer:#x} "
            f"out_port {step.data[68:70].hex()} match {match10(step.data[8:48])} "
            f"actions {step.data[72:].hex()}"
        )
    if step.data[:2] == b"\4\16":
        match, at = _match_at(step.data, _MATCH_AT_13)
        priority, buffer, out_port, out_group, flags = struct.unpack("!HIIIH", step.data[30:46])
        return (
            f"FLOW_MOD command {step.data[25]} table {step.data[24]} priority {priority} flags {flags} "
            f"cookie {step.data[8:16].hex()}/{step.data[16:24].hex()} buffer {buffer:#x} "
            f"out {out_port:#x} {out_group:#x} match {match} instructions {_instructions(step.data[at:])}"
        )
    return f"message {step.data.hex()}"
