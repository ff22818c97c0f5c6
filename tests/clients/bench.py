"""A board with its hosts, controlled by one controller."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from board_network import CONTROLLER_PORT, DATAPATH_ID, BoardNetwork
from programs import REST_PORT, Program
from wiretap import Kind, Message, Wiretap

from loko_testbed.instruments.network_namespace import listens
from loko_testbed.live.one_board import wait_for

START_PATIENCE_S = 90.0
"""Frameworks take a second to load, and much longer on a busy machine."""
SETTLE_S = 0.2


class Bench:
    """One controller controls one board; `asked` names the exercises to perform."""

    def __init__(
        self,
        program: Program,
        emulator: Path,
        folder: Path,
        *,
        settings: str,
        asked: frozenset[str],
        native: bool = False,
        cable: tuple[int, int] | None = None,
    ) -> None:
        self._program = program
        self._emulator = emulator
        self._folder = folder
        self._settings = settings
        self._asked = asked
        self._native = native
        self._cable = cable
        self._open = ExitStack()
        self._client: subprocess.Popen[bytes] | None = None

    def asks(self, exercise: str) -> bool:
        """Return whether to perform an exercise, so that long ones can be skipped."""
        return exercise in self._asked

    def __enter__(self) -> Self:
        try:
            self.network = self._open.enter_context(
                BoardNetwork(self._folder, native=self._native, cable=self._cable)
            )
            self.tap = self._open.enter_context(
                Wiretap(self.network.controller, CONTROLLER_PORT, self.network.controller_interface)
            )
            self._log = self._open.enter_context((self._folder / "controller.log").open("wb"))
            self.start_controller()
            self.board = self.network.switch_on(self._emulator, self._settings)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the controller and everything else."""
        self.end_controller()
        self._open.close()

    def start_controller(self) -> None:
        """Start the controller and wait until it listens."""
        command = self._program.command(self._folder, self.network.controller_address, CONTROLLER_PORT)
        self._client = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *self.network.controller.command(*command)],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        wait_for(self._listens, f"controller that listens: {self.controller_log()}", START_PATIENCE_S)

    def end_controller(self) -> None:
        """Kill the controller, as in a crash."""
        if self._client is not None:
            self._client.kill()
            self._client.wait()
            self._client = None

    def _listens(self) -> bool:
        assert self._client is not None
        assert self._client.poll() is None, f"the controller has ended: {self.controller_log()}"
        return listens(self.network.controller.pid, CONTROLLER_PORT)

    def controller_log(self) -> str:
        """Return what the controller has logged."""
        return (self._folder / "controller.log").read_text(errors="replace")

    def handshake(self) -> Message:
        """Wait until the handshake is complete; return the board's FEATURES_REPLY."""
        [features, *_] = self.tap.wait(Kind.FEATURES_REPLY, from_board=True, timeout_s=30.0)
        time.sleep(SETTLE_S)
        return features

    def packet_ins(self) -> int:
        """Return how many frames the board has sent to the controller."""
        return len(self.tap.from_board(Kind.PACKET_IN))

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Send an HTTP request to the controller; `{board}` in the path becomes the datapath id."""
        with self.network.controller.entered():
            connection = http.client.HTTPConnection(self.network.controller_address, REST_PORT, timeout=10)
            connection.connect()
        data = json.dumps(body) if body is not None else None
        connection.request(method, path.format(board=DATAPATH_ID), data)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        assert reply.status == http.HTTPStatus.OK, f"{method} {path}: {reply.status} {text}"
        return json.loads(text) if text else None
