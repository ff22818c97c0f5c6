"""A relay between a program and a board's console: records input, injects lines, or stops responding."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import threading
import time
import tty
from collections.abc import Callable
from pathlib import Path

UNASKED = b"Controller: 10.0.1.8 connected\r\n"
"""An unsolicited line that looks as much like a reply as possible."""


class ConsoleRelay:
    """A console in front of a board's, at the symbolic link `console`; recreated when the board restarts."""

    def __init__(self, board: Path, console: Path) -> None:
        self.console = console
        self.typed = bytearray()
        """All keys typed so far, across restarts."""
        self.lines_between = 0
        """Inject `UNASKED` after this many lines from the board; 0 disables it."""
        self.deaf_after = b""
        """Once these bytes have been typed, the board receives nothing more."""
        self.on_typed: Callable[[bytes], None] = lambda typed: None
        self._board = board
        self._lines = 0
        self._met = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.wait_for_next(0)

    def commands(self) -> list[str]:
        """Return the lines that were executed, which means typed and not cancelled."""
        return [line.strip(b"\x7f\x18").decode() for line in bytes(self.typed).split(b"\r")[:-1]]

    @property
    def met(self) -> int:
        """How many boards it has connected to so far; each restart adds one."""
        return self._met

    def wait_for_next(self, met: int) -> None:
        """Wait until it has connected to more than `met` boards; until then the console is the old one."""
        self._wait_until(lambda: self._met > met and self.console.is_symlink())

    def unplug(self) -> None:
        self._ends.set()
        self._thread.join(20)
        self.console.unlink(missing_ok=True)

    @staticmethod
    def _wait_until(holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < end, "the relay has no console"
            time.sleep(0.01)

    def _run(self) -> None:
        last = None
        while not self._ends.wait(0.02):
            with contextlib.suppress(OSError):
                link = self._board.lstat()
                # The link of a killed board may point to a pseudo-terminal that belongs to another program by
                # now.
                if (made := (link.st_ino, link.st_mtime_ns)) == last:
                    continue
                device = os.open(self._board, os.O_RDWR | os.O_NOCTTY)
                last = made
                try:
                    self._relay(device)
                finally:
                    os.close(device)

    def _relay(self, device: int) -> None:
        near, far = pty.openpty()
        tty.setraw(far)
        self.console.unlink(missing_ok=True)
        self.console.symlink_to(os.ttyname(far))
        self._met += 1
        try:
            while not self._ends.is_set():
                for ready in select.select([near, device], [], [], 0.02)[0]:
                    data = os.read(ready, 4096)
                    if not data:
                        return
                    if ready == near:
                        self._type(data, device)
                    elif not self._deaf:
                        os.write(near, self._with_unasked(data))
        finally:
            self.console.unlink(missing_ok=True)
            os.close(near)
            os.close(far)

    @property
    def _deaf(self) -> bool:
        return bool(self.deaf_after) and self.deaf_after in self.typed

    def _type(self, data: bytes, device: int) -> None:
        if self._deaf:
            return
        for key in data:
            self.typed.append(key)
            os.write(device, bytes([key]))
            self.on_typed(bytes(self.typed))

    def _with_unasked(self, data: bytes) -> bytes:
        if not self.lines_between:
            return data
        shown = bytearray()
        for byte in data:
            shown.append(byte)
            if byte == ord("\n"):
                self._lines += 1
                if self._lines % self.lines_between == 0:
                    shown += UNASKED
        if data.endswith(b"# ") and self._lines % 2:  # also after a prompt
            shown += b"\r\n" + UNASKED
        return bytes(shown)
