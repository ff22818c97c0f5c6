"""A board, or a whole lab, for tests of other people's controllers, without root.

`loko_testbed.live.emulation.pytest_plugin` offers them as fixtures.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from threading import Event, Thread
from typing import Final, Protocol, Self, TypeVar

import switch_emulator

from loko.control.framing import SEGMENT_BYTES
from loko.control.messages import features_request, hello
from loko.topology.lab import Lab
from loko_testbed.live.emulation.traffic import TrafficLab

_BOOTED_NS: Final = 3_000_000_000
_TRIP_NS: Final = 1_000_000
_ANSWER_NS: Final = 10_000_000
"""Enough time for any answer and any frame: a board with a full table takes 2 ms."""
_ECHO_REQUEST: Final = 2
_ECHO_REPLY: Final = bytes.fromhex("01030008")
_PORTS: Final = range(1, 5)
_STEP_NS: Final = 500_000_000
_SIGNALS: Final = frozenset({b"connect", b"close", b"attach", b"detach", b"eeprom"})
"""Events that mean nothing to a test."""
_PATIENCE_S: Final = 10.0
_PAUSE_S: Final = 0.01
_Value = TypeVar("_Value")


class SerializableMessage(Protocol):
    """A message of os-ken or Ryu."""

    buf: bytearray | None

    def serialize(self) -> None:
        """Fill `buf`."""


class DrivenBoard:
    """A Zodiac FX in virtual time, with an OpenFlow 1.0 session that the test controls.

    Nothing runs in the background: time passes only in these methods. The board's echo requests are answered.
    """

    def __init__(self, **config: object) -> None:
        """Power up a board with these settings (`switch_emulator`), and open its session."""
        self.board = switch_emulator.Board(config=config)
        self.now_ns = _BOOTED_NS
        self.messages: list[bytes] = []
        """All messages that the board has sent to the controller, such as PACKET_IN, except echo requests."""
        self.events: list[str] = []
        """Requests that the board cannot carry out, and frames that it ignores, with the reasons."""
        self.left: dict[int, bytes] = {}
        """The frames that left for the last frame or message, by port."""
        self.board.advance(self.now_ns)
        self.board.outputs()
        self.board.connected(self.now_ns)
        for data in (hello(1), features_request(2)):
            self.wait(_TRIP_NS)
            self.board.segment(self.now_ns, data)
        self.wait(_TRIP_NS)
        self.messages.clear()

    def send(self, message: bytes | SerializableMessage) -> list[bytes]:
        """Send one OpenFlow message in one TCP segment. Return what the board replies within 10 ms.

        Raises `ValueError` if the message exceeds the 536 bytes that a segment to the board holds.
        """
        if not isinstance(message, bytes):
            message.serialize()
            message = bytes(message.buf or b"")
        if len(message) > SEGMENT_BYTES:
            raise ValueError(
                f"message: has {len(message)} bytes; a segment to the board holds {SEGMENT_BYTES}"
            )
        self.board.segment(self.now_ns, message)
        self.left = {}
        before = len(self.messages)
        self.wait(_ANSWER_NS)
        return self.messages[before:]

    def frame(self, port: int, data: bytes) -> dict[int, bytes]:
        """Let a frame, without FCS, arrive at a port 1 .. 4. Return the frame that leaves, by port."""
        self.board.frame(self.now_ns, port, data)
        self.left = {}
        self.wait(_ANSWER_NS)
        return self.left

    def flows(self) -> list[switch_emulator.Flow]:
        """Return the flow table, in the board's own order."""
        return self.board.flows()

    def wait(self, duration_ns: int) -> None:
        """Let time pass."""
        end_ns = self.now_ns + duration_ns
        while self.now_ns < end_ns:  # in steps, so that echo requests are answered in time
            self.now_ns = min(self.now_ns + _STEP_NS, end_ns)
            self.board.advance(self.now_ns)
            self._take(self.board.outputs())

    def _take(self, outputs: Iterable[switch_emulator.Output]) -> None:
        for output in outputs:
            if output.kind == "frame":
                self.left.update({port: output.data for port in _PORTS if output.port >> (port - 1) & 1})
            elif output.kind == "event" and output.data not in _SIGNALS:
                self.events.append(output.data.decode())
            elif output.kind == "controller" and output.data[1] == _ECHO_REQUEST:
                self.board.segment(self.now_ns, _ECHO_REPLY + output.data[4:8])
            elif output.kind == "controller":
                self.messages.append(output.data)


class RunningNetwork:
    """The boards and hosts of a lab in real time; the boards connect to a controller over TCP.

    They run in a thread of this process while the context is entered.
    """

    def __init__(self, lab: Lab, controller: tuple[str, int]) -> None:
        """Prepare the network. `controller` is an address and a TCP port.

        Raises `InputError` if a switch is no Zodiac FX.
        """
        self._lab = TrafficLab(lab, controller, free_control=False)
        self._loop = asyncio.new_event_loop()
        self._begun = Event()
        self._thread = Thread(target=self._live, daemon=True, name=f"lab {lab.name}")
        self._living: asyncio.Task[None] | None = None

    def flows(self, switch: str) -> list[switch_emulator.Flow]:
        """Return the flow table of a switch, in the switch's own order."""
        return self._run_in_loop(lambda: self._lab.cabled.flows(switch))

    def send(self, host: str, frame: bytes) -> None:
        """Let a host send a frame, without FCS."""
        self._run_in_loop(lambda: self._lab.cabled.send(host, frame))

    def received(self, host: str) -> list[bytes]:
        """Take the frames that have reached a host since the last call; at most the last thousand."""
        return self._run_in_loop(lambda: self._lab.cabled.take_frames(host))

    def wait_until(self, holds: Callable[[], object], *, timeout_s: float = _PATIENCE_S) -> None:
        """Wait until `holds` returns something true. Raises `TimeoutError` if it does not in time."""
        end_s = time.monotonic() + timeout_s
        while not holds():
            if time.monotonic() > end_s:
                raise TimeoutError(f"waited {timeout_s:g} s in vain; does the controller listen, and answer?")
            time.sleep(_PAUSE_S)

    def __enter__(self) -> Self:
        self._thread.start()
        self._begun.wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._living is not None:
            self._loop.call_soon_threadsafe(self._living.cancel)
        self._thread.join()

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._living = self._loop.create_task(self._lab.run(report=lambda _: None))
        self._loop.call_soon(self._begun.set)
        try:
            self._loop.run_until_complete(self._living)
        except asyncio.CancelledError:
            pass
        finally:
            others = asyncio.all_tasks(self._loop)
            for task in others:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*others, return_exceptions=True))
            self._loop.close()

    def _run_in_loop(self, action: Callable[[], _Value]) -> _Value:
        """Do something in the thread that owns the boards, and return its result."""

        async def do() -> _Value:
            return action()

        return asyncio.run_coroutine_threadsafe(do(), self._loop).result()
