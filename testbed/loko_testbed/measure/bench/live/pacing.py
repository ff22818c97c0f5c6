"""Actions at exact instants: a thread spins on a core of its own until each instant has come."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from loko_testbed.live.realtime_limit import LIMIT, RealtimeLimit
from loko_testbed.simulation.runner import Stall

STALL_NS: Final = 50_000
"""A longer pause of the spinning thread is a stall: the host ran something else."""

_PRIORITY: Final = 50
_SLEEP_NS: Final = 3_000_000
"""The thread sleeps through longer gaps, except for their end."""
_SPIN_NS: Final = 1_000_000


def at_instants(steps: Iterable[tuple[int, Callable[[bytes], object], bytes]]) -> list[Stall]:
    """Carry out steps, each a number of nanoseconds after the one before. Return stalls by the wall clock.

    A step that is late by less than its gap does not shift the following ones, so that the rate stays exact.
    After a longer delay all are shifted, so that no burst follows.
    """
    clock = time.perf_counter_ns
    stalls: list[Stall] = []
    begin = now = clock()
    for gap_ns, act, data in steps:
        due = begin + gap_ns
        if gap_ns > _SLEEP_NS:
            time.sleep(max(due - clock() - _SPIN_NS, 0) / 1e9)
            now = clock()
        while True:
            before, now = now, clock()
            if now - before > STALL_NS:
                stalls.append(Stall(start_ns=time.time_ns() - (now - before), duration_ns=now - before))
            if now >= due:
                break
        act(data)
        begin = due if now - due <= gap_ns else now
        # The way to the interface may take any time: a frame is stamped on arrival there.
        now = clock()
    return stalls


@contextmanager
def realtime_core(core: int | None) -> Iterator[None]:
    """Keep this thread alone on a core within the context, as far as the kernel permits."""
    cores = os.sched_getaffinity(0)
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    collecting = gc.isenabled()
    gc.disable()
    try:
        with contextlib.suppress(PermissionError):
            wanted = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, wanted, os.sched_param(_PRIORITY))
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)
        os.sched_setaffinity(0, cores)
        if collecting:
            gc.enable()


@contextmanager
def unlimited_realtime() -> Iterator[None]:
    """Let real-time threads run all the time within the context. The old limit returns, even after a kill."""
    limit = RealtimeLimit()
    try:
        with contextlib.suppress(OSError):
            LIMIT.write_text("-1", encoding="ascii")
        yield
    finally:
        limit.wait()
