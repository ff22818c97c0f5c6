"""Exclusive use of the machine: by one lab whose delays count, or by any number of relaxed ones.

Two labs would take each other's cores and spoil each other's delays, so a lab claims the machine for itself.
Relaxed labs (`CorePlan.relaxed`), whose delays nobody judges, share a claim.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from loko_testbed.live.state import create_state_folder, remove_if_unused
from loko_testbed.simulation.runner import RunError

_PATIENCE_S = 10.0
"""How long to wait for the lock: an earlier lab may just be ending."""


class MachineLock:
    """A claim on the machine, held as long as any process has its descriptor open.

    It is a lock on the folder in which labs are noted. So it needs no file of its own, the kernel releases it
    when its last holder ends, and a user who cannot open root's folder cannot keep root from claiming. (A
    bench without root has a folder of its user, and so excludes only those of the same user.)
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        """Return the descriptor that another process must keep open to hold the claim."""
        return self._descriptor

    def close(self) -> None:
        """Leave the claim to the other processes that hold it, if any."""
        os.close(self._descriptor)
        remove_if_unused()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def claim(*, relaxed: bool = False) -> MachineLock:
    """Claim the machine: for one lab alone or, if `relaxed`, together with other relaxed labs.

    Raises `RunError` if others hold it for too long, or if the folder cannot be made.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            descriptor = _locked(
                create_state_folder(),
                os.O_RDONLY | os.O_DIRECTORY,
                fcntl.LOCK_SH if relaxed else fcntl.LOCK_EX,
            )
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise RunError(
                    "another live lab runs on this machine: wait for its end, or see 'loko lab status'"
                    " (only labs that were all put up with --relaxed can be up together)"
                ) from None
            time.sleep(0.05)
            continue
        if descriptor is not None:
            return MachineLock(descriptor)


@contextmanager
def claim_name(lab: str) -> Iterator[None]:
    """Within the context, keep others from starting a lab of this name.

    Raises `RunError` if one is being started already.
    """
    descriptor = None
    while descriptor is None:
        file = create_state_folder() / f"{lab}.starting"
        try:
            descriptor = _locked(file, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)
        except BlockingIOError:
            raise RunError(f"lab {lab} is just being put up: see 'loko lab status {lab}'") from None
    try:
        yield
    finally:
        file.unlink(missing_ok=True)  # as long as it is locked
        os.close(descriptor)
        remove_if_unused()


def _locked(path: Path, flags: int, kind: int) -> int | None:
    """Open and lock a file or folder; None if it was just removed. Raises `BlockingIOError` if locked."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        # Removed and made anew meanwhile, it would be another lock.
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None
