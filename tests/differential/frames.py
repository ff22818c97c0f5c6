"""Frames that hosts might send, drawn at random: of 64 to 200 bytes."""

from __future__ import annotations

import struct
from random import Random
from typing import Final

import dpkt

MACS: Final = [
    bytes.fromhex(text) for text in ("000000000001", "000000000002", "0180c2000000", "ffffffffffff")
]
ADDRESSES: Final = [bytes(text) for text in ((10, 0, 0, 1), (10, 0, 0, 2), (10, 1, 0, 1), (192, 168, 0, 1))]
ADDRESSES6: Final = [
    bytes.fromhex(text + "1".zfill(32 - len(text))) for text in ("fe80", "20010db8", "20010db80001")
]
L4: Final = (80, 4000)
TCP, UDP, ICMP, ICMPV6, SCTP, OTHER = 6, 17, 1, 58, 132, 99
_ECHO_REQUEST6, _SOLICITATION, _ADVERTISEMENT = 128, 135, 136
_MORE_FRAGMENTS: Final = 0x2000


def _head(random: Random, *, may_be_tagged: bool = True) -> bytes:
    head = random.choice(MACS[:3]) if random.random() < 0.8 else MACS[3]
    head += random.choice(MACS[:2])
    if may_be_tagged and random.random() < 0.4:
        head += struct.pack("!HH", 0x8100, random.choice((0, 5, 6)) | random.choice((0, 3)) << 13)
    return head


def _padding(random: Random) -> bytes:
    return random.randbytes(random.randrange(50, 90))


def _arp(random: Random) -> bytes:
    sender, target = random.choice(ADDRESSES), random.choice(ADDRESSES)
    arp = struct.pack("!HHHBBH", 0x0806, 1, 0x0800, 6, 4, random.choice((1, 2)))
    return arp + MACS[0] + sender + random.choice((bytes(6), MACS[1])) + target + _padding(random)


def _other(random: Random) -> bytes:
    return struct.pack("!H", random.choice((0x88CC, 0x1234, 0x0842))) + _padding(random)


def _transport(random: Random, protocol: int, pseudo: bytes) -> bytes:
    """Return what an IP packet carries; `pseudo` are the addresses, which most checksums cover."""
    padding = _padding(random)
    if protocol == TCP:
        payload = struct.pack("!HHIIBBHHH", *random.choices(L4, k=2), 1, 2, 0x50, 2, 100, 0, 0) + padding
        checksum_at = 16
    elif protocol == UDP:
        payload = struct.pack("!HHHH", *random.choices(L4, k=2), 8 + len(padding), 0) + padding
        checksum_at = 6
    elif protocol == ICMP:
        payload = struct.pack("!BBHI", random.choice((0, 8)), 0, 0, 1) + padding
        checksum_at, pseudo = 2, b""
    elif protocol == ICMPV6:
        kind = random.choice((_ECHO_REQUEST6, _SOLICITATION, _ADVERTISEMENT))
        payload = struct.pack("!BBHI", kind, 0, 0, 1)
        if kind == _ECHO_REQUEST6:
            payload += padding
        else:
            payload += random.choice(ADDRESSES6)
            payload += bytes([1 if kind == _SOLICITATION else 2, 1]) + random.choice(MACS[:2])
        checksum_at = 2
    else:
        return padding
    # Over IPv4 a sender of UDP may leave the checksum out.
    if protocol == UDP and len(pseudo) == 2 * len(ADDRESSES[0]) and random.random() < 0.3:
        return payload
    if pseudo:
        pseudo += struct.pack("!II", len(payload), protocol)
    checksum = struct.pack("!H", dpkt.in_cksum(pseudo + payload))
    return payload[:checksum_at] + checksum + payload[checksum_at + 2 :]


def _ipv4(random: Random, protocols: tuple[int, ...], *, has_transport_fragments: bool) -> bytes:
    protocol = random.choice(protocols)
    addresses = random.choice(ADDRESSES) + random.choice(ADDRESSES)
    payload = _transport(random, protocol, addresses)
    if protocol not in (TCP, UDP):
        fragments: tuple[int, ...] = (_MORE_FRAGMENTS, _MORE_FRAGMENTS | 3, 5)
    else:
        fragments = (_MORE_FRAGMENTS,)
    may_be_fragment = protocol == OTHER or has_transport_fragments
    fragment = random.choice(fragments) if may_be_fragment and random.random() < 0.1 else 0
    tos = random.choice((0, 0x28, 0x2A))
    ttl = random.choice((1, 2, 64))
    ip = struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(payload), 1, fragment, ttl, protocol, 0)
    checksum = struct.pack("!H", dpkt.in_cksum(ip + addresses))
    return b"\x08\x00" + ip[:10] + checksum + addresses + payload


def _ipv6(random: Random) -> bytes:
    protocol = random.choice((TCP, UDP, ICMPV6, ICMPV6, OTHER))
    addresses = random.choice(ADDRESSES6) + random.choice(ADDRESSES6)
    payload = _transport(random, protocol, addresses)
    first = 6 << 28 | random.choice((0, 0x28, 0x2A)) << 20 | random.choice((0, 7))
    ip = struct.pack("!IHBB", first, len(payload), protocol, random.choice((1, 2, 64)))
    return b"\x86\xdd" + ip + addresses + payload


def frame10(random: Random, *, has_icmp: bool) -> bytes:
    """Return a frame of what 1.0 knows: tagged or not, IPv4, fragments, ARP, others."""
    what = random.random()
    if what < 0.15:
        return _head(random) + _arp(random)
    if what < 0.3:
        return _head(random) + _other(random)
    protocols = (TCP, UDP, UDP, ICMP, OTHER) if has_icmp else (TCP, UDP, UDP, OTHER)
    return _head(random) + _ipv4(random, protocols, has_transport_fragments=True)


def frame13(random: Random, *, may_be_tagged: bool) -> bytes:
    """Return a frame of what 1.3 knows: also IPv6 with neighbour messages."""
    head = _head(random, may_be_tagged=may_be_tagged)
    what = random.random()
    if what < 0.2:
        return head + _arp(random)
    if what < 0.3:
        return head + _other(random)
    if what < 0.65:
        return head + _ipv4(random, (TCP, UDP, ICMP, OTHER), has_transport_fragments=False)
    return head + _ipv6(random)
