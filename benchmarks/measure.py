"""Run a program and measure its use of resources."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

ROOT = Path(__file__).resolve().parents[1]
"""Folder of the repository."""

LOKO = Path(sys.prefix) / "bin" / "loko"
"""The program `loko` of this Python environment."""

MeasuredRow = tuple[str, str, str]
"""Name of the measurement, its value, and its range or a remark."""

_SAMPLING_S = 0.1


class BenchmarkError(Exception):
    """A benchmark could not be carried out. The message is one line: what failed, and how to mend it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessUsage:
    """Resources used by a program and its children."""

    output: str
    wall_s: float
    cpu_s: float
    """User and system time, children included."""
    peak_memory_bytes: int
    """Largest sum of the proportional set sizes of the whole process tree, sampled every 0.1 s."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A measured value over repetitions."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return median and range of at least one value."""
        return cls(median(values), min(values), max(values))


def run(command: Sequence[str | Path | int], *, cpus: int | None = None) -> ProcessUsage:
    """Run a program to completion, on the first `cpus` cores if given.

    Raises `BenchmarkError` with the end of its output if it fails with a status other than 0 or 1 (status 1
    means that a claim does not hold, which is a result).
    """
    words = [str(word) for word in command]
    if cpus:
        cores = sorted(os.sched_getaffinity(0))[:cpus]
        words = ["taskset", "--cpu-list", ",".join(map(str, cores)), *words]
    before = time.monotonic()
    with subprocess.Popen(
        words,
        cwd=ROOT,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        memory = _MemoryWatch(process.pid)
        memory.start()
        output = process.stdout.read() if process.stdout else ""
        _, status, resources = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.monotonic() - before
    memory.join()
    if process.returncode not in (0, 1):
        last = (output.strip().splitlines() or ["no message"])[-1]
        raise BenchmarkError(f"'{' '.join(words)}' failed ({process.returncode}): {last}")
    return ProcessUsage(
        output=output,
        wall_s=wall_s,
        cpu_s=resources.ru_utime + resources.ru_stime,
        peak_memory_bytes=memory.peak_bytes,
    )


class _MemoryWatch(threading.Thread):
    """Samples the memory of a process tree until its root has ended."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self.peak_bytes = 0

    def run(self) -> None:
        while True:
            try:
                if self._root.status() == psutil.STATUS_ZOMBIE:
                    return
                tree = [self._root, *self._root.children(recursive=True)]
            except psutil.NoSuchProcess:
                return
            self.peak_bytes = max(self.peak_bytes, sum(map(_proportional_set_bytes, tree)))
            time.sleep(_SAMPLING_S)


def _proportional_set_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0
