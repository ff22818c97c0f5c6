"""A program that runs as long as the lab does, with a log and a file that says it is ready."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from loko_testbed.instruments.programs import standstill, tail
from loko_testbed.instruments.timeouts import scaled_timeout
from loko_testbed.simulation.runner import RunError

_POLL_S = 0.001


def version_of(file: Path) -> tuple[int, int] | None:
    """Return a token that changes whenever the file is replaced as a whole; None if there is no file."""
    try:
        state = file.stat()
    except FileNotFoundError:
        return None
    return state.st_ino, state.st_mtime_ns


class Daemon:
    """A running program. Every failure of it is raised as a `RunError` with the end of its log."""

    def __init__(self, name: str, command: Sequence[str], *, log: Path, ready: Path) -> None:
        """Start the program, which makes the file `ready` when it is ready."""
        self.name = name
        self._log = log
        self._ready = ready
        with log.open("wb") as output:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self._process.pid

    def readiness(self) -> tuple[int, int] | None:
        """Return a token that changes each time the program becomes ready; None while it is not."""
        return version_of(self._ready)

    def check(self) -> None:
        """Raise `RunError` if the program has ended."""
        if ended := self.end_reason():
            raise RunError(ended)

    def end_reason(self) -> str | None:
        """Return in words that the program has ended, with its last words; None while it runs."""
        status = self._process.poll()
        return None if status is None else f"{self.name} ended (exit status {status}): {tail(self._log)}"

    def signal(self, number: int) -> None:
        """Send a signal to the program. Raises `RunError` if it has ended."""
        self.check()
        self._process.send_signal(number)

    def stop(self, timeout_s: float) -> None:
        """Terminate the program, so that it can restore what it changed; kill it if that takes longer."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(scaled_timeout(timeout_s))
        self.end()

    def end(self) -> None:
        """End the program at once and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def wait_ready(self, timeout_s: float) -> None:
        """Wait until the program is ready. Raises `RunError` if it ends or takes too long."""
        self.wait_until(self._ready.exists, timeout_s, "is not ready")

    def wait_until(self, condition: Callable[[], bool], timeout_s: float, complaint: str) -> None:
        """Wait for a condition. Raises `RunError` with the complaint if the program ends or is late."""
        timeout_s = scaled_timeout(timeout_s)
        deadline = time.monotonic() + timeout_s
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise RunError(
                    f"{self.name} {complaint} after {timeout_s:g} s: {standstill(self._process, self._log)}"
                )
            time.sleep(_POLL_S)
