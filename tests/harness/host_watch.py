"""A process that records what kept the machine from running the tests, and reports it on request.

It records two things. A *gap*: a core did not wake a real-time thread when it was due, for example because a
hypervisor gave the core to another guest. If the thread did wake but had to wait for a thread of higher
priority, that is not a gap: such threads belong to the tests themselves or count as foreign work. *Foreign
work*: processor time used by programs that do not belong to the tests, or stolen by the hypervisor.

Each line on standard input is a request; the reply is a line of JSON, an `Answer`. The process ends when its
standard input is closed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, TextIO

import run_mark

GAP_NS = 10_000_000
"""Shorter gaps are not reported. A polling emulator gives up its core once a millisecond, and records in its
own journal which packets a shorter stall affected."""
_PERIOD_NS = 5_000_000
_MOST_CORES = 8
_WINDOW_NS = 500_000_000
"""Foreign work is not reported over shorter times, as the kernel counts processor time in steps of 10 ms."""
_SAMPLE_S = 1.0
_KEPT_SAMPLES = 3600
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Window:
    """Foreign work during one period of time."""

    duration_ns: int
    foreign_ns: int

    @property
    def cores(self) -> float:
        return self.foreign_ns / self.duration_ns


@dataclass(frozen=True)
class Answer:
    """Events since the previous request."""

    gaps_ns: tuple[int, ...] = ()
    """Lengths of all gaps of at least `GAP_NS`, on any core."""
    windows: tuple[Window, ...] = ()

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Answer:
        values = json.loads(text)
        return cls(tuple(values["gaps_ns"]), tuple(Window(**window) for window in values["windows"]))


def watch_for_gaps() -> None:
    """Run one real-time thread on each core that keeps sleeping for a short time; report the gaps on request.

    This is a separate process in which every thread is real-time, because Python threads wait for each other.
    """
    gaps: deque[int] = deque()
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        cores = sorted(os.sched_getaffinity(0))
        for core in cores[-_MOST_CORES:]:  # a lab gives the last core to the emulator
            threading.Thread(target=_watch, args=(core, gaps), daemon=True).start()
    # If real-time scheduling is not permitted, a late thread proves nothing: the tests may have delayed it.
    for _ in sys.stdin:
        print(json.dumps([gaps.popleft() for _ in range(len(gaps))]), flush=True)


def _watch(core: int, gaps: deque[int]) -> None:
    os.sched_setaffinity(0, {core})
    with open("/proc/thread-self/schedstat", encoding="ascii") as scheduled:  # noqa: PTH123
        due_ns, waited_ns = time.monotonic_ns(), _waited_ns(scheduled)
        while True:
            due_ns += _PERIOD_NS
            time.sleep(max(due_ns - time.monotonic_ns(), 0) / 1e9)
            late_ns = time.monotonic_ns() - due_ns
            before_ns, waited_ns = waited_ns, _waited_ns(scheduled)
            if (stopped_ns := late_ns - (waited_ns - before_ns)) >= GAP_NS:
                gaps.append(stopped_ns)
            due_ns += max(late_ns, 0)


def _waited_ns(scheduled: TextIO) -> int:
    """Return how long this thread has been runnable but waiting for its core since it started, in ns."""
    scheduled.seek(0)
    return int(scheduled.read().split()[1])


class Process(NamedTuple):
    """A user-space process."""

    pid: int
    parent: int
    since: int
    """When it started; distinguishes it from a later process with the same ID."""
    used_ticks: int


class ForeignWork:
    """Sums up the processor time of programs that do not belong to the tests, and the stolen time."""

    def __init__(self, is_own: Callable[[int], bool]) -> None:
        """`is_own` tells whether a process belongs to the tests; it is asked only if the parent does not."""
        self._is_own = is_own
        self._own: set[tuple[int, int]] = set()
        self._foreign: dict[tuple[int, int], int] = {}
        self._stolen_ticks: int | None = None
        self.total_ns = 0

    def sample(self, processes: Sequence[Process], stolen_ticks: int) -> None:
        """Add what was used since the last sample. A program that started and ended in between is missed."""
        ticks = 0
        own_pids = {pid for pid, _ in self._own}
        there = {(process.pid, process.since) for process in processes}
        for process in sorted(processes, key=lambda process: process.since):  # parents first
            key = (process.pid, process.since)
            if key in self._own:
                continue
            if key not in self._foreign:
                if process.parent in own_pids or self._is_own(process.pid):
                    self._own.add(key)
                    own_pids.add(process.pid)
                    continue
                self._foreign[key] = process.used_ticks if self._stolen_ticks is None else 0
            ticks += process.used_ticks - self._foreign[key]
            self._foreign[key] = process.used_ticks
        self._own &= there
        self._foreign = {key: used for key, used in self._foreign.items() if key in there}
        if self._stolen_ticks is not None:
            ticks += max(stolen_ticks - self._stolen_ticks, 0)
        self._stolen_ticks = stolen_ticks
        self.total_ns += ticks * _TICK_NS


class Samples:
    """Foreign work over time."""

    def __init__(self, at_ns: int) -> None:
        self._samples: deque[tuple[int, int]] = deque([(at_ns, 0)], maxlen=_KEPT_SAMPLES)
        self._asked_ns = at_ns

    def add(self, at_ns: int, total_ns: int) -> None:
        self._samples.append((at_ns, total_ns))

    def windows(self) -> tuple[Window, ...]:
        """Return windows that cover the time since the last request. The earliest may begin before it."""
        windows = []
        until_ns, until_total = self._samples[-1]
        last_ns = until_ns
        for at_ns, total in reversed(self._samples):
            if until_ns - at_ns >= _WINDOW_NS:
                windows.append(Window(until_ns - at_ns, until_total - total))
                until_ns, until_total = at_ns, total
                if until_ns <= self._asked_ns:
                    break
        self._asked_ns = last_ns
        return tuple(windows)


def _is_marked(pid: int, run: str, namespace: Path) -> bool:
    """Return whether the tests started a process. Those in containers, or just ended, count as the tests'."""
    try:
        if Path(f"/proc/{pid}/ns/pid").readlink() != namespace:
            return True
        return run in run_mark.runs_of(run_mark.environment_of(Path(f"/proc/{pid}")))
    except PermissionError:  # it belongs to another user
        return False
    except OSError:
        return True


