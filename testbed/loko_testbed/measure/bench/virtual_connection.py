"""A board that keeps its TCP connection itself, and the controller at its other end, in virtual time.

A reply longer than a segment leaves the board as several frames, as a real one's does. The controller
acknowledges each frame at once. Its cable carries whatever it is given, even two frames at the same time.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import dpkt
import switch_emulator
from os_ken.ofproto import ofproto_v1_0 as of

from loko.control.framing import segments_of
from loko_testbed.instruments.dialect import Dialect
from loko_testbed.instruments.numbered_frame import FCS_BYTES
from loko_testbed.measure.bench.device import ControlFrame
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.simulation.runner import RunError

_NATIVE_PORT: Final = 4
_NATIVE_MASK: Final = 1 << (_NATIVE_PORT - 1)
_MAC: Final = bytes.fromhex("020000000008")
_ADDRESS: Final = bytes((10, 0, 1, 8))
"""The controller's address in the factory settings of a board."""
_TCP_PORT: Final = 6633
_WINDOW: Final = 65_535
_WORD: Final = 1 << 32
_MIN_FRAME_BYTES: Final = 64
_HEADER_BYTES: Final = 14 + 20 + 20
"""Ethernet, IP and TCP before the payload of a segment."""
_QUIET_NS: Final = 120_000_000
_CONNECT_NS: Final = 10_000_000_000


