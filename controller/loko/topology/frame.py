"""The frame that a flow's host sends, byte by byte: the same for emulators, senders and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from loko.topology.lab import Host, Lab

if TYPE_CHECKING:
    import dpkt

FCS_BYTES: Final = 4
HEADERS_BYTES: Final = 14 + 20 + 8
"""Ethernet, IPv4 without options, UDP."""
_TCP_HEADERS_BYTES: Final = 14 + 20 + 20


class Addressed(Protocol):
    """Description of a sender's frames: the hosts at both ends, the UDP ports and the size."""

    @property
    def source(self) -> str:
        """Name of the sending host."""

    @property
    def destination(self) -> str:
        """Name of the receiving host."""

    @property
    def udp_source(self) -> int:
        """The sender's UDP port."""

    @property
    def udp_destination(self) -> int:
        """The receiver's UDP port."""

    @property
    def frame_bytes(self) -> int:
        """Length of each frame, with FCS."""


def frame_of(lab: Lab, flow: Addressed) -> bytes:
    """The Ethernet frame of a flow, without FCS. The UDP checksum is left out, as IPv4 allows."""
    import dpkt  # noqa: PLC0415 (it would add to the start of each command, and few make frames)

    payload = bytes(flow.frame_bytes - FCS_BYTES - HEADERS_BYTES)
    udp = dpkt.udp.UDP(sport=flow.udp_source, dport=flow.udp_destination, data=payload)
    udp.ulen = len(udp)
    return _framed(lab, flow, dpkt.ip.IP_PROTO_UDP, udp)


def segment_of(lab: Lab, flow: Addressed) -> bytes:
    """The Ethernet frame of a full TCP segment without options between a flow's ports, without FCS."""
    import dpkt  # noqa: PLC0415 (it would add to the start of each command, and few make frames)

    tcp = dpkt.tcp.TCP(sport=flow.udp_source, dport=flow.udp_destination)
    tcp.data = bytes(flow.frame_bytes - FCS_BYTES - _TCP_HEADERS_BYTES)
    return _framed(lab, flow, dpkt.ip.IP_PROTO_TCP, tcp)


def _framed(lab: Lab, flow: Addressed, protocol: int, data: dpkt.Packet) -> bytes:
    import dpkt  # noqa: PLC0415 (it would add to the start of each command, and few make frames)

    source, destination = lab.hosts[flow.source], lab.hosts[flow.destination]
    ip = dpkt.ip.IP(src=source.ip.packed, dst=destination.ip.packed, p=protocol, data=data)
    ip.len = len(ip)
    data.sum = 0
    ethernet = dpkt.ethernet.Ethernet(src=_mac(source), dst=_mac(destination), data=ip)
    return bytes(ethernet)


def _mac(host: Host) -> bytes:
    return bytes.fromhex(host.mac.replace(":", ""))
