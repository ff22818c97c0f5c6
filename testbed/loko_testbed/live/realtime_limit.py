"""Restores the machine's limit for real-time threads, whatever happens to the emulator.

The emulator lifts the limit (`kernel.sched_rt_runtime_us`) and restores it when it ends properly; if it is
killed, it cannot. The limit belongs to the whole machine, so a small process outside the tree waits for the
tree's end.
"""

from __future__ import annotations

from pathlib import Path

from loko_testbed.live.cleanup_process import CleanupProcess

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
    """The original limit, restored when all holders of `descriptors` have ended."""

    def __init__(self) -> None:
        """Start the process that waits for the tree's end, unless the limit is lifted already."""
        self._restoring: CleanupProcess | None = None
        try:
            limit = LIMIT.read_text(encoding="ascii").strip()
        except OSError:
            return
        if limit != _UNLIMITED:
            self._restoring = CleanupProcess("/bin/sh", "-c", _RESTORE, "restore", limit)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors that the tree's first process must keep open; empty if nothing is to be restored."""
        descriptor = self._restoring.descriptor if self._restoring else None
        return () if descriptor is None else (descriptor,)

    def hand_over(self) -> None:
        """Close this process's copy of the descriptor: the tree has its own."""
        if self._restoring:
            self._restoring.hand_over()

    def wait(self) -> None:
        """Wait, after the tree's end, until the limit is restored."""
        if self._restoring:
            self._restoring.wait()

    def release(self) -> None:
        """Let the waiting process outlive this one."""
        if self._restoring:
            self._restoring.release()
