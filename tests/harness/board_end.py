"""An emulated board that talks to a driver in virtual time, segment by segment."""

from __future__ import annotations

from collections.abc import Callable

import switch_emulator

from loko.control.driver import Driver, Segment
from loko.control.versions import CODECS, WIRE_VERSIONS
from loko.switch_model.scenario import OpenFlow

TRIP_NS = 1_000_000
HELLO, FEATURES_REQUEST = bytes.fromhex("00000800000001"), bytes.fromhex("05000800000002")
"""The bytes that follow the version byte."""
PORTS_REQUEST = bytes.fromhex("0412001000000003 000d000000000000")
ECHO_REQUEST, ECHO_REPLY, PACKET_IN = 2, 3, 10


class BoardEnd:
    """A board that connects. This class plays the framework's part of the OpenFlow session.

    `is_open` becomes false when the board closes its connection. `events` collects the events that name a
    quirk. `asked` counts the echo requests that the board sends.
    """

    def __init__(
        self,
        config: dict[str, object] | None = None,
        *,
        start_ns: int = 3_000_000_000,
        openflow: OpenFlow = OpenFlow.V1_0,
    ) -> None:
        self.board = switch_emulator.Board(config=config or {})
        self.openflow = openflow
        self._version = bytes([WIRE_VERSIONS[openflow]])
        self.now_ns = start_ns
        self.is_open = False
        self.events: list[str] = []
        self.sent: list[bytes] = []
        self.frames: list[switch_emulator.Output] = []
        self.packet_ins = 0
        self.replies_at_once = 0
        self.asked = 0

    def open(self) -> list[bytes]:
        """Connect. Return the messages of the handshake, of which some are for the driver as well."""
        self.board.connected(self.now_ns)
        self.is_open = True
        messages = self.wait(TRIP_NS)
        handshake = [self._version + HELLO, self._version + FEATURES_REQUEST]
        if self.openflow is OpenFlow.V1_3:  # as the framework does
            handshake.append(PORTS_REQUEST)
        for data in handshake:
            self.board.segment(self.now_ns, data)
            messages += self.wait(TRIP_NS)
        return messages

    def close(self) -> None:
        if self.is_open:
            self.board.disconnected(self.now_ns)
            self.is_open = False
            self.wait(TRIP_NS)

    def send(self, data: bytes) -> None:
        assert len(data) <= 536
        self.sent.append(data)
        self.board.segment(self.now_ns, data)

    def wait(self, duration_ns: int) -> list[bytes]:
        """Let time pass, answer the board's echo requests, and return the messages for the driver."""
        self.now_ns += duration_ns
        self.board.advance(self.now_ns)
        messages = []
        for output in self.board.outputs():
            if output.kind == "frame":
                self.frames.append(output)
            elif output.kind == "controller":
                self.packet_ins += output.data[1] == PACKET_IN
                if output.data[1] == ECHO_REQUEST:
                    self.asked += 1
                    self.board.segment(self.now_ns, self._version + bytes([ECHO_REPLY]) + output.data[2:8])
                else:
                    messages.append(output.data)
            elif output.kind == "event":
                if output.data == b"close":
                    self.is_open = False
                elif output.data != b"connect":
                    self.events.append(output.data.decode())
        return messages


class Pair:
    """A driver, its board and the messages between them."""

    def __init__(self, driver: Driver, end: BoardEnd) -> None:
        self.driver, self.end = driver, end
        self.wire = CODECS[end.openflow]
        self.notices: list[object] = []

    def connect(self) -> None:
        self.end.open()
        self._carry(self.driver.connected(self.end.now_ns))

    def reconnect(self) -> None:
        self.end.close()
        self.driver.disconnected()
        self.end.wait(2_000_000_000)
        self.connect()

    def settle(self, done: Callable[[], bool] | None = None, *, most: int = 400) -> None:
        """Exchange messages until `done()` holds or, by default, until the driver's table is complete."""
        for _ in range(most):
            if (done or (lambda: self.driver.complete))():
                return
            self.step()
        raise AssertionError(f"not settled: {self.driver.phase}, {self.notices[-5:]}, {self.end.events[-3:]}")

    def run(self, duration_ns: int, step_ns: int = 250_000_000) -> None:
        for _ in range(duration_ns // step_ns):
            self.step(step_ns)

    def step(self, duration_ns: int = TRIP_NS) -> None:
        self._carry(self.driver.poll(self.end.now_ns))
        for message in self.end.wait(duration_ns):
            if (reply := self.wire.decode(message)) is not None:
                self._carry(self.driver.reply(self.end.now_ns, reply))

    def _carry(self, segments: list[Segment]) -> None:
        assert len(segments) <= 1
        self.notices += self.driver.notices()
        for requests in segments:
            self.end.send(self.wire.segment(requests))
