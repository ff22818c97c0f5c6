"""Measure time and memory of the virtual replay of all figures at the paper's scale."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import LOKO, run
from loko_testbed.reproduce.runs import FigureRun, read_runs

CORES = 2
"""Cores that the replay may use, so that its time compares between machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTiming:
    """Resources used by one replay from scratch."""

    wall_s: float
    cpu_s: float
    peak_memory_bytes: int
    figures_s: Mapping[str, float]
    """By figure, or figures that are replayed together, the time until the records were complete."""


def measure() -> ReplayTiming:
    """Replay everything once into a temporary folder. Raises `BenchmarkError`."""
    with tempfile.TemporaryDirectory() as folder:
        usage = run([LOKO, "evaluate", "--mode", "virtual", "--out", folder], cpus=CORES)
        figures_s = by_figure(read_runs(Path(folder)).values())
    return ReplayTiming(
        wall_s=usage.wall_s,
        cpu_s=usage.cpu_s,
        peak_memory_bytes=usage.peak_memory_bytes,
        figures_s=figures_s,
    )


def by_figure(runs: Iterable[FigureRun]) -> dict[str, float]:
    """Return the times by the names of the figures that were replayed together, the longest first."""
    together = {", ".join(sorted([run.figure, *run.together_with])): run.seconds for run in runs}
    return dict(sorted(together.items(), key=lambda named: -named[1]))
