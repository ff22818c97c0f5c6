"""A command that is run after the end of a confined tree, whatever ended it and whoever was killed."""

from __future__ import annotations

import os
import subprocess
from typing import Final

ENDS_BY_ITSELF: Final = "LOKO_ENDS_BY_ITSELF"
"""A variable in the environment of such a process: who ends what is left of a lab is to leave it alone."""


class Afterwards:
    """A small process outside the tree. Its command reads standard input, which ends when the tree has."""

    def __init__(self, *command: str) -> None:
        """Start it. The tree's first process has to hold `descriptor` open as long as the tree is there."""
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
        """Leave the descriptor to the tree, which was given it."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def wait(self) -> None:
        """After the tree's end: wait until the command is done."""
        self.hand_over()
        self._process.wait()

    def release(self) -> None:
        """Let the command outlive this process."""
        self.hand_over()
        self._process.returncode = 0  # Popen must not complain that its child still runs
