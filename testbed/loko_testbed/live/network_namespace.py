"""Make a network namespace, and run code in one."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from loko_testbed.live.programs import require
from loko_testbed.simulation.runner import RunError

_CLONE_NEWNET: Final = 0x4000_0000


def namespace_of(pid: int) -> Path:
    """Return the file of a process's network namespace; it exists as long as the process lives."""
    return Path(f"/proc/{pid}/ns/net")


@contextmanager
def another_namespace() -> Iterator[int]:
    """Make a network namespace, and yield the pid of the process that holds it.

    The kernel ends that process when this one ends, however that happens, and with it the namespace. Raises
    `RunError`.
    """
    dying = [require("setpriv"), "--pdeathsig", "KILL", "--"]
    command = [*dying, require("unshare"), "--net", "sh", "-c", "echo there; exec sleep infinity"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            if holder.stdout is None or not holder.stdout.readline():
                raise RunError("the kernel refuses a network namespace: run it as root")
            yield holder.pid
        finally:
            holder.kill()


@contextmanager
def inside(namespace: Path) -> Iterator[None]:
    """Run the context's code in a network namespace, given by its file. Sockets made there stay there.

    Raises `RunError`.
    """
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        there = os.open(namespace, os.O_RDONLY)
        try:
            _enter(there)
            try:
                yield
            finally:
                _enter(here)
        finally:
            os.close(there)
    finally:
        os.close(here)


def _enter(descriptor: int) -> None:
    """Move this thread into a network namespace (Python has `os.setns` from 3.12 on)."""
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
        raise RunError(f"cannot enter a network namespace: {os.strerror(ctypes.get_errno())}")
