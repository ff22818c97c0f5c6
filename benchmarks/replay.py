"""Measure time and memory of the virtual replay of all figures at the paper's scale."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

from benchmarks.measure import LOKO, run

CORES = 2
"""Cores that the replay may use, so that its time compares between machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Resources used by one replay from scratch."""

    wall_s: float
    cpu_s: float
    peak_memory_bytes: int


def measure() -> Replay:
    """Replay everything once into a temporary folder. Raises `BenchmarkError`."""
    with tempfile.TemporaryDirectory() as folder:
        usage = run([LOKO, "evaluate", "--mode", "virtual", "--out", folder], cpus=CORES)
    return Replay(wall_s=usage.wall_s, cpu_s=usage.cpu_s, peak_memory_bytes=usage.peak_memory_bytes)
