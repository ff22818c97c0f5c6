"""Recognises a frame on both sides of a switch that may rewrite its headers (the actions of Table 1)."""

from __future__ import annotations

import hashlib
from typing import Final

from loko_testbed.measure.bench.captures.record import CapturedFrame

_ETHERNET_BYTES: Final = 12
_TAGS: Final = frozenset({b"\x81\x00", b"\x88\xa8"})
_IPV4: Final = b"\x08\x00"
_HEADERS: Final = {17: 8, 1: 8}
"""Length of the UDP and ICMP headers, of which an action may change a part, by IP protocol."""
_TCP: Final = 6
_HASH_BYTES: Final = 12
_CUT_BYTES: Final = 16
"""Bytes that count of a truncated frame: enough for the numbers that generators write at its start."""


def fingerprint(frame: CapturedFrame) -> bytes | None:
    """Return what no action changes, so that it is the same before and after rewriting.

    It covers identification and protocol of the packet, and what UDP, TCP or ICMP carry. None for frames
    without IPv4.
    """
    data = frame.data
    at = _ETHERNET_BYTES
    while data[at : at + 2] in _TAGS:
        at += 4
    if data[at : at + 2] != _IPV4 or len(data) < at + 22:
        return None
    packet = data[at + 2 :]
    header, total = (packet[0] & 0xF) * 4, int.from_bytes(packet[2:4], "big")
    protocol = packet[9]
    if protocol == _TCP:
        skipped = 4 * (packet[header + 12] >> 4) if len(packet) > header + 12 else 20
    else:
        skipped = _HEADERS.get(protocol, 0)
    # Only up to the end of the packet: padding follows it and, in some captures, the FCS.
    payload = packet[header + skipped : total]
    whole = len(data) >= at + 2 + total
    if not whole:
        payload = payload[:_CUT_BYTES]
    return hashlib.blake2b(packet[4:6] + packet[9:10] + payload, digest_size=_HASH_BYTES).digest()
