"""The emulated board with `quirks = "spec"`, driven as the reference is: a step, then what came of it."""

from __future__ import annotations

from open_vswitch import ECHO_REQUEST, HELLO, PORTS
from switch_emulator import Board

from loko.control.framing import framed

_STEP_NS = 20_000_000
"""Longer than the board works on any message or frame."""
_FEATURES_REQUEST = 5


class EmulatedSwitch:
    """A board in virtual time, in a session of OpenFlow `version` (the number on the wire)."""

    def __init__(self, version: int) -> None:
        self._board = Board(
            config={
                "quirks": "spec",
                "ofchecks": False,
                "openflow_version": version,
                "loop_phase_ns": 0,
                "ethertype_filter": False,
            }
        )
        self._now_ns = 0
        self._departures: list[tuple[int, bytes]] = []
        self._board.connected(0)
        self.send(framed(version, HELLO, 1))
        self.send(framed(version, _FEATURES_REQUEST, 2))

    def send(self, message: bytes) -> list[bytes]:
        """Send a message; return what came of it."""
        self._board.segment(self._now_ns, message)
        return self._settle()

    def frame(self, port: int, frame: bytes) -> list[bytes]:
        """Let a frame come in by a port; return what the controller gets of it."""
        self._board.frame(self._now_ns, port, frame)
        return self._settle()

    def _settle(self) -> list[bytes]:
        self._now_ns += _STEP_NS
        self._board.advance(self._now_ns)
        came = []
        for output in self._board.outputs():
            if output.kind == "frame":
                self._departures += [(port, output.data) for port in PORTS if output.port >> port - 1 & 1]
            elif output.kind == "controller" and output.data[1] not in (HELLO, ECHO_REQUEST):
                came.append(output.data)
        return came

    def departures(self) -> list[tuple[int, bytes]]:
        """Return the frames that have left since the last call: port and bytes, by ports."""
        left, self._departures = sorted(self._departures, key=lambda departure: departure[0]), []
        return left
