"""The TCP connection of a control session whose payloads alone are known, as frames that analysers follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import dpkt
from dpkt.tcp import TH_ACK, TH_PUSH, TH_SYN

CONTROLLER_PORT: Final = 6653
"""Port of OpenFlow (IANA), by which analysers recognise it."""
_BOARD_PORT: Final = 49152
_SEGMENT_BYTES: Final = 1460
_WINDOW: Final = 65535
_HANDSHAKE_NS: Final = 1_000
"""Between two segments of the handshake, which ends as the first payload is sent."""


class Payload(NamedTuple):
    """Bytes that one end sent."""

    at_ns: int
    is_from_board: bool
    data: bytes


class StreamFrame(NamedTuple):
    """An Ethernet frame of the connection."""

    at_ns: int
    is_from_board: bool
    data: bytes
    payload: int
    """Place of the payload that it carries, or a part of which; -1: none."""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """An end of the connection. Addresses are packed."""

    mac: bytes
    ip: bytes
    port: int


@dataclass(slots=True)
class ControlStream:
    """A connection that the board opens. Every segment acknowledges all that came before it."""

    board: StreamEnd
    controller: StreamEnd
    _sent: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    """Sequence numbers that each end has used, by whether it is the board."""

    @classmethod
    def of(
        cls, *, board_mac: bytes, board_ip: bytes, controller_mac: bytes, controller_ip: bytes
    ) -> ControlStream:
        """Return a connection between these addresses."""
        return cls(
            StreamEnd(board_mac, board_ip, _BOARD_PORT),
            StreamEnd(controller_mac, controller_ip, CONTROLLER_PORT),
        )

    def frames(self, payloads: Sequence[Payload]) -> Iterator[StreamFrame]:
        """Yield the frames of the connection: its handshake, and these payloads in order."""
        if not payloads:
            return
        for before, is_from_board, flags in (
            (3, True, TH_SYN),
            (2, False, TH_SYN | TH_ACK),
            (1, True, TH_ACK),
        ):
            at_ns = max(0, payloads[0].at_ns - before * _HANDSHAKE_NS)
            yield StreamFrame(at_ns, is_from_board, self._frame(is_from_board, flags), -1)
            self._sent[is_from_board] += bool(flags & TH_SYN)
        for place, (at_ns, is_from_board, data) in enumerate(payloads):
            for begin in range(0, len(data), _SEGMENT_BYTES):
                part = data[begin : begin + _SEGMENT_BYTES]
                frame = self._frame(is_from_board, TH_ACK | TH_PUSH, part)
                yield StreamFrame(at_ns, is_from_board, frame, place)
                self._sent[is_from_board] += len(part)

    def _frame(self, is_from_board: bool, flags: int, data: bytes = b"") -> bytes:
        source, destination = self.board, self.controller
        if not is_from_board:
            source, destination = destination, source
        tcp = dpkt.tcp.TCP(
            sport=source.port,
            dport=destination.port,
            seq=self._sent[is_from_board],
            ack=self._sent[not is_from_board] if flags & TH_ACK else 0,
            flags=flags,
            win=_WINDOW,
            data=data,
        )
        ip = dpkt.ip.IP(src=source.ip, dst=destination.ip, p=dpkt.ip.IP_PROTO_TCP, ttl=64, df=1, data=tcp)
        ip.len = len(ip)
        return bytes(dpkt.ethernet.Ethernet(src=source.mac, dst=destination.mac, data=ip))
