"""What can be compared of a switch's messages: all but what each may choose, such as order and durations."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from steps import Step, message

_PORT_STATUS = 12
_ERROR, _PACKET_IN, _FLOW_REMOVED, _STATS_REPLY = 1, 10, 11, 17
_FEATURES_REQUEST = 5
_FIRST_PORT_10, _PORT_BYTES_10 = 32, 48
_IPV4, _ARP = 0x0800, 0x0806


def _addresses10(reply: bytes) -> dict[int, bytes]:
    ports = range(_FIRST_PORT_10, len(reply), _PORT_BYTES_10)
    return {int.from_bytes(reply[at : at + 2], "big"): reply[at + 2 : at + 8] for at in ports}


ADDRESSES: Final[dict[int, tuple[bytes, Callable[[bytes], dict[int, bytes]]]]] = {
    1: (message(1, _FEATURES_REQUEST), _addresses10),
}
"""The request that names the ports' addresses, and how to read its reply, by version."""


def match10(match: bytes) -> str:
    """Return a match without fields that cannot count: what it says of frames."""
    wildcards, in_port, source, target, vid, pcp, kind, tos, protocol = struct.unpack(
        "!IH6s6sHBxHBB2x", match[:28]
    )
    nw_src, nw_dst, tp_src, tp_dst = struct.unpack("!IIHH", match[28:40])
    values = {}
    for name, bit, value in (
        ("in_port", 1 << 0, in_port),
        ("dl_vlan", 1 << 1, vid),
        ("dl_src", 1 << 2, source.hex()),
        ("dl_dst", 1 << 3, target.hex()),
        ("dl_type", 1 << 4, kind),
    ):
        if not wildcards & bit:
            values[name] = value
    if values.get("dl_vlan", 0xFFFF) != 0xFFFF and not wildcards & 1 << 20:
        values["dl_vlan_pcp"] = pcp
    elif "dl_vlan" not in values and not wildcards & 1 << 20:
        values["dl_vlan_pcp_alone"] = pcp
    network = values.get("dl_type") in (_IPV4, _ARP)
    if network:
        for name, shift, address in (("nw_src", 8, nw_src), ("nw_dst", 14, nw_dst)):
            bits = min(wildcards >> shift & 0x3F, 32)
            if bits < 32:
                values[name] = f"{address >> bits << bits:08x}/{32 - bits}"
        if not wildcards & 1 << 5:
            values["nw_proto"] = protocol
    if values.get("dl_type") == _IPV4:
        if not wildcards & 1 << 21:
            values["nw_tos"] = tos & 0xFC
        if values.get("nw_proto") in (1, 6, 17):
            for name, bit, value in (("tp_src", 1 << 6, tp_src), ("tp_dst", 1 << 7, tp_dst)):
                if not wildcards & bit:
                    values[name] = value
    return ",".join(f"{name}={value}" for name, value in values.items())


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
    if kind == _STATS_REPLY and body[:2] == b"\0\1":
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
