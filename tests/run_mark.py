"""The mark by which the processes of a run of tests are known: a variable that they inherit."""

from __future__ import annotations

import os
import time

MARK = "LOKO_TEST_RUNS"
"""The variable: the runs, from the outermost to the innermost, to which a process belongs."""


def begin() -> str:
    """Mark what this process starts from now on as a run of its own, within those to which it belongs."""
    run = f"{os.getpid()}-{time.time_ns()}"
    os.environ[MARK] = " ".join(filter(None, (os.environ.get(MARK), run)))
    return run


def outermost() -> str:
    """The run that contains all others; begins one if there is none."""
    return os.environ[MARK].split()[0] if os.environ.get(MARK) else begin()


def runs_of(environment: bytes) -> list[str]:
    """The runs to which a process belongs, by its environment as the kernel shows it in /proc."""
    prefix = f"{MARK}=".encode()
    for entry in environment.split(b"\0"):
        if entry.startswith(prefix):
            return entry.removeprefix(prefix).decode(errors="replace").split()
    return []
