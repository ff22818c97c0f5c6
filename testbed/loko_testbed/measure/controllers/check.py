"""A controller author's check as a program of its own, beside emulated boards if it wants them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import switch_emulator

from loko.document import InputError
from loko_testbed.live.emulation.boards import FreeRunningBoard, run_board
from loko_testbed.measure.controllers.board import board_settings
from loko_testbed.simulation.quirks import VARIABLE, Quirks


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerCheck:
    """A command that passes if it ends with status 0 in time."""

    command: tuple[str, ...]
    timeout_s: float
    controller: tuple[str, int] | None
    """Where boards connect while it runs; None: it makes its own, for example by the fixtures for pytest."""
    boards: int
    openflow_version: int
    """Wire version of the boards; 0: as the controller asks."""

    async def passes(self, quirks: Quirks) -> bool:
        """Run it against boards with this behaviour. It and all that it has started have ended afterwards.

        Raises `InputError` if there is no such program.
        """
        async with self._boards(quirks):
            try:
                process = await asyncio.create_subprocess_exec(
                    *self.command,
                    env=os.environ | {VARIABLE: json.dumps(quirks)},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                raise InputError(f"{self.command[0]}: {error.strerror}; give a program to run") from None
            try:
                async with asyncio.timeout(self.timeout_s):
                    return await process.wait() == 0
            except TimeoutError:
                return False
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()

    @asynccontextmanager
    async def _boards(self, quirks: Quirks) -> AsyncIterator[None]:
        """Let fresh boards connect, and connect again, while the context lasts."""
        tasks = []
        if self.controller is not None:
            for number in range(self.boards):
                run = run_board(
                    f"board {number}", self._board(number, quirks), self.controller, tell=lambda _: None
                )
                tasks.append(asyncio.create_task(run))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _board(self, number: int, quirks: Quirks) -> FreeRunningBoard:
        config = {
            **board_settings(number),
            "openflow_version": self.openflow_version,
            "quirks": quirks,
        }
        return FreeRunningBoard(switch_emulator.Board(config=config, seed=number), is_booted=True)


def describe_quirks(quirks: Quirks, tried: Sequence[str]) -> str:
    """Return a setting in a few words for the progress; `tried` are all names."""
    match quirks:
        case {"without": names} if len(names) > len(tried) / 2:
            return f"with only {', '.join(name for name in tried if name not in names)}"
        case {"without": names}:
            return f"without {', '.join(names)}"
    return {"firmware": "with all quirks", "spec": "without quirks"}[str(quirks)]