class ConnectedBoard:
    """A board with ``control = "network"``, and its controller."""

    def __init__(
        self, profile: str, config: Mapping[str, object], seed: int, wire: LinkTiming, dialect: Dialect
    ) -> None:
        """Switch the board on and wait until it has connected. Raises `RunError`."""
        self._name, self._wire, self._dialect = profile, wire, dialect
        self._board = switch_emulator.Board(profile, {**config, "control": "network"}, seed)
        self._now_ns = 0
        self._arrivals: list[tuple[int, int, bytes, bool]] = []
        """Future arrivals at the board: instant, order, data, and whether that is a whole frame."""
        self._numbers = itertools.count()
        self._peer_mac = self._peer_address = b""
        self._peer_port = 0
        self._sent = self._received = 0
        """Sequence numbers: our next one, and the next one that we expect from the board."""
        self._greeted = False
        for _ in self._until(_CONNECT_NS):
            if self._greeted:
                break
        if not self._greeted:
            raise RunError(f"{profile}: the board does not connect to {'.'.join(map(str, _ADDRESS))}")
        for segment in (dialect.hello, dialect.features_request):
            self.control([0], [segment])

    def load(self, messages: Sequence[bytes]) -> None:
        """Add entries, confirmed by a barrier. Raises `RunError`."""
        said = []
        for segment in (*segments_of(messages), self._dialect.barrier_request):
            said = [sighting.payload[1] for sighting in self.control([0], [segment]) if sighting.from_switch]
            if of.OFPT_ERROR in said:
                raise RunError(f"{self._name}: the board answers an entry with an error")
        if said != [self._dialect.barrier_reply]:
            raise RunError(f"{self._name}: the board does not confirm its table: {said}")

    def control(self, gaps_ns: Sequence[int], segments: Sequence[bytes]) -> list[ControlFrame]:
        """See `BenchDevice.control`."""
        wire, seen = self._wire, []
        begin = free = self._now_ns
        for gap, payload in zip(gaps_ns, segments, strict=True):
            begin = max(begin + gap, free)
            length = _on_the_wire(_HEADER_BYTES + len(payload))
            seen.append(ControlFrame(begin + wire.preamble_ns, False, length, payload))
            arrived = begin + wire.preamble_ns + wire.time_ns(length)
            free = arrived + wire.time_ns(wire.gap_bytes)
            self._arrive(arrived, payload, whole=False)
        seen += self._until(free)
        quiet = False
        while not quiet:
            more = list(self._until(self._now_ns + _QUIET_NS))
            seen += more
            quiet = not more
        return sorted(seen, key=lambda sighting: sighting.at_ns)

    def _until(self, end_ns: int) -> Iterator[ControlFrame]:
        """Let time pass, with what arrives meanwhile. Yields the board's frames with OpenFlow bytes."""
        while True:
            arrival = self._arrivals[0][0] if self._arrivals else end_ns
            due = self._board.poll_at()
            at = min(end_ns, arrival, end_ns if due is None else due)
            self._now_ns = max(self._now_ns, at)
            if self._arrivals and arrival <= at:
                _, _, data, whole = heapq.heappop(self._arrivals)
                frame = data if whole else self._segment(data)
                if not whole:
                    self._sent = (self._sent + len(data)) % _WORD
                self._board.frame(self._now_ns, _NATIVE_PORT, frame)
            else:
                self._board.advance(self._now_ns)
            for output in self._board.outputs():
                if output.kind == "frame" and output.port & _NATIVE_MASK:
                    yield from self._hear(output.at_ns, output.data)
            if at >= end_ns:
                return

    def _hear(self, departed_ns: int, frame: bytes) -> Iterator[ControlFrame]:
        """Let the controller receive a frame of the board and react to it."""
        length = _on_the_wire(len(frame))
        heard_ns = departed_ns + self._wire.preamble_ns + self._wire.time_ns(length)
        packet = dpkt.ethernet.Ethernet(frame).data
        if isinstance(packet, dpkt.arp.ARP):
            if packet.op == dpkt.arp.ARP_OP_REQUEST and packet.tpa == _ADDRESS:
                self._react(heard_ns, _arp_reply(packet))
            return
        tcp = packet.data if isinstance(packet, dpkt.ip.IP) else None
        if not isinstance(tcp, dpkt.tcp.TCP):
            return
        if tcp.flags & dpkt.tcp.TH_SYN:
            self._peer_mac, self._peer_address, self._peer_port = frame[6:12], packet.src, tcp.sport
            self._sent, self._received = 0, (tcp.seq + 1) % _WORD
            self._react(heard_ns, self._segment(b"", dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK))
            self._sent = 1
        elif tcp.data and tcp.sport == self._peer_port:
            new = tcp.seq == self._received
            if new:
                self._received = (self._received + len(tcp.data)) % _WORD
            self._react(heard_ns, self._segment(b"", dpkt.tcp.TH_ACK))
            self._greeted = True
            if new and tcp.data[1] != of.OFPT_ECHO_REQUEST:
                yield ControlFrame(departed_ns + self._wire.preamble_ns, True, length, bytes(tcp.data))

    def _react(self, at_ns: int, frame: bytes) -> None:
        on_wire = self._wire.preamble_ns + self._wire.time_ns(_on_the_wire(len(frame)))
        self._arrive(at_ns + on_wire, frame, whole=True)

    def _arrive(self, at_ns: int, data: bytes, *, whole: bool) -> None:
        heapq.heappush(self._arrivals, (at_ns, next(self._numbers), data, whole))

    def _segment(self, payload: bytes, flags: int = dpkt.tcp.TH_ACK | dpkt.tcp.TH_PUSH) -> bytes:
        tcp = dpkt.tcp.TCP(
            sport=_TCP_PORT,
            dport=self._peer_port,
            seq=self._sent,
            ack=self._received,
            flags=flags,
            win=_WINDOW,
            data=payload,
        )
        ip = dpkt.ip.IP(src=_ADDRESS, dst=self._peer_address, p=dpkt.ip.IP_PROTO_TCP, ttl=64, data=tcp)
        ip.len = len(ip)
        return _ethernet(self._peer_mac, dpkt.ethernet.ETH_TYPE_IP, bytes(ip))


def _arp_reply(request: dpkt.arp.ARP) -> bytes:
    reply = dpkt.arp.ARP(op=dpkt.arp.ARP_OP_REPLY, sha=_MAC, spa=_ADDRESS, tha=request.sha, tpa=request.spa)
    return _ethernet(request.sha, dpkt.ethernet.ETH_TYPE_ARP, bytes(reply))


def _ethernet(to: bytes, kind: int, payload: bytes) -> bytes:
    return to + _MAC + kind.to_bytes(2, "big") + payload


def _on_the_wire(kept_bytes: int) -> int:
    return max(kept_bytes + FCS_BYTES, _MIN_FRAME_BYTES)
