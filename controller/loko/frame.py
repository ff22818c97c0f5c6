"""The frame that a flow's host sends, byte by byte: the same for emulators, senders and tests."""

from __future__ import annotations

from typing import Final, Protocol

import dpkt

from loko.lab import Host, Lab

FCS_BYTES: Final = 4
HEADERS_BYTES: Final = 14 + 20 + 8
"""Ethernet, IPv4 without options, UDP."""


class Addressed(Protocol):
    """Who sends frames of which size to whom."""

    @property
    def source(self) -> str:
        """The host's name in the lab."""

    @property
    def destination(self) -> str:
        """The same."""

    @property
    def udp_source(self) -> int:
        """Its port."""

    @property
    def udp_destination(self) -> int:
        """Its port."""

    @property
    def frame_bytes(self) -> int:
        """With FCS."""


def frame_of(lab: Lab, flow: Addressed) -> bytes:
    """The Ethernet frame of a flow, without FCS. The UDP checksum is left out, as IPv4 allows."""
    source, destination = lab.hosts[flow.source], lab.hosts[flow.destination]
    payload = bytes(flow.frame_bytes - FCS_BYTES - HEADERS_BYTES)
    udp = dpkt.udp.UDP(sport=flow.udp_source, dport=flow.udp_destination, data=payload)
    udp.ulen = len(udp)
    ip = dpkt.ip.IP(src=source.ip.packed, dst=destination.ip.packed, p=dpkt.ip.IP_PROTO_UDP, data=udp)
    ip.len = len(ip)
    udp.sum = 0
    ethernet = dpkt.ethernet.Ethernet(src=_mac(source), dst=_mac(destination), data=ip)
    return bytes(ethernet)


def _mac(host: Host) -> bytes:
    return bytes.fromhex(host.mac.replace(":", ""))
