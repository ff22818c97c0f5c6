"""Kill every process that a test run leaves behind, even if pytest itself is killed.

This is a pytest plugin and also the program that it starts. All processes of a run inherit a mark in their
environment. The program waits until pytest has ended for any reason, and then kills all processes with the
mark.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import run_mark

from loko_testbed.live.cleanup_process import ENDS_BY_ITSELF

if TYPE_CHECKING:
    import pytest

TIMEOUT_S = 15.0
"""Time for processes that restore the machine's state; they end by themselves once their labs are killed."""


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return  # a worker belongs to its parent's run
    run = run_mark.begin()
    watcher = subprocess.Popen(
        [sys.executable, __file__, str(os.getpid()), run],
        env={name: value for name, value in os.environ.items() if name != run_mark.MARK},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is meant for pytest only
    )
    with watcher.stdout:
        watcher.stdout.readline()  # wait until it is watching
    watcher.returncode = 0  # suppresses the warning: it outlives this process


def carrying(run: str) -> Iterator[tuple[int, bool]]:
    """Yield the processes of a run, and whether each ends by itself."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = run_mark.environment_of(folder)
        except OSError:  # it has just ended, or belongs to another user
            continue
        if run in run_mark.runs_of(environment):
            yield int(folder.name), f"\0{ENDS_BY_ITSELF}=".encode() in b"\0" + environment


def sweep(run: str) -> None:
    """Kill all processes of a run; give those that end by themselves some time first."""
    deadline = time.monotonic() + TIMEOUT_S
    while left := list(carrying(run)):
        for pid, ends_by_itself in left:
            if not ends_by_itself or time.monotonic() > deadline:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        time.sleep(0.05)


def main() -> None:
    watched, run = int(sys.argv[1]), sys.argv[2]
    end = os.pidfd_open(watched)
    os.close(sys.stdout.fileno())
    select.select([end], [], [])
    sweep(run)


if __name__ == "__main__":
    main()
