"""Messages of OpenFlow 1.3 that a controller might send, drawn at random."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from entry_names import CHECK_OVERLAP, NamedEntries
from frames import ADDRESSES, ADDRESSES6, ICMP, ICMPV6, L4, MACS, TCP, UDP, frame13
from matches import Field, encoded, fields_of, match13
from steps import message

_COOKIES: Final = (1, 2, 0x1122334455667788)
_MISS_COOKIE: Final = 7
"""Of the entries for what nothing else matches in tables other than the first: nothing deletes them."""
_WHOLE_COOKIE: Final = (1 << 64) - 1
_MISS_PRIORITY: Final = 0
_ANY, _NO_BUFFER, _WHOLE_FRAME = 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFF
_IN_PORT, _TABLE, _FLOOD, _ALL, _CONTROLLER = 0xFFFFFFF8, 0xFFFFFFF9, 0xFFFFFFFB, 0xFFFFFFFC, 0xFFFFFFFD
_ADD, _DELETE, _DELETE_STRICT = 0, 3, 4
_SEND_FLOW_REMOVED: Final = 1
_TABLES: Final = 4
"""Tables that are drawn; both switches have more."""
_ALL_TABLES: Final = 0xFF
_GROUPS: Final = (1, 2, 3)
_ALL_GROUPS: Final = 0xFFFFFFFC
_GROUP_ALL, _GROUP_INDIRECT, _GROUP_FAST_FAILOVER = 0, 2, 3
_BUCKETS_BYTES: Final = 64
"""The part of its buckets that a group of the board keeps."""
_BLOCK_BYTES: Final = 96
"""The fields and instructions of an entry that the board can keep."""
_METERS: Final = (1, 2)
_ALL_METERS: Final = 0xFFFFFFFF
_KBPS_WITH_BURST: Final = 5
_RATE_KBPS: Final = 10_000_000
"""Rate of a band that drops nothing of what is sent here."""
_IPV4, _ARP, _IPV6 = 0x0800, 0x0806, 0x86DD
_TAGGED: Final = 0x1000
_FAULTS: Final = ("match", "action", "next table", "buffer", "command")
_REFERENCES: Final = ("group in list", "group in list", "group in set", "meter")
_DEPENDENT: Final = ("vlan_pcp", "tcp_src", "ipv4_dst", "arp_op", "ipv6_src", "icmpv4_type", "ipv6_nd_sll")
"""Fields that a match or an action may name only if the frame has them."""


@dataclass(frozen=True, slots=True)
class _Allowed:
    """Actions that not all lists have."""

    group: bool = False
    controller: bool = False
    push: bool = False
    pop: bool = False
    lowers_ttl: bool = True


@dataclass(slots=True)
class Drawn13:
    """Options of a trial, and the entries that it has named so far."""

    has_no_recv: bool
    """If not, PACKET_OUT names ports where its frame came in."""
    tags: str
    """Where tags change: "apply" (in entries that have no next table), "write", "bucket", "packet out"."""
    pushes: bool
    """Whether tags are pushed, onto frames that then have none, or popped."""
    has_sets: bool
    """Whether entries write action sets; if not, they lower the time to live in APPLY_ACTIONS."""
    modifies_meters: bool
    """If not, their counters are asked for."""
    has_table: bool
    """If not, table-miss entries send to the controller."""
    entries: NamedEntries = field(default_factory=lambda: NamedEntries(match13))

    @classmethod
    def of(cls, random: Random, *, has_no_recv: bool) -> Drawn13:
        """Draw the other options."""
        tags = random.choice(("apply", "write", "bucket", "packet out"))
        return cls(
            has_no_recv,
            tags,
            pushes=random.random() < 0.5,
            has_sets=random.random() < 0.7,
            modifies_meters=random.random() < 0.5,
            has_table=random.random() < 0.5,
        )

    def allow(self, place: str, *, group: bool, controller: bool, lowers_ttl: bool = True) -> _Allowed:
        """Return what lists there may have. A group counts bytes, so none comes beside a change of tags."""
        changes_tags = place == self.tags
        return _Allowed(
            group and not changes_tags,
            controller,
            push=changes_tags and self.pushes,
            pop=changes_tags and not self.pushes,
            lowers_ttl=lowers_ttl,
        )


@dataclass(slots=True)
class _Known:
    """Fields that frames have, as far as a match tells."""

    eth_type: int | None = None
    protocol: int | None = None
    icmpv6_type: int | None = None
    tagged: bool = False

    @classmethod
    def of(cls, fields: list[Field]) -> _Known:
        known = cls()
        for name, value, _ in fields:
            number = int.from_bytes(value, "big")
            if name == "eth_type":
                known.eth_type = number
            elif name == "ip_proto":
                known.protocol = number
            elif name == "icmpv6_type":
                known.icmpv6_type = number
            elif name == "vlan_vid":
                known.tagged = number & _TAGGED != 0
        return known

    @classmethod
    def of_frame(cls, frame: bytes) -> _Known:
        """Return what is true of a frame of `frame13`."""
        tagged = frame[12:14] == b"\x81\x00"
        at = 18 if tagged else 14
        eth_type = int.from_bytes(frame[at - 2 : at], "big")
        protocol = {_IPV4: frame[at + 9], _IPV6: frame[at + 6]}.get(eth_type)
        return cls(eth_type, protocol, frame[at + 40] if protocol == ICMPV6 else None, tagged)


def _field(random: Random, name: str) -> Field:
    """Return a field with a value of those that frames have."""
    value = {
        "in_port": lambda: struct.pack("!I", random.choice((1, 2, 3))),
        "metadata": lambda: struct.pack("!Q", random.choice((1, 2, 3, 0xFF00))),
        "eth_dst": lambda: random.choice(MACS),
        "eth_src": lambda: random.choice(MACS),
        "eth_type": lambda: struct.pack("!H", random.choice((_IPV4, _IPV4, _IPV6, _IPV6, _ARP, 0x88CC))),
        "vlan_vid": lambda: struct.pack("!H", _TAGGED | random.choice((0, 5, 6))),
        "vlan_pcp": lambda: struct.pack("!B", random.choice((0, 3))),
        "ip_dscp": lambda: struct.pack("!B", random.choice((0, 10))),
        "ip_ecn": lambda: struct.pack("!B", random.choice((0, 2))),
        "ip_proto": lambda: struct.pack("!B", random.choice((TCP, UDP, ICMP, ICMPV6, 2))),
        "ipv4_src": lambda: random.choice(ADDRESSES),
        "ipv4_dst": lambda: random.choice(ADDRESSES),
        "icmpv4_type": lambda: struct.pack("!B", random.choice((0, 8))),
        "icmpv4_code": lambda: bytes(1),
        "arp_op": lambda: struct.pack("!H", random.choice((1, 2))),
        "arp_spa": lambda: random.choice(ADDRESSES),
        "arp_tpa": lambda: random.choice(ADDRESSES),
        "arp_sha": lambda: MACS[0],
        "arp_tha": lambda: random.choice((bytes(6), MACS[1])),
        "ipv6_src": lambda: random.choice(ADDRESSES6),
        "ipv6_dst": lambda: random.choice(ADDRESSES6),
        "ipv6_flabel": lambda: struct.pack("!I", random.choice((0, 7))),
        "icmpv6_type": lambda: struct.pack("!B", random.choice((128, 135, 136))),
        "icmpv6_code": lambda: bytes(1),
        "ipv6_nd_target": lambda: random.choice(ADDRESSES6),
        "ipv6_nd_sll": lambda: random.choice(MACS[:2]),
        "ipv6_nd_tll": lambda: random.choice(MACS[:2]),
    }.get(name, lambda: struct.pack("!H", random.choice(L4)))()
    return name, value, None


_MASKABLE: Final = frozenset(
    ("metadata", "eth_dst", "eth_src", "ipv4_src", "ipv4_dst", "arp_spa", "arp_tpa", "arp_sha", "arp_tha")
) | {"ipv6_src", "ipv6_dst", "ipv6_flabel"}


def _masked(random: Random, drawn: Field) -> Field:
    name, value, _ = drawn
    if name == "vlan_vid":
        form = random.random()
        if form < 0.3:
            return name, bytes(2), None  # no tag
        if form < 0.5:
            return name, b"\x10\x00", b"\x10\x00"  # any tag
        return drawn
    if name not in _MASKABLE or random.random() < 0.7:
        return drawn
    bits = 8 * len(value)
    kinds = [(1 << bits) - 1 << random.randrange(bits) & (1 << bits) - 1, random.getrandbits(bits) | 1, 1]
    mask = random.choice(kinds).to_bytes(len(value), "big")
    if name == "ipv6_flabel":
        mask = bytes((0, mask[1] & 0x0F, mask[2], mask[3] | 1))
    return name, bytes(one & other for one, other in zip(value, mask, strict=True)), mask


def _names_of(known: _Known) -> list[str]:
    """Return the fields that such frames have beside those of all frames."""
    is_ip = known.eth_type in (_IPV4, _IPV6)
    names: list[str] = ["vlan_pcp"] if known.tagged else []
    if is_ip:
        names += ["ip_dscp", "ip_ecn"]
    names += {
        _IPV4: ["ipv4_src", "ipv4_dst"],
        _ARP: ["arp_op", "arp_spa", "arp_tpa", "arp_sha", "arp_tha"],
        _IPV6: ["ipv6_src", "ipv6_dst", "ipv6_flabel"],
    }.get(known.eth_type or 0, [])
    carried = {TCP: ["tcp_src", "tcp_dst"], UDP: ["udp_src", "udp_dst"]} if is_ip else {}
    if known.eth_type == _IPV4:
        carried[ICMP] = ["icmpv4_type", "icmpv4_code"]
    if known.eth_type == _IPV6:
        carried[ICMPV6] = ["icmpv6_code"]
    names += carried.get(known.protocol or 0, [])
    if known.icmpv6_type in (135, 136):
        names += ["ipv6_nd_target", "ipv6_nd_sll" if known.icmpv6_type == 135 else "ipv6_nd_tll"]
    return names


def _match(random: Random) -> list[Field]:
    """Return a match of fields that its others allow."""
    dense = random.choice((0, 0.05, 0.1, 0.25))
    fields = []
    for name in ("in_port", "metadata", "eth_dst", "eth_src", "vlan_vid"):
        if random.random() < dense:
            fields.append(_masked(random, _field(random, name)))
    if random.random() < 0.5:
        fields.append(_field(random, "eth_type"))
        if _Known.of(fields).eth_type in (_IPV4, _IPV6) and random.random() < 0.4:
            fields.append(_field(random, "ip_proto"))
            known = _Known.of(fields)
            if known.eth_type == _IPV6 and known.protocol == ICMPV6 and random.random() < 0.4:
                fields.append(_field(random, "icmpv6_type"))
    fields += [
        _masked(random, _field(random, name))
        for name in _names_of(_Known.of(fields))
        if random.random() < dense
    ]
    while len(encoded(fields)) > _BLOCK_BYTES:
        fields.pop()
    return fields


def _whole_match(oxms: bytes) -> bytes:
    length = 4 + len(oxms)
    return struct.pack("!HH", 1, length) + oxms + bytes(-length % 8)


MISS_ENTRIES: Final = [
    message(
        4,
        14,
        struct.pack("!QQBBHHH", _MISS_COOKIE, 0, table, _ADD, 0, 0, _MISS_PRIORITY)
        + struct.pack("!IIIH2x", _NO_BUFFER, _ANY, _ANY, 0)
        + _whole_match(b""),
    )
    for table in range(1, _TABLES)
]
"""Messages that come first: entries without instructions for what nothing else in these tables matches."""


def _action(kind: int, body: bytes = bytes(4)) -> bytes:
    body += bytes(-(4 + len(body)) % 8)
    return struct.pack("!HH", kind, 4 + len(body)) + body


def _output_to(port: int) -> bytes:
    return _action(0, struct.pack("!IH6x", port, _WHOLE_FRAME))


def _output(random: Random, allowed: _Allowed) -> bytes:
    ports = [1, 2, 3, 1, 2, 3, _IN_PORT, _FLOOD, _ALL]
    return _output_to(random.choice([*ports, _CONTROLLER, _CONTROLLER] if allowed.controller else ports))


def _set_field(random: Random, names: Sequence[str]) -> bytes:
    return _action(25, encoded([_field(random, random.choice(names))]))


def _one_action(random: Random, known: _Known, allowed: _Allowed) -> bytes:
    """Return an action that frames of which this is known allow, and let `known` follow it."""
    kind = random.random()
    if kind < 0.4:
        return _output(random, allowed)
    if kind < 0.75:
        tag = ["vlan_vid"] if known.tagged else []
        return _set_field(random, ["eth_dst", "eth_src", *tag, *_names_of(known)])
    if kind < 0.82 and known.tagged and allowed.pop:
        known.tagged = False
        return _action(18)
    if known.eth_type not in (_IPV4, _IPV6):
        return _output(random, allowed)
    if kind < 0.91 and allowed.lowers_ttl:
        return _action(24)
    return _action(23, struct.pack("!B3x", random.choice((1, 9, 64))))


def _actions(random: Random, known: _Known, allowed: _Allowed) -> bytes:
    actions = []
    push_at = random.randrange(3) if allowed.push else None
    group_at = random.randrange(4) if allowed.group else None
    for at in range(random.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        if at == group_at:
            actions.append(_action(22, struct.pack("!I", random.choice(_GROUPS))))
        elif at == push_at:
            known.tagged = True
            actions.append(_action(17, struct.pack("!H2x", random.choice((0x8100, 0x88A8)))))
        else:
            actions.append(_one_action(random, known, allowed))
    return b"".join(actions)


def _instructions(
    random: Random, drawn: Drawn13, table: int, known: _Known, fault: str, *, reference: str, may_tell: bool
) -> bytes:
    """Return instructions of an entry, which name a meter or group only as `reference` says."""
    instructions: list[bytes] = []

    def put(kind: int, body: bytes) -> None:
        instructions.append(struct.pack("!HH", kind, 4 + len(body)) + body)

    has_next = table + 1 < _TABLES and random.random() < 0.55
    in_list = drawn.allow(
        "apply" if not has_next else "",
        group=reference == "group in list",
        controller=may_tell,
        lowers_ttl=not drawn.has_sets,
    )
    in_set = drawn.allow("write", group=reference == "group in set", controller=False)
    if fault == "action":
        inconsistent = _set_field(random, [name for name in _DEPENDENT if name not in _names_of(known)])
        if not known.tagged and random.random() < 0.5:
            inconsistent = _action(18)
        put(4, bytes(4) + inconsistent)
    elif random.random() < 0.7:
        put(4, bytes(4) + _actions(random, known, in_list))
    if drawn.has_sets and random.random() < 0.4:
        put(3, bytes(4) + _actions(random, known, in_set))
    if random.random() < 0.15:
        put(5, bytes(4))
    if random.random() < 0.25:
        masks = (0xFF, 0xFFFF, (1 << 64) - 1)
        put(2, struct.pack("!4xQQ", random.choice((1, 2, 0xFF03)), random.choice(masks)))
    if reference == "meter":
        put(6, struct.pack("!I", random.choice(_METERS)))
    if fault == "next table":
        put(1, struct.pack("!B3x", table))
    elif has_next:
        put(1, struct.pack("!B3x", random.randrange(table + 1, _TABLES)))
    # The last ones are left out if the board has no block for all.
    while sum(map(len, instructions)) > _BLOCK_BYTES:
        instructions.pop()
    return b"".join(instructions)


def _flow_mod(random: Random, drawn: Drawn13) -> bytes:
    # Which of several faults an error tells is open, so there is one at most.
    fault = random.choice(_FAULTS) if random.random() < 0.1 else ""
    command = 7 if fault == "command" else random.choice((*[_ADD] * 10, 1, 1, 2, 3, 4))
    deletes = command in (_DELETE, _DELETE_STRICT)
    table = random.choice((0, 0, 0, 1, 1, 2, 3))
    if deletes and random.random() < 0.3:
        table = _ALL_TABLES
    cookie = random.choice(_COOKIES)
    cookie_mask = random.choice((0, 0, 0, 1, _WHOLE_COOKIE)) if command != _ADD else 0
    out_port = random.choice((_ANY, _ANY, 1, 2)) if deletes else _ANY
    out_group = random.choice((_ANY, _ANY, _ANY, 1)) if deletes else _ANY
    buffer = 9 if fault == "buffer" else _NO_BUFFER
    flags = random.choice((0, 0, 1, 1, CHECK_OVERLAP, 4, 5))
    if random.random() < 0.1 and (table == 0 or not deletes):
        match, priority, flags = b"", _MISS_PRIORITY, flags & ~CHECK_OVERLAP
    else:
        match, priority, flags = drawn.entries.draw(
            random, encoded(_match(random)), flags, is_deleted=command == _DELETE_STRICT
        )
    reference = ""
    may_miss = table == 0 or priority != _MISS_PRIORITY
    if command == _ADD and not may_miss:
        cookie = _MISS_COOKIE
    if command == _DELETE and table != 0:
        cookie_mask = _WHOLE_COOKIE
    if command == _ADD and not fault and may_miss:
        reference = random.choice(_REFERENCES)
    if reference == "meter":
        flags &= ~_SEND_FLOW_REMOVED
    if fault == "match":
        match = encoded([_field(random, "in_port"), _field(random, random.choice(_DEPENDENT))])
    head = struct.pack("!QQBBHHH", cookie, cookie_mask, table, command, 0, 0, priority)
    head += struct.pack("!IIIH2x", buffer, out_port, out_group, flags)
    instructions = b""
    if not deletes:
        known = _Known() if fault == "match" else _Known.of(fields_of(match))
        may_tell = not drawn.has_table or (command == _ADD and priority != _MISS_PRIORITY)
        instructions = _instructions(
            random, drawn, table, known, fault, reference=reference, may_tell=may_tell
        )
    return message(4, 14, head + _whole_match(match) + instructions)


def _bucket(random: Random, drawn: Drawn13, watched_port: int) -> bytes:
    actions = _output(random, _Allowed()) if random.random() < 0.9 else b""
    if random.random() < 0.4:
        pop_or_push = _action(17, b"\x81\x00\0\0") if drawn.pushes else _action(18)
        changes = (
            pop_or_push if drawn.tags == "bucket" else _action(24),
            _action(24),
            _set_field(random, ["eth_dst", "ipv4_src", "vlan_pcp", "tcp_dst"]),
        )
        actions = random.choice(changes) + actions
    return struct.pack("!HHII4x", 16 + len(actions), 0, watched_port, _ANY) + actions


def _group_mod(random: Random, drawn: Drawn13) -> bytes:
    command, group = random.choice((0, 0, 0, 0, 1, 1, 2)), random.choice(_GROUPS)
    if command == 2:
        group = random.choice((*_GROUPS, _ALL_GROUPS))
        return message(4, 15, struct.pack("!HBxI", command, 0, group))
    kind = random.choice((_GROUP_ALL, _GROUP_INDIRECT, _GROUP_FAST_FAILOVER))
    count = 1 if kind == _GROUP_INDIRECT else random.choice((0, 1, 2, 2))
    buckets: list[bytes] = []
    for _ in range(count):
        watched_port = random.choice((1, 2, 3)) if kind == _GROUP_FAST_FAILOVER else _ANY
        bucket = _bucket(random, drawn, watched_port)
        if sum(map(len, buckets)) + len(bucket) <= _BUCKETS_BYTES:
            buckets.append(bucket)
    return message(4, 15, struct.pack("!HBxI", command, kind, group) + b"".join(buckets))


def _meter_mod(random: Random, drawn: Drawn13) -> bytes:
    command = random.choice((0, 0, 0, 1 if drawn.modifies_meters else 0, 2))
    meter = random.choice((*_METERS, _ALL_METERS)) if command == 2 else random.choice(_METERS)
    if command == 2:
        return message(4, 29, struct.pack("!HHI", command, 0, meter))
    band = struct.pack("!HHII4x", 1, 16, _RATE_KBPS, _RATE_KBPS)
    return message(4, 29, struct.pack("!HHI", command, _KBPS_WITH_BURST, meter) + band)


def _multipart(random: Random, drawn: Drawn13) -> bytes:
    kind = random.choice((1, 2, 2, 6, 7, 10 if drawn.modifies_meters else 9, 10))
    if kind in (1, 2):
        body = struct.pack(
            "!B3xII4xQQ",
            random.choice((0, 1, _ALL_TABLES)),
            random.choice((_ANY, _ANY, 1)),
            random.choice((_ANY, _ANY, _ANY, 1)),
            random.choice(_COOKIES),
            random.choice((0, 0, 1, _WHOLE_COOKIE)),
        )
        body += _whole_match(encoded(_match(random)))
    elif kind == 6:
        body = struct.pack("!I4x", random.choice((*_GROUPS, _ALL_GROUPS)))
    elif kind == 7:
        body = b""
    else:
        body = struct.pack("!I4x", random.choice((*_METERS, _ALL_METERS)))
    return message(4, 18, struct.pack("!HH4x", kind, 0) + body)


def message13(random: Random, drawn: Drawn13) -> bytes:
    """Return a message."""
    kind = random.random()
    if kind < 0.55:
        return _flow_mod(random, drawn)
    if kind < 0.7:
        in_port = random.choice((_CONTROLLER,) if drawn.has_no_recv else (1, 2, 3, _CONTROLLER))
        frame = frame13(random, may_be_tagged=not drawn.pushes)
        to_table = drawn.has_table and random.random() < 0.4
        allowed = drawn.allow("" if to_table else "packet out", group=True, controller=True)
        actions = _actions(random, _Known.of_frame(frame), allowed)
        actions += _output_to(_TABLE) if to_table else b""
        buffer = 9 if random.random() < 0.03 else _NO_BUFFER
        return message(4, 13, struct.pack("!IIH6x", buffer, in_port, len(actions)) + actions + frame)
    if kind < 0.82:
        return _group_mod(random, drawn)
    if kind < 0.86:
        return _meter_mod(random, drawn)
    if kind < 0.88:
        return message(4, 9, struct.pack("!HH", 0, random.choice((0, 128, 0xFFFF))))
    if kind < 0.9:
        return message(4, 7)
    if kind < 0.92:
        wanted = random.choice((1, 3, 7, 7)), 0, 7, 7, random.choice((0, 15)), 0
        return message(4, 28, struct.pack("!6I", *wanted))
    return _multipart(random, drawn)
