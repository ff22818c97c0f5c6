"""Emulated boards of a lab in real time, without root: control plane only, each with its own connection.

    python -m evaluation.emulation two-switch --controller 127.0.0.1:6633

For teaching, for trying things out and for tests: nothing is cabled between the boards. `loko lab up` has
labs that carry traffic.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Annotated, Final

import switch_emulator
import typer
import uvloop

from loko.commands import wrong_input_ends
from loko.document import PROFILES
from loko.lab import Lab, load_lab

SEGMENT_BYTES: Final = 536
_HEADER_BYTES: Final = 8
_IDLE_S: Final = 0.05
_AHEAD_NS: Final = 50_000
"""A board with work to do runs ahead of the clock by such steps until it has answered."""
_MOST_AHEAD_NS: Final = 20_000_000


class EmulatedBoard:
    """One board. It connects, is disconnected and connects again as the real one does."""

    def __init__(self, name: str, board: switch_emulator.Board, controller: tuple[str, int]) -> None:
        self._name = name
        self._board = board
        self._controller = controller
        self._began_ns = time.monotonic_ns()
        self._now_ns = 0
        self._writer: asyncio.StreamWriter | None = None
        self._connecting: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Live until cancelled."""
        while True:
            self._advance(0)
            await asyncio.sleep(_IDLE_S)

    def _clock(self) -> int:
        self._now_ns = max(self._now_ns, time.monotonic_ns() - self._began_ns)
        return self._now_ns

    def _advance(self, ahead_ns: int) -> bool:
        """Let time pass; whether the board has said something."""
        self._now_ns = self._clock() + ahead_ns
        self._board.advance(self._now_ns)
        spoke = False
        for output in self._board.outputs():
            if output.kind == "controller" and self._writer is not None:
                self._writer.write(output.data)
                spoke = True
            elif output.kind == "event":
                self._event(output.data)
        return spoke

    def _event(self, data: bytes) -> None:
        if data == b"connect":
            if self._connecting is None:
                self._connecting = asyncio.create_task(self._connect())
        elif data == b"close":
            self._hang_up()
        else:
            print(f"{self._name}: {data.decode()}", file=sys.stderr)

    async def _connect(self) -> None:
        try:
            reader, writer = await asyncio.open_connection(*self._controller, limit=SEGMENT_BYTES * 4)
        except OSError:
            self._connecting = None
            return  # the board tries again
        self._hang_up()
        self._writer = writer
        self._board.connected(self._clock())
        self._connecting = None
        self._advance(_AHEAD_NS)
        try:
            await self._converse(reader, writer)
        finally:
            if self._writer is writer:
                self._hang_up()
                self._board.disconnected(self._clock())

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pending = b""
        with contextlib.suppress(ConnectionError):
            while self._writer is writer and (data := await reader.read(4 * SEGMENT_BYTES)):
                segment, pending = _whole_messages(pending + data)
                if not segment:
                    continue
                self._board.segment(self._clock(), segment)
                for _ in range(_MOST_AHEAD_NS // _AHEAD_NS):
                    if self._advance(_AHEAD_NS):
                        break
                await writer.drain()

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _whole_messages(data: bytes) -> tuple[bytes, bytes]:
    """The whole messages at the beginning, as one segment, and the rest."""
    at = 0
    while len(data) - at >= _HEADER_BYTES:
        end = at + max(int.from_bytes(data[at + 2 : at + 4], "big"), _HEADER_BYTES)
        if end > len(data) or (at > 0 and end > SEGMENT_BYTES):
            break
        at = end
    return data[:at], data[at:]


def free_of_control_cost(profile: str, folder: Path) -> str:
    """A copy of a profile whose control plane costs nothing: its path."""
    text = (PROFILES / f"{profile}.toml").read_text(encoding="utf-8")
    lines, section = [], ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip()
        if section == "[cpu.control]" and "value = " in line:
            name = line.partition(" = ")[0]
            lines.append(f'{name} = {{ value = 0, source = "assumption", note = "switched off" }}')
        else:
            lines.append(line)
    path = folder / f"{profile}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tomllib.loads(path.read_text(encoding="utf-8"))
    return str(path)


async def _run(lab: Lab, controller: tuple[str, int], folder: Path | None) -> None:
    boards = []
    for number, (name, switch) in enumerate(lab.switches.items()):
        profile = switch.profile.name
        if folder is not None:
            profile = free_of_control_cost(profile, folder)
        config = {**switch.config, "control": "session"}
        boards.append(
            EmulatedBoard(name, switch_emulator.Board(profile, config=config, seed=number), controller)
        )
    tasks = [asyncio.create_task(board.run()) for board in boards]
    tasks.append(asyncio.create_task(_until_alone()))
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def _until_alone() -> None:
    """Wait until who started this has ended, which closes the standard input."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


def main(
    lab: Annotated[str, typer.Argument(help="Name or path of a lab.")],
    *,
    controller: Annotated[str, typer.Option(help="Address and TCP port.")] = "127.0.0.1:6633",
    free_control: Annotated[
        bool, typer.Option("--free-control", help="Let messages of the controller cost no time.")
    ] = False,
) -> None:
    """Run the boards of a lab until the standard input is closed."""
    host, _, port = controller.rpartition(":")
    with wrong_input_ends(), tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_run(load_lab(lab), (host, int(port)), Path(folder) if free_control else None))


if __name__ == "__main__":
    typer.run(main)
