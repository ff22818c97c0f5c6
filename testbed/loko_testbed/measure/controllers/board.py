"""One emulated board in real time, on a TCP session of its own, and when each message passed there."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

import dpkt
import switch_emulator
from os_ken.ofproto import ofproto_v1_0 as of

from loko.control.framing import segments_of, whole_messages
from loko.topology.ring import Setting
from loko_testbed.live.emulation.boards import KEPT_SESSION

_BOOTED_NS: Final = 2_500_000_000
"""Virtual time that has passed when a board is used: it needs two seconds to boot, which must not count."""
_KNOWN_PORT: Final = 1
_ASKING_PORT: Final = 2
_UNUSED_MS: Final = 50


@dataclass(slots=True)
class UnmatchedFrame:
    """A frame that no entry matches, in ns: when it came in, was reported by PACKET_IN, and was answered."""

    offered_ns: int
    reported_ns: int | None = None
    answered_ns: int | None = None
    """When the FLOW_MOD for it had arrived."""
    is_lost: bool = False


def board_settings(number: int) -> dict[str, Setting]:
    """Return the settings of the board with this number, from 0."""
    return {
        "mac": f"70:b3:d5:6d:{number >> 8:02x}:{number & 255:02x}",
        "openflow_ports": [1, 2, 3, 4],
        "native_ports": [],
        **KEPT_SESSION,
    }


class FleetBoard:
    """A switch that connects, causes PACKET_INs by frames that no entry matches, and can be restarted."""

    def __init__(self, number: int, profile: str, controller: tuple[str, int]) -> None:
        """`number` counts the boards of the fleet from 0. `profile` is a profile's name or path."""
        self.number = number
        self._profile = profile
        self._controller = controller
        self._known = b"\x0a\x4d" + number.to_bytes(2, "big") + b"\x00\x00"
        self._asking = b"\x0a\x4c" + number.to_bytes(2, "big")
        self._count = 0
        self.asked: dict[int, UnmatchedFrame] = {}
        self._waiting: deque[switch_emulator.Output] = deque()
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.began_ns: int | None = None
        """When it began to connect."""
        self.ready_ns: int | None = None
        """When the session was set up: the board sent its FEATURES_REPLY."""
        self.is_taught = False
        self.sessions = 0
        self.closed_by_controller = 0
        self.complaints: list[str] = []
        self._power_on()

    def _power_on(self) -> None:
        config = {**board_settings(self.number), "ofchecks": False}
        self._board = switch_emulator.Board(self._profile, config=config, seed=self.number)
        self._since_ns = time.monotonic_ns() - _BOOTED_NS
        self._board.advance(_BOOTED_NS)
        self._board.outputs()
        self._waiting.clear()
        self.ready_ns = None
        self.is_taught = False

    @property
    def is_ready(self) -> bool:
        """Whether the controller has set up a session with the board."""
        return self.ready_ns is not None

    def connect(self) -> None:
        """Begin to connect."""
        self.began_ns = time.monotonic_ns()
        self._tasks.append(asyncio.create_task(self._session()))

    def restart(self) -> None:
        """Restart the board as after a power loss: the session breaks, the table is empty, it reconnects."""
        self.switch_off()
        self._power_on()
        self.connect()

    def switch_off(self) -> list[asyncio.Task[None]]:
        """Abort the board's sessions. Return the tasks that end with them."""
        for task in self._tasks:
            task.cancel()
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None
        return self._tasks

    def teach(self) -> None:
        """Send a broadcast from the later frames' destination, so that the controller learns where it is."""
        self._frame(_KNOWN_PORT, self._known, b"\xff" * 6)

    def send_unmatched(self) -> UnmatchedFrame:
        """Let a frame come in from a new, unknown host to the known one."""
        key = self._count
        self._count += 1
        asked = self.asked[key] = UnmatchedFrame(time.monotonic_ns())
        self._frame(_ASKING_PORT, self._asking + key.to_bytes(2, "big"), self._known)
        return asked

    def _frame(self, port: int, source: bytes, destination: bytes) -> None:
        udp = dpkt.udp.UDP(sport=5000, dport=6000, data=bytes(18))
        udp.ulen = len(udp)
        packet = dpkt.ip.IP(
            src=b"\x0a\x00\x00\x01", dst=b"\x0a\x00\x00\x02", p=dpkt.ip.IP_PROTO_UDP, data=udp
        )
        packet.len = len(packet)
        frame = bytes(dpkt.ethernet.Ethernet(src=source, dst=destination, data=packet))
        self._board.frame(self._now(), port, frame)

    def _now(self) -> int:
        return time.monotonic_ns() - self._since_ns

    def advance(self) -> None:
        """Let the board work until now, and send what is due. Call it often."""
        now_ns = self._now()
        self._board.advance(now_ns)
        for output in self._board.outputs():
            if output.kind == "controller":
                self._waiting.append(output)
            elif output.kind == "event" and output.data not in {b"connect", b"close"}:
                self.complaints.append(output.data.decode())
            elif output.data == b"close" and self._writer is not None:
                self._writer.close()
        while self._waiting and self._waiting[0].at_ns <= now_ns:
            self._send(self._waiting.popleft().data)

    def _send(self, data: bytes) -> None:
        if self._writer is None or self._writer.is_closing():
            return
        self._writer.write(data)
        now_ns = time.monotonic_ns()
        for message in whole_messages(data)[0]:
            if message[1] == of.OFPT_FEATURES_REPLY and self.ready_ns is None:
                self.ready_ns = now_ns
            elif message[1] == of.OFPT_PACKET_IN and (asked := self._asked_in(message)) is not None:
                asked.reported_ns = asked.reported_ns or now_ns

    def _asked_in(self, message: bytes) -> UnmatchedFrame | None:
        number = re.search(re.escape(self._asking) + b"(..)", message, re.DOTALL)
        return None if number is None else self.asked.get(int.from_bytes(number[1], "big"))

    async def _session(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                reader, self._writer = await asyncio.open_connection(*self._controller)
                self.sessions += 1
                self._board.connected(self._now())
                await self._converse(reader)
                self.closed_by_controller += 1
            if self._writer is not None:
                self._writer.close()
                self._writer = None
                self._board.disconnected(self._now())
                self.ready_ns = None
                self.is_taught = False
            await asyncio.sleep(_UNUSED_MS / 1000)

    async def _converse(self, reader: asyncio.StreamReader) -> None:
        pending = b""
        while data := await reader.read(65536):
            now_ns = time.monotonic_ns()
            messages, pending = whole_messages(pending + data)
            for message in messages:
                self._heard(message, now_ns)
            for segment in segments_of(messages):
                self._board.segment(self._now(), segment)
            self.advance()

    def _heard(self, message: bytes, now_ns: int) -> None:
        if message[1] == of.OFPT_FLOW_MOD:
            asked = self._asked_in(message)
            if asked is not None and asked.answered_ns is None:
                asked.answered_ns = now_ns
        elif message[1] == of.OFPT_PACKET_OUT:
            self.is_taught = True
