"""Gives the machine its limit for real-time threads back, whatever happens to the emulator.

The emulator lifts the limit (`kernel.sched_rt_runtime_us`) and restores it when it ends properly; killed, it
cannot. The limit belongs to the whole machine, so a small process outside the tree waits for the tree's end.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

LIMIT = Path("/proc/sys/kernel/sched_rt_runtime_us")

_UNLIMITED = "-1"

# The kernel refuses as long as a real-time thread uses more; the tree's threads are gone within moments.
_RESTORE = f"""
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    echo "$1" 2>/dev/null >{LIMIT} && exit
    sleep 0.1
done
"""


class RealtimeLimit:
    """The limit as it was, restored when every holder of `descriptor` has ended."""

    def __init__(self) -> None:
        """Start the process that waits, unless there is no limit to be restored."""
        self._process: subprocess.Popen[bytes] | None = None
        self._write_end: int | None = None
        try:
            limit = LIMIT.read_text(encoding="ascii").strip()
        except OSError:
            return
        if limit == _UNLIMITED:
            return
        read_end, self._write_end = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _RESTORE, "restore", limit],
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(read_end)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the tree's first process has to hold open."""
        return () if self._write_end is None else (self._write_end,)

    def hand_over(self) -> None:
        """Leave the descriptor to the tree, which was given it."""
        if self._write_end is not None:
            os.close(self._write_end)
            self._write_end = None

    def wait(self) -> None:
        """After the tree's end: wait until the limit is restored."""
        self.hand_over()
        if self._process is not None:
            self._process.wait()

    def release(self) -> None:
        """Let the waiting process outlive this one."""
        self.hand_over()
        if self._process is not None:
            self._process.returncode = 0  # Popen must not complain that its child still runs
