"""A process that notes what kept the machine from its tests, and tells it when it is asked.

Two things do. A *gap*: a core did not wake a real-time thread that was due, as when a hypervisor gave the
core to somebody else. If it woke, but waited because a thread of higher priority had the core, that is no
gap: such threads are the tests' own, or foreign work. And *foreign work*: processor time that programs used
that are no part of the tests, or that the hypervisor took.

Each line that is read is a question; the answer is a line of JSON, an `Answer`. The process ends with its
standard input.
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
"""Shorter gaps are not told. An emulator that polls leaves its core once a millisecond, and which packets a
shorter stall met is in its own journal."""
_PERIOD_NS = 5_000_000
_MOST_CORES = 8
_WINDOW_NS = 500_000_000
"""Over shorter times foreign work is not told: the kernel counts processor time in steps of 10 ms."""
_SAMPLE_S = 1.0
_KEPT_SAMPLES = 3600
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Window:
    """Foreign work in some time."""

    duration_ns: int
    foreign_ns: int

    @property
    def cores(self) -> float:
        return self.foreign_ns / self.duration_ns


@dataclass(frozen=True)
class Answer:
    """What happened since the last question."""

    gaps_ns: tuple[int, ...] = ()
    """Lengths of the gaps of `GAP_NS` and more, of any core."""
    windows: tuple[Window, ...] = ()

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Answer:
        values = json.loads(text)
        return cls(tuple(values["gaps_ns"]), tuple(Window(**window) for window in values["windows"]))


def watch_for_gaps() -> None:
    """One real-time thread a core, that sleeps for a short time again and again. Answers with gaps' lengths.

    It is a process of its own, all of it real-time: threads of Python wait for each other.
    """
    gaps: deque[int] = deque()
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        cores = sorted(os.sched_getaffinity(0))
        for core in cores[-_MOST_CORES:]:  # a lab gives the last one to the emulator
            threading.Thread(target=_watch, args=(core, gaps), daemon=True).start()
    # Without the right to be real-time a late thread tells nothing: the tests themselves may have delayed it.
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
    """For how long this thread has waited for its core since it began, although it was awake, in ns."""
    scheduled.seek(0)
    return int(scheduled.read().split()[1])


class Process(NamedTuple):
    """A process that is no thread of the kernel."""

    pid: int
    parent: int
    since: int
    """When it began; tells it from a later one with the same number."""
    used_ticks: int


class ForeignWork:
    """Adds up the processor time of programs that are no part of the tests, and what a hypervisor stole."""

    def __init__(self, is_own: Callable[[int], bool]) -> None:
        """`is_own` tells of a process whose parent is no part of the tests whether it is one itself."""
        self._is_own = is_own
        self._own: set[tuple[int, int]] = set()
        self._foreign: dict[tuple[int, int], int] = {}
        self._stolen_ticks: int | None = None
        self.total_ns = 0

    def sample(self, processes: Sequence[Process], stolen_ticks: int) -> None:
        """Add what was used since the last time. A program that began and ended in between is missed."""
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
    """Foreign work by time."""

    def __init__(self, at_ns: int) -> None:
        self._samples: deque[tuple[int, int]] = deque([(at_ns, 0)], maxlen=_KEPT_SAMPLES)
        self._asked_ns = at_ns

    def add(self, at_ns: int, total_ns: int) -> None:
        self._samples.append((at_ns, total_ns))

    def windows(self) -> tuple[Window, ...]:
        """Windows that cover the time since the last question, each long enough; one may begin before it."""
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
    """Whether the tests started it. What runs in a container is taken for theirs, and what has just ended."""
    try:
        if Path(f"/proc/{pid}/ns/pid").readlink() != namespace:
            return True
        return run in run_mark.runs_of(run_mark.environment_of(Path(f"/proc/{pid}")))
    except PermissionError:  # another user's
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
    """Answer with all that happened to the tests of this process and of what belongs to this run."""
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
