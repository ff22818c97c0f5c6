"""Shared by tests of the live lab: the admitted traffic of figure 17, and traces that a lab might leave."""

from __future__ import annotations

import contextlib
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from loko.document import LABS
from loko_testbed.live.permission import obstacle
from loko_testbed.live.realtime_limit import LIMIT
from loko_testbed.live.state import state_folder
from loko_testbed.reproduce.figure_types.experiments import load_experiment
from loko_testbed.reproduce.figure_types.traffic.document import Sweep
from loko_testbed.reproduce.figure_types.traffic.setting import prepare, traffic
from loko_testbed.simulation.senders import SIMPLE

needs_namespaces = pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))

GONE_TIMEOUT_S = 60


def admitted():
    """Return the setting and simple senders of figure 17a at m_r = m_b = 1: fifth-rate, N = 2."""
    experiment = load_experiment(LABS / "two-switch" / "experiments" / "fig17a.yml")
    assert isinstance(experiment, Sweep)
    setting = prepare(experiment)
    return setting, traffic(setting, 1, SIMPLE)


@dataclass(frozen=True)
class Machine:
    """The state of the machine outside the lab, wherever a lab might leave something behind."""

    interfaces: str
    named_namespaces: str
    shared_memory: tuple[str, ...]
    state_files: tuple[str, ...]
    realtime_limit: str

    @classmethod
    def now(cls) -> Machine:
        return cls(
            interfaces=_output("ip", "-brief", "link"),
            named_namespaces=_output("ip", "netns", "list"),
            # Labs create no multiprocessing semaphores; those come and go with other programs.
            shared_memory=tuple(
                sorted(path.name for path in Path("/dev/shm").iterdir() if not path.match("sem.mp-*"))
            ),
            state_files=tuple(sorted(path.name for path in state_folder().glob("*"))),
            realtime_limit=LIMIT.read_text().strip(),
        )


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wait_until(condition, what: str, timeout_s: float = GONE_TIMEOUT_S) -> None:
    """Wait for a condition; fail if it does not hold in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)


def descendants(pid: int) -> list[psutil.Process]:
    """Return all descendants of a process. psutil recognises a later process that reuses an ID."""
    return psutil.Process(pid).children(recursive=True)


def named(pid: int) -> list[tuple[str, psutil.Process]]:
    """Return the descendants of a process with their names, without those that have just ended."""
    programs = []
    for process in descendants(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            programs.append((process.name(), process))
    return programs


def left(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that are still running."""
    running = []
    for process in processes:
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.is_running():
                running.append(process)
        except psutil.NoSuchProcess:
            continue
    return running
