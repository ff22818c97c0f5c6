"""Steps of a trial: what a controller and hosts might do with a switch, drawn at random.

What is drawn is what both switches must do in the same way. `NOT_DRAWN` lists the rest, with reasons.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from matches import match10

NOT_DRAWN: Final = {
    "CHECK_OVERLAP for an entry that exists": "it overlaps with itself, so the board refuses it (4.6);"
    " Open vSwitch replaces it",
    "overlapping entries of the same priority": "a switch may choose between them (3.4)",
    "entries that leave open only fields that cannot count": "they are exact and come first (3.4);"
    " Open vSwitch goes by their priority",
    "SET_TP_SRC and SET_TP_DST in trials with ICMP": "they set ports of TCP and UDP (3.3);"
    " Open vSwitch also sets type and code of ICMP",
    "frames at ports that are DOWN or NO_RECV": "the board must drop them (5.2.1); dummy ports of"
    " Open vSwitch send and receive while DOWN, and it counts what NO_RECV drops",
    "PACKET_OUT whose in_port is NO_RECV": "the port has not received it, so the board carries it out;"
    " Open vSwitch drops it",
    "NO_PACKET_IN": "the board sends no misses of that port (5.2.1); Open vSwitch does",
    "a VLAN priority without a VLAN": "the board ignores it; Open vSwitch takes it for that of any tag",
    "later fragments of TCP and UDP": "they have no checksum to correct;"
    " Open vSwitch changes their data when it sets an address",
    "VLAN actions beside TABLE": "the entry counts the frame as it reaches the table;"
    " Open vSwitch counts the bytes that the message has",
    "PORT_STATUS after PORT_MOD": "asked for only if something else changes a port (5.2.1);"
    " Open vSwitch reports DOWN",
    "different cookies": "MODIFY changes actions only (4.6); Open vSwitch changes the cookie, too",
    "ports NORMAL and LOCAL, and ports above 4": "the board has none and refuses them;"
    " Open vSwitch takes any number",
    "more than four actions": "an entry of the board has four slots: TOO_MANY",
    "fields that cannot count": "the board ignores them in all matches (3.4);"
    " Open vSwitch finds nothing to change, delete or report",
    "timeouts, durations, queues": "they depend on a clock, or the board has none",
    "SET_CONFIG that asks to put fragments together": "neither can; the board refuses it (5.3.2)",
}
"""Of each what both switches do, with the section of OpenFlow 1.0.1."""

COOKIE: Final = 0x1122334455667788
_MACS: Final = [
    bytes.fromhex(text) for text in ("000000000001", "000000000002", "0180c2000000", "ffffffffffff")
]
_ADDRESSES: Final = [bytes(text) for text in ((10, 0, 0, 1), (10, 0, 0, 2), (10, 1, 0, 1), (192, 168, 0, 1))]
_L4: Final = (80, 4000)
_CHECKED_PRIORITIES: Final = (1, 5, 10, 0xFFFF)
"""Of entries with CHECK_OVERLAP: none of the same priority overlaps another."""
_FIRST_PRIORITY: Final = 100
"""Of other entries: each match has a priority of its own."""
_CHECK_OVERLAP, _DELETE_STRICT = 2, 4
_CONTROLLER, _IN_PORT, _FLOOD, _ALL, _TABLE = 0xFFFD, 0xFFF8, 0xFFFB, 0xFFFC, 0xFFF9
DOWN: Final = 1
_NO_RECV, _NO_FLOOD, _NO_FWD = 1 << 2, 1 << 4, 1 << 5
CLOSED: Final = DOWN | _NO_RECV
"""Flags of a port that receives nothing."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `kind` is "frame" (arriving at `port`), "message", or "port" (PORT_MOD)."""

    kind: str
    data: bytes = b""
    port: int = 0
    config: int = 0
    mask: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "kind": self.kind,
            "data": self.data.hex(),
            "port": self.port,
            "config": self.config,
            "mask": self.mask,
        }

    @classmethod
    def of_json(cls, row: dict[str, Any]) -> Step:
        """Return the step that `to_json` wrote."""
        return cls(row["kind"], bytes.fromhex(row["data"]), row["port"], row["config"], row["mask"])


