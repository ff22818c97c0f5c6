"""The comparable parts of a switch's messages: not those that it may choose, such as order and durations."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from matches import match10
from steps import Step, message

_ERROR, _PACKET_IN, _FLOW_REMOVED, _PORT_STATUS = 1, 10, 11, 12
STATS_REPLY: Final = {1: 17}
_FEATURES_REQUEST = 5
_FIRST_PORT_10, _PORT_BYTES_10 = 32, 48


def _addresses10(reply: bytes) -> dict[int, bytes]:
    ports = range(_FIRST_PORT_10, len(reply), _PORT_BYTES_10)
    return {int.from_bytes(reply[at : at + 2], "big"): reply[at + 2 : at + 8] for at in ports}


ADDRESSES: Final[dict[int, tuple[bytes, Callable[[bytes], dict[int, bytes]]]]] = {
    1: (message(1, _FEATURES_REQUEST), _addresses10),
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


_SEEN: Final = {1: _seen10}


def _view(reply: bytes) -> tuple[Any, ...]:
    if reply[1] == _ERROR:
        return ("error", *struct.unpack("!HH", reply[8:12]))
    return _SEEN[reply[0]](reply)


def seen(messages: Sequence[bytes]) -> list[tuple[Any, ...]]:
    """Return messages as values, those of several entries in one order."""
    return sorted((_view(reply) for reply in messages if reply[1] != _PORT_STATUS), key=repr)


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
    return f"message {step.data.hex()}"
