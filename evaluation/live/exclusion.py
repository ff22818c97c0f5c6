"""One live lab at a time on a machine: two would take each other's cores and spoil both's delays."""

from __future__ import annotations

import fcntl
import os
import time
from types import TracebackType
from typing import Self

from evaluation.live.state import made, remove_if_unused
from evaluation.runner import RunError

_PATIENCE_S = 10.0
"""An earlier lab may just be ending."""


class MachineLock:
    """The machine, claimed as long as any process has this descriptor open.

    It is a lock on the folder in which labs are noted: no file of its own, the kernel frees it when its last
    holder has ended, and who cannot open root's folder cannot keep root from claiming. (A bench without root
    has a folder of its user, and so excludes only those of the same user.)
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        """What another process has to hold open."""
        return self._descriptor

    def close(self) -> None:
        """Leave the claim to the other processes that hold it, if any."""
        os.close(self._descriptor)
        remove_if_unused()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def claim() -> MachineLock:
    """Claim the machine. Raises `RunError`, also where the folder cannot be made."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        folder = made()
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # just removed by another
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Removed and made anew meanwhile, it would be another lock.
            if os.path.samestat(os.fstat(descriptor), folder.stat()):
                return MachineLock(descriptor)
        except FileNotFoundError:
            pass
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise RunError(
                    "another live lab runs on this machine: wait for its end, or see 'loko lab status'"
                ) from None
        os.close(descriptor)
        time.sleep(0.05)