def message(version: int, kind: int, body: bytes = b"", xid: int = 7) -> bytes:
    """Return an OpenFlow message."""
    return struct.pack("!BBHI", version, kind, 8 + len(body), xid) + body


def port_mod(version: int, step: Step, address: bytes) -> bytes:
    """Return the PORT_MOD of a step for a switch whose port has this address."""
    if version == 1:
        body = struct.pack("!H6sIII4x", step.port, address, step.config, step.mask, 0)
        return message(1, 15, body)
    return message(4, 16, struct.pack("!I4x6s2xIII4x", step.port, address, step.config, step.mask, 0))


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@dataclass(slots=True)
class Drawn:
    """Options of a trial, and the entries that it has named so far."""

    has_icmp: bool
    """If not, ports of TCP and UDP are set."""
    has_no_recv: bool
    """If not, PACKET_OUT names ports where its frame came in."""
    own: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    """Match and priority of the entries that were drawn without CHECK_OVERLAP, by what the match means."""
    checked: dict[tuple[str, int], tuple[bytes, int]] = field(default_factory=dict)
    """Match and priority of the entries drawn with CHECK_OVERLAP, by the meaning and priority."""


def frame(random: Random, drawn: Drawn) -> bytes:
    """Return a frame of 64 to 150 bytes: tagged or not, IPv4, fragments, ARP, others."""
    head = random.choice(_MACS[:3]) if random.random() < 0.8 else _MACS[3]
    head += random.choice(_MACS[:2])
    if random.random() < 0.4:
        head += struct.pack("!HH", 0x8100, random.choice((0, 5, 6)) | random.choice((0, 3)) << 13)
    padding = bytes(random.randrange(256) for _ in range(random.randrange(50, 90)))
    what = random.random()
    if what < 0.15:
        sender, target = random.choice(_ADDRESSES), random.choice(_ADDRESSES)
        arp = struct.pack("!HHHBBH", 0x0806, 1, 0x0800, 6, 4, random.choice((1, 2)))
        return head + arp + _MACS[0] + sender + bytes(6) + target + padding
    if what < 0.3:
        return head + struct.pack("!H", random.choice((0x88CC, 0x1234, 0x0842))) + padding
    protocol = random.choice((6, 17, 17, 1, 99) if drawn.has_icmp else (6, 17, 17, 99))
    if protocol == 6:
        payload = struct.pack("!HHIIBBHHH", *random.choices(_L4, k=2), 1, 2, 0x50, 2, 100, 0, 0) + padding
        checksum_at = 16
    elif protocol == 17:
        payload = struct.pack("!HHHH", *random.choices(_L4, k=2), 8 + len(padding), 0) + padding
        checksum_at = 6
    elif protocol == 1:
        payload = struct.pack("!BBHI", random.choice((0, 8)), 0, 0, 1) + padding
        checksum_at = 2
    else:
        payload, checksum_at = padding, None
    source, destination = random.choice(_ADDRESSES), random.choice(_ADDRESSES)
    if checksum_at is not None and (protocol != 17 or random.random() < 0.7):
        pseudo = (
            source + destination + struct.pack("!BBH", 0, protocol, len(payload)) if protocol != 1 else b""
        )
        even = pseudo + payload + bytes(len(payload) % 2)
        payload = payload[:checksum_at] + struct.pack("!H", _checksum(even)) + payload[checksum_at + 2 :]
    fragments = (0x2000,) if protocol in (6, 17) else (0x2000, 0x2003, 5)
    fragment = random.choice(fragments) if random.random() < 0.1 else 0
    tos = random.choice((0, 0x28, 0x2A))
    ip = struct.pack(
        "!BBHHHBBH", 0x45, tos, 20 + len(payload), 1, fragment, random.choice((1, 2, 64)), protocol, 0
    )
    checksum = struct.pack("!H", _checksum(ip + source + destination))
    return head + b"\x08\x00" + ip[:10] + checksum + source + destination + payload


