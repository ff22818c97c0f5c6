"""Runs a command after the end of a confined tree, however the tree ends and whichever process is killed."""

from __future__ import annotations

import os
import subprocess
from typing import Final

ENDS_BY_ITSELF: Final = "LOKO_ENDS_BY_ITSELF"
"""An environment variable of such a process: who ends leftover processes of a lab must spare this one."""


class CleanupProcess:
    """A small process outside the tree. Its command reads standard input, which ends with the tree."""

    def __init__(self, *command: str) -> None:
        """Start the process. The tree's first process must keep `descriptor` open while the tree exists."""
        read_end, write_end = os.pipe()
        self.descriptor: int | None = write_end
        try:
            self._process = subprocess.Popen(
                command,
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, ENDS_BY_ITSELF: "1"},
            )
        finally:
            os.close(read_end)

    def hand_over(self) -> None:
        """Close this process's copy of the descriptor: the tree has its own."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def wait(self) -> None:
        """Wait, after the tree's end, until the command is done."""
        self.hand_over()
        self._process.wait()

    def release(self) -> None:
        """Let the command outlive this process."""
        self.hand_over()
        self._process.returncode = 0  # Popen must not complain that its child still runs
