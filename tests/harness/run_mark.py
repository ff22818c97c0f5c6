"""The mark that identifies the processes of a test run: an environment variable that they inherit."""

from __future__ import annotations

import os
import time
from pathlib import Path

MARK = "LOKO_TEST_RUNS"
"""The variable: the runs that a process belongs to, from the outermost to the innermost."""
# Indices of fields in /proc/PID/stat after the state (proc_pid_stat(5)).
_FLAGS_AT, _ENVIRONMENT_ENDS_AT = 5, 47
_PF_KTHREAD = 0x0020_0000


def begin() -> str:
    """Mark everything that this process starts from now on as a new run, nested in those it belongs to."""
    run = f"{os.getpid()}-{time.time_ns()}"
    os.environ[MARK] = " ".join(filter(None, (os.environ.get(MARK), run)))
    return run


def outermost() -> str:
    """Return the outermost run; begin one if there is none."""
    return os.environ[MARK].split()[0] if os.environ.get(MARK) else begin()


def runs_of(environment: bytes) -> list[str]:
    """Return the runs that a process belongs to, given its environment as read from /proc."""
    prefix = f"{MARK}=".encode()
    for entry in environment.split(b"\0"):
        if entry.startswith(prefix):
            return entry.removeprefix(prefix).decode(errors="replace").split()
    return []


def environment_of(process: Path) -> bytes:
    """Return a process's environment, given its folder in /proc. Raises `OSError` if ended or not accessible.

    While exec replaces a program, the environment reads as empty; then this waits for the new program's.
    """
    environment = (process / "environ").read_bytes()
    if environment:
        return environment
    while _is_being_replaced(process):
        time.sleep(0.001)
    return (process / "environ").read_bytes()


def _is_being_replaced(process: Path) -> bool:
    state, *fields = (process / "stat").read_text().rpartition(")")[2].split()
    is_gone, is_kernels = state in "ZX", int(fields[_FLAGS_AT]) & _PF_KTHREAD
    return not is_gone and not is_kernels and fields[_ENVIRONMENT_ENDS_AT] == "0"