def _match10(random: Random, *, consistent: bool = False) -> bytes:
    """Return a match; with `consistent`, only of fields that count beside its others."""
    dense = random.choice((0.1, 0.3, 0.5))

    def has() -> bool:
        return random.random() < dense

    wildcards = 0x3FFFFF
    fields: list[Any] = [0, bytes(6), bytes(6), 0, 0, 0, 0, 0, bytes(4), bytes(4), 0, 0]

    def wanted(index: int, bit: int, value: Any) -> None:
        nonlocal wildcards
        wildcards &= ~bit
        fields[index] = value

    if has():
        wanted(0, 1, random.choice((1, 2, 3)))
    if has():
        wanted(1, 1 << 2, random.choice(_MACS))
    if has():
        wanted(2, 1 << 3, random.choice(_MACS))
    if has():
        wanted(3, 1 << 1, random.choice((0xFFFF, 0xFFFF, 0, 5, 6)))
    if has():
        wanted(4, 1 << 20, random.choice((0, 3)))
    if random.random() < 0.6:
        wanted(5, 1 << 4, random.choice((0x0800, 0x0800, 0x0806, 0x88CC, 0x05FF)))
    if has():
        wanted(6, 1 << 21, random.choice((0, 0x28)))
    if random.random() < 0.5:
        wanted(7, 1 << 5, random.choice((6, 17, 1, 2)))
    for index, shift in ((8, 8), (9, 14)):
        if has():
            wildcards = wildcards & ~(0x3F << shift) | random.choice((0, 0, 8, 16, 31, 40)) << shift
            fields[index] = random.choice(_ADDRESSES)
    if has():
        wanted(10, 1 << 6, random.choice((*_L4, 8)))
    if has():
        wanted(11, 1 << 7, random.choice((*_L4, 0)))
    if wildcards & 0x1F == 0:
        wildcards |= 1 << 2
    if wildcards & 1 << 1 or fields[3] == 0xFFFF:
        wildcards |= 1 << 20
    if consistent:
        ip = wildcards & 1 << 4 == 0 and fields[5] == 0x0800
        if not ip:
            wildcards |= 1 << 21
        if not ip and not (wildcards & 1 << 4 == 0 and fields[5] == 0x0806):
            wildcards |= 1 << 5 | 0x3F << 8 | 0x3F << 14
        if not ip or wildcards & 1 << 5 or fields[7] not in (1, 6, 17):
            wildcards |= 1 << 6 | 1 << 7
    in_port, source, target, vid, pcp, kind, tos, protocol, nw_src, nw_dst, tp_src, tp_dst = fields
    head = struct.pack("!IH6s6sHBxHBB2x", wildcards, in_port, source, target, vid, pcp, kind, tos, protocol)
    return b"".join((head, nw_src, nw_dst, struct.pack("!HH", tp_src, tp_dst)))


def _actions10(random: Random, drawn: Drawn, *, packet_out: bool = False) -> bytes:
    def output(port: int) -> bytes:
        return struct.pack("!HHHH", 0, 8, port, 0xFFFF)

    to_table = packet_out and random.random() < 0.3
    kinds = (
        0,
        0,
        0,
        0,
        *(() if to_table else (1, 2, 3)),
        4,
        5,
        6,
        7,
        8,
        *(() if drawn.has_icmp else (9, 10)),
    )

    def action() -> bytes:
        kind = random.choice(kinds)
        if kind == 0:
            ports = [1, 2, 3, 1, 2, 3, _IN_PORT, _FLOOD, _ALL, _CONTROLLER]
            return output(random.choice([*ports, _TABLE, _TABLE, _TABLE] if to_table else ports))
        value = {
            1: lambda: struct.pack("!H2x", random.choice((5, 7))),
            2: lambda: struct.pack("!B3x", random.choice((1, 7))),
            3: lambda: bytes(4),
            4: lambda: random.choice(_MACS) + bytes(6),
            5: lambda: random.choice(_MACS) + bytes(6),
            6: lambda: random.choice(_ADDRESSES),
            7: lambda: random.choice(_ADDRESSES),
            8: lambda: struct.pack("!B3x", random.choice((0x28, 0x40))),
            9: lambda: struct.pack("!H2x", random.choice(_L4)),
            10: lambda: struct.pack("!H2x", random.choice(_L4)),
        }[kind]()
        return struct.pack("!HH", kind, 4 + len(value)) + value

    return b"".join(action() for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3, 4))))


