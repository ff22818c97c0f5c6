"""Lengths of a frame as shaper, link and payload count them, in bytes; l is the frame with its FCS."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MIN_FRAME_BYTES: Final = 64
MAX_FRAME_BYTES: Final = 1518
_FCS: Final = 4
_ETHERNET: Final = 14
_IP: Final = 20
_UDP: Final = 8
_TCP: Final = 32
"""Length of a TCP header with the timestamps option, as Linux sends it."""
_PREAMBLE_AND_GAP: Final = 20


class Scheduler(StrEnum):
    """Limit of a slice."""

    HTB = "htb"
    """Linux's hierarchical token bucket, Open vSwitch's `linux-htb`: frames without tokens wait."""
    TRTCM = "trtcm"
    """Two-rate three-colour marking, OVS-DPDK's `trtcm-policer`: packets without tokens are dropped."""


class Protocol(StrEnum):
    """The protocol over IPv4 that carries the payload."""

    UDP = "udp"
    TCP = "tcp"


_HEADERS: Final = {Protocol.UDP: _FCS + _ETHERNET + _IP + _UDP, Protocol.TCP: _FCS + _ETHERNET + _IP + _TCP}


def counted(scheduler: Scheduler, frame_bytes: int) -> int:
    """Return how many bytes of a frame take tokens.

    The kernel counts from the Ethernet header on, without FCS; the policer counts the IP packet (RFC 4115).
    """
    return frame_bytes - _FCS - (_ETHERNET if scheduler is Scheduler.TRTCM else 0)


def payload(protocol: Protocol, frame_bytes: int) -> int:
    """Return the most payload that such a frame carries."""
    return max(frame_bytes - _HEADERS[protocol], 0)


def on_wire(frame_bytes: int) -> int:
    """Return the bytes that a frame takes on a link, with preamble and gap."""
    return frame_bytes + _PREAMBLE_AND_GAP
