"""The virtual replay of every figure at the paper's scale: how long, and how much memory."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

from benchmarks.measure import LOKO, run

CORES = 2
"""The replay is limited to this many, so that its time means the same everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One replay from nothing."""

    wall_s: float
    cpu_s: float
    peak_memory_bytes: int


def measure() -> Replay:
    """Replay everything once into a folder that is thrown away. Raises `BenchmarkError`."""
    with tempfile.TemporaryDirectory() as folder:
        usage = run([LOKO, "evaluate", "--mode", "virtual", "--out", folder], cpus=CORES)
    return Replay(wall_s=usage.wall_s, cpu_s=usage.cpu_s, peak_memory_bytes=usage.peak_memory_bytes)