def _flow_mod10(random: Random, drawn: Drawn) -> bytes:
    command = random.choice((0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 7))
    out_port = random.choice((0xFFFF, 0xFFFF, 1, 2)) if command in (3, 4) else 0xFFFF
    buffer = 9 if random.random() < 0.03 else 0xFFFFFFFF
    match, flags = _match10(random, consistent=True), random.choice((0, 0, 1, 2, 3))
    priority = random.choice(_CHECKED_PRIORITIES)
    if command == _DELETE_STRICT and drawn.checked and random.random() < 0.5:
        match, priority = random.choice(list(drawn.checked.values()))
    elif flags & _CHECK_OVERLAP and (match10(match), priority) not in drawn.checked:
        drawn.checked[match10(match), priority] = (match, priority)
    else:
        flags &= ~_CHECK_OVERLAP
        if drawn.own and random.random() < 0.3:
            match = random.choice(list(drawn.own.values()))[0]
        own = (match, _FIRST_PRIORITY + len(drawn.own))
        match, priority = drawn.own.setdefault(match10(match), own)
    rest = struct.pack(
        "!QHHHHIHH",
        COOKIE,
        command,
        0,
        0,
        priority,
        buffer,
        out_port,
        flags,
    )
    return message(1, 14, match + rest + _actions10(random, drawn))


def _message10(random: Random, drawn: Drawn) -> bytes:
    kind = random.random()
    if kind < 0.6:
        return _flow_mod10(random, drawn)
    if kind < 0.8:
        actions = _actions10(random, drawn, packet_out=True)
        in_port = random.choice((0xFFFF, 0xFFFD) if drawn.has_no_recv else (1, 2, 3, 0xFFFF, 0xFFFD))
        buffer = 9 if random.random() < 0.03 else 0xFFFFFFFF
        head = struct.pack("!IHH", buffer, in_port, len(actions))
        return message(1, 13, head + actions + frame(random, drawn))
    if kind < 0.86:
        return message(1, 9, struct.pack("!HH", random.choice((0, 0, 1)), random.choice((0, 128, 0xFFFF))))
    if kind < 0.9:
        return message(1, 7)
    request = struct.pack("!BxH", random.choice((0, 0xFF)), random.choice((0xFFFF, 0xFFFF, 1)))
    return message(
        1, 16, struct.pack("!HH", random.choice((1, 2)), 0) + _match10(random, consistent=True) + request
    )


ALL_ENTRIES: Final = {
    1: message(1, 16, struct.pack("!HH", 1, 0) + struct.pack("!I36xBxH", 0x3FFFFF, 0xFF, 0xFFFF)),
}


def draw(random: Random, version: int, count: int) -> list[Step]:
    """Return so many steps."""
    messages = {1: _message10}
    drawn = Drawn(has_icmp=random.random() < 0.5, has_no_recv=random.random() < 0.3)
    steps = []
    for _ in range(count):
        kind = random.random()
        if kind < 0.45:
            steps.append(Step("frame", frame(random, drawn), port=random.choice((1, 2, 3))))
        elif kind < 0.93:
            steps.append(Step("message", messages[version](random, drawn)))
        else:
            flags = (DOWN, _NO_FLOOD, _NO_FWD, *([_NO_RECV] if drawn.has_no_recv else []))
            mask = random.choice(flags)
            steps.append(
                Step("port", port=random.choice((1, 2, 3)), config=random.choice((0, mask)), mask=mask)
            )
    return steps
