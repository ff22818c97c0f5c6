"""Matches of OpenFlow 1.0 by what they mean."""

from __future__ import annotations

import struct

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
