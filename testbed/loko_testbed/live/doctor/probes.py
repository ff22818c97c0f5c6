"""Finds out the facts of this machine, by trying. Nothing is changed: all that it makes is in namespaces."""

from __future__ import annotations

import itertools
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

from loko_testbed.live.cores import CorePlan
from loko_testbed.live.doctor.adapters import adapters
from loko_testbed.live.doctor.facts import Clocks, Cores, Facts, Noise
from loko_testbed.live.doctor.noise import measure
from loko_testbed.live.doctor.requirements import WHOLE_CORE, requirements, works
from loko_testbed.live.doctor.versions import versions
from loko_testbed.simulation.runner import RunError

_CPU = Path("/sys/devices/system/cpu")
_CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_CLOCK_READINGS = 2000
_PAIR_READINGS = 50


def gather(seconds: int, waiting: Callable[[str], None]) -> Facts:
    """Gather all facts. Measures noise for this many seconds; `waiting` is told what is being done."""
    root = os.geteuid() == 0
    plan = CorePlan.here()
    load = psutil.getloadavg()[0]
    waiting("trying what the kernel offers")
    tried = requirements(root=root)
    deadline = works(["chrt", "--deadline", *WHOLE_CORE, "0", "true"]) if root else None
    waiting(f"measuring for {seconds} s how often core {plan.emulator} is taken from a thread that polls")
    offset, before = _wall_offset_ns(), psutil.cpu_times()
    noise, reason = _noise(plan.emulator, seconds)
    step_ns, after = _wall_offset_ns() - offset, psutil.cpu_times()
    waiting("looking at network cards and versions")
    return Facts(
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        root=root,
        parts=tried,
        cores=_cores(plan),
        deadline=deadline,
        clocks=Clocks(source=_read(_CLOCK_SOURCE) or "unknown", read_ns=_read_ns(), step_ns=step_ns),
        noise=noise,
        no_noise=reason,
        load=load,
        steal_share=_steal_share(before, after),
        virtual_machine="hypervisor" in _cpu_flags(),
        adapters=adapters(),
        versions=versions(),
    )


def _noise(cpu: int, seconds: int) -> tuple[Noise | None, str]:
    try:
        return measure(cpu, seconds), ""
    except RunError as error:
        return None, str(error)


def _cores(plan: CorePlan) -> Cores:
    core = _CPU / f"cpu{plan.emulator}"
    siblings = _numbers(_read(core / "topology/thread_siblings_list"))
    return Cores(
        usable=len(plan.others | {plan.emulator}),
        emulator=plan.emulator,
        emulator_alone=plan.warning is None,
        isolated=plan.emulator in _numbers(_read(_CPU / "isolated")),
        siblings=tuple(sorted(siblings - {plan.emulator})),
        governor=_read(core / "cpufreq/scaling_governor"),
    )


def _read_ns() -> float:
    """Return the median time of a clock reading. Python adds tens of ns, so it only tells 50 ns from 1 us."""
    readings = [time.clock_gettime_ns(time.CLOCK_MONOTONIC) for _ in range(_CLOCK_READINGS)]
    return statistics.median(later - earlier for earlier, later in itertools.pairwise(readings))


def _wall_offset_ns() -> int:
    """Return the wall clock's lead over the monotonic one, from the quickest of many readings."""
    pairs = []
    for _ in range(_PAIR_READINGS):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        pairs.append((after - before, wall - (before + after) // 2))
    return min(pairs)[1]


def _steal_share(before: Any, after: Any) -> float | None:
    if not hasattr(before, "steal") or not hasattr(after, "steal"):
        return None
    total = sum(_seconds(after)) - sum(_seconds(before))
    return max(0.0, after.steal - before.steal) / total if total > 0 else None


def _seconds(times: Any) -> Iterable[float]:
    """Yield the times that add up to all. A guest's time is part of the user's."""
    return (
        getattr(times, name)
        for name in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    )


def _cpu_flags() -> set[str]:
    text = _read(Path("/proc/cpuinfo")) or ""
    return {flag for line in text.splitlines() if line.startswith("flags") for flag in line.split()}


def _numbers(text: str | None) -> set[int]:
    """Parse a list of the kernel such as ``0,2-3``."""
    numbers: set[int] = set()
    for span in filter(None, (text or "").split(",")):
        first, _, last = span.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