def _processes() -> list[Process]:
    processes = []
    for name in os.listdir("/proc"):  # noqa: PTH208 (a second of it must not cost a Path each)
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        pid, parent = int(name), int(fields[1])
        if 2 not in (pid, parent):
            processes.append(Process(pid, parent, int(fields[19]), int(fields[11]) + int(fields[12])))
    return processes


def _stolen_ticks() -> int:
    with open("/proc/stat", encoding="utf-8") as file:  # noqa: PTH123
        return int(file.readline().split()[8])


def watch(watched: int, run: str) -> None:
    """Report what happened to the tests of the process `watched` and to the other processes of the run."""
    gaps = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert gaps.stdin is not None
    assert gaps.stdout is not None
    namespace = Path("/proc/self/ns/pid").readlink()
    work = ForeignWork(lambda pid: pid in (watched, os.getpid()) or _is_marked(pid, run, namespace))
    work.sample(_processes(), _stolen_ticks())
    samples = Samples(time.monotonic_ns())
    lock = threading.Lock()

    def sample() -> None:
        with lock:
            work.sample(_processes(), _stolen_ticks())
            samples.add(time.monotonic_ns(), work.total_ns)

    def go_on() -> None:
        while True:
            time.sleep(_SAMPLE_S)
            sample()

    threading.Thread(target=go_on, daemon=True).start()
    for _ in sys.stdin:
        sample()
        gaps.stdin.write(b"\n")
        gaps.stdin.flush()
        lengths = json.loads(gaps.stdout.readline())
        with lock:
            answer = Answer(tuple(lengths), samples.windows())
        print(answer.to_json(), flush=True)
    gaps.stdin.close()
    gaps.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        watch(int(sys.argv[1]), sys.argv[2])
    else:
        watch_for_gaps()
