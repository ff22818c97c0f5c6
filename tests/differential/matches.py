"""Matches by what they mean."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

_IPV4, _ARP = 0x0800, 0x0806


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


Field = tuple[str, bytes, bytes | None]
"""Name, value and, if it is masked, mask of a field of OpenFlow 1.3."""

_NAMES: Final = (
    "in_port",
    "in_phy_port",
    "metadata",
    "eth_dst",
    "eth_src",
    "eth_type",
    "vlan_vid",
    "vlan_pcp",
    "ip_dscp",
    "ip_ecn",
    "ip_proto",
    "ipv4_src",
    "ipv4_dst",
    "tcp_src",
    "tcp_dst",
    "udp_src",
    "udp_dst",
    "sctp_src",
    "sctp_dst",
    "icmpv4_type",
    "icmpv4_code",
    "arp_op",
    "arp_spa",
    "arp_tpa",
    "arp_sha",
    "arp_tha",
    "ipv6_src",
    "ipv6_dst",
    "ipv6_flabel",
    "icmpv6_type",
    "icmpv6_code",
    "ipv6_nd_target",
    "ipv6_nd_sll",
    "ipv6_nd_tll",
)
"""Fields of OpenFlow 1.3 by their numbers."""
_BITS: Final = {"vlan_vid": 13, "ipv6_flabel": 20}
"""Of fields that do not fill their bytes and may be masked."""
_OXM_CLASS: Final = 0x8000


def encoded(fields: Sequence[Field]) -> bytes:
    """Return fields as OXM."""
    oxms = b""
    for name, value, mask in fields:
        body = value + (mask or b"")
        kind = _NAMES.index(name) << 1 | (mask is not None)
        oxms += struct.pack("!HBB", _OXM_CLASS, kind, len(body)) + body
    return oxms


def fields_of(oxms: bytes) -> list[Field]:
    """Return what `encoded` was given, without fields of other classes."""
    fields: list[Field] = []
    while oxms:
        oxm_class, kind, length = struct.unpack("!HBB", oxms[:4])
        body, oxms = oxms[4 : 4 + length], oxms[4 + length :]
        if oxm_class == _OXM_CLASS:
            bytes_of_value = length // 2 if kind & 1 else length
            mask = body[bytes_of_value:] if kind & 1 else None
            fields.append((_NAMES[kind >> 1], body[:bytes_of_value], mask))
    return fields


def match13(oxms: bytes) -> str:
    """Return OXM in one order and form: masks that leave all bits or no bit open are left out."""
    said = []
    for name, value, mask in fields_of(oxms):
        every = (1 << _BITS.get(name, 8 * len(value))) - 1
        bits = every if mask is None else int.from_bytes(mask, "big") & every
        if bits == every:
            said.append(f"{name}={value.hex()}")
        elif bits:
            said.append(f"{name}={value.hex()}/{bits:x}")
    return ",".join(sorted(said))
