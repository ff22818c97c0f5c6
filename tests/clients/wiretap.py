"""Capture the messages between a board and its controller passively."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

import dpkt
from os_ken.ofproto import ofproto_parser

from loko.control.framing import whole_messages
from loko_testbed.instruments.packet_tap import PacketTap
from loko_testbed.live.one_board import Namespace

_FRAME_BYTES = 1 << 16


class Kind(IntEnum):
    """Types of OpenFlow 1.0 messages."""

    HELLO = 0
    ERROR = 1
    ECHO_REQUEST = 2
    ECHO_REPLY = 3
    VENDOR = 4
    FEATURES_REQUEST = 5
    FEATURES_REPLY = 6
    GET_CONFIG_REQUEST = 7
    GET_CONFIG_REPLY = 8
    SET_CONFIG = 9
    PACKET_IN = 10
    FLOW_REMOVED = 11
    PORT_STATUS = 12
    PACKET_OUT = 13
    FLOW_MOD = 14
    PORT_MOD = 15
    STATS_REQUEST = 16
    STATS_REPLY = 17
    BARRIER_REQUEST = 18
    BARRIER_REPLY = 19


@dataclass(frozen=True, slots=True)
class Message:
    """One OpenFlow message; `body` follows the 8-byte header."""

    session: int
    from_board: bool
    version: int
    kind: int
    xid: int
    body: bytes

    @property
    def name(self) -> str:
        """The name of its type in OpenFlow 1.0."""
        return Kind(self.kind).name if self.kind in Kind.__members__.values() else f"TYPE_{self.kind}"


@dataclass(slots=True)
class _Stream:
    session: int
    next_sequence: int | None = None
    data: bytes = b""


class Wiretap:
    """All messages of all sessions on a controller's port, in order."""

    def __init__(self, namespace: Namespace, port: int, interface: str = "lo") -> None:
        self._port = port
        self._tap = PacketTap(
            interface, needs_stamps=False, namespace=namespace.path, kept_bytes=_FRAME_BYTES
        )
        # Packets on the loopback interface are captured twice.
        self._loopback = interface == "lo"
        self._streams: dict[tuple[bytes, int, bytes, int], _Stream] = {}
        self._messages: list[Message] = []
        self._sessions = 0

    @property
    def messages(self) -> list[Message]:
        """All messages so far."""
        self._read(0.0)
        return self._messages

    def _read(self, timeout_s: float) -> None:
        for seen in self._tap.drain(timeout_s=timeout_s):
            if not (self._loopback and seen.outgoing):
                self._take(seen.data)

    def kinds(self) -> Counter[tuple[bool, str]]:
        return Counter((message.from_board, message.name) for message in self.messages)

    def from_board(self, kind: Kind) -> list[Message]:
        """Return the messages of a type that the board has sent."""
        return [message for message in self.messages if message.from_board and message.kind == kind]

    def from_controller(self, kind: Kind) -> list[Message]:
        """Return the messages of a type that the controller has sent."""
        return [message for message in self.messages if not message.from_board and message.kind == kind]

    def wait(self, kind: Kind, *, from_board: bool, count: int = 1, timeout_s: float = 10.0) -> list[Message]:
        """Wait until this many messages of a type have been seen."""
        deadline = time.monotonic() + timeout_s
        while True:
            messages = self.from_board(kind) if from_board else self.from_controller(kind)
            if len(messages) >= count:
                return messages
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"{len(messages)} of {count} {kind.name} within {timeout_s} s: {self.kinds()}"
            self._read(left_s)

    def _take(self, frame: bytes) -> None:
        packet = dpkt.ethernet.Ethernet(frame).data
        segment = packet.data if isinstance(packet, dpkt.ip.IP) else None
        if not isinstance(segment, dpkt.tcp.TCP) or self._port not in {segment.sport, segment.dport}:
            return
        from_board = segment.dport == self._port
        ends = (packet.src, segment.sport, packet.dst, segment.dport)
        if segment.flags & dpkt.tcp.TH_SYN:
            other = self._streams.get((packet.dst, segment.dport, packet.src, segment.sport))
            if from_board or other is None:
                self._sessions += 1
            self._streams[ends] = _Stream(self._sessions, (segment.seq + 1) % 2**32)
            return
        stream = self._streams.get(ends)
        # Skip retransmissions and truncated frames, which the receiver has had already or not completely.
        if stream is None or segment.seq != stream.next_sequence:
            return
        stream.next_sequence = (segment.seq + len(segment.data)) % 2**32
        stream.data += segment.data
        messages, stream.data = whole_messages(stream.data)
        for message in messages:
            version, kind, _, xid = ofproto_parser.header(message)
            self._messages.append(Message(stream.session, from_board, version, kind, xid, message[8:]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tap.close()
