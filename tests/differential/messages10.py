"""Messages of OpenFlow 1.0 that a controller might send, drawn at random."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from entry_names import NamedEntries
from frames import ADDRESSES, L4, MACS, frame10
from matches import match10
from steps import message

COOKIE: Final = 0x1122334455667788
_DELETE_STRICT: Final = 4
_CONTROLLER, _IN_PORT, _FLOOD, _ALL, _TABLE = 0xFFFD, 0xFFF8, 0xFFFB, 0xFFFC, 0xFFF9


@dataclass(slots=True)
class Drawn:
    """Options of a trial, and the entries that it has named so far."""

    has_icmp: bool
    """If not, ports of TCP and UDP are set."""
    has_no_recv: bool
    """If not, PACKET_OUT names ports where its frame came in."""
    entries: NamedEntries = field(default_factory=lambda: NamedEntries(match10))


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
        wanted(1, 1 << 2, random.choice(MACS))
    if has():
        wanted(2, 1 << 3, random.choice(MACS))
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
            fields[index] = random.choice(ADDRESSES)
    if has():
        wanted(10, 1 << 6, random.choice((*L4, 8)))
    if has():
        wanted(11, 1 << 7, random.choice((*L4, 0)))
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
            return output(random.choice(ports))
        value = {
            1: lambda: struct.pack("!H2x", random.choice((5, 7))),
            2: lambda: struct.pack("!B3x", random.choice((1, 7))),
            3: lambda: bytes(4),
            4: lambda: random.choice(MACS) + bytes(6),
            5: lambda: random.choice(MACS) + bytes(6),
            6: lambda: random.choice(ADDRESSES),
            7: lambda: random.choice(ADDRESSES),
            8: lambda: struct.pack("!B3x", random.choice((0x28, 0x40))),
            9: lambda: struct.pack("!H2x", random.choice(L4)),
            10: lambda: struct.pack("!H2x", random.choice(L4)),
        }[kind]()
        return struct.pack("!HH", kind, 4 + len(value)) + value

    if to_table:
        return b"".join(action() for _ in range(random.choice((0, 0, 1, 2, 3)))) + output(_TABLE)
    return b"".join(action() for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3, 4))))


def _flow_mod10(random: Random, drawn: Drawn) -> bytes:
    command = random.choice((0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 7))
    out_port = random.choice((0xFFFF, 0xFFFF, 1, 2)) if command in (3, 4) else 0xFFFF
    buffer = 9 if random.random() < 0.03 else 0xFFFFFFFF
    match, flags = _match10(random, consistent=True), random.choice((0, 0, 1, 2, 3))
    match, priority, flags = drawn.entries.draw(random, match, flags, is_deleted=command == _DELETE_STRICT)
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


def message10(random: Random, drawn: Drawn) -> bytes:
    kind = random.random()
    if kind < 0.6:
        return _flow_mod10(random, drawn)
    if kind < 0.8:
        actions = _actions10(random, drawn, packet_out=True)
        in_port = random.choice((0xFFFF, 0xFFFD) if drawn.has_no_recv else (1, 2, 3, 0xFFFF, 0xFFFD))
        buffer = 9 if random.random() < 0.03 else 0xFFFFFFFF
        head = struct.pack("!IHH", buffer, in_port, len(actions))
        return message(1, 13, head + actions + frame10(random, has_icmp=drawn.has_icmp))
    if kind < 0.86:
        return message(1, 9, struct.pack("!HH", random.choice((0, 0, 1)), random.choice((0, 128, 0xFFFF))))
    if kind < 0.9:
        return message(1, 7)
    request = struct.pack("!BxH", random.choice((0, 0xFF)), random.choice((0xFFFF, 0xFFFF, 1)))
    return message(
        1, 16, struct.pack("!HH", random.choice((1, 2)), 0) + _match10(random, consistent=True) + request
    )
