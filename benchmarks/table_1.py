"""Measure all of Table 1 in virtual time from scratch: 12,096 combinations with 100 frames each."""

from __future__ import annotations

import tempfile
from typing import Final

from benchmarks.measure import LOKO, ProcessUsage, run

CORES: Final = 2
GOAL_S: Final = 60


def measure() -> ProcessUsage:
    """Measure every combination once into a temporary folder. Raises `BenchmarkError`."""
    with tempfile.TemporaryDirectory() as folder:
        return run(
            [LOKO, "bench", "dp-time", "--device", "zodiac-fx", "--samples", "100", "--out", folder],
            cpus=CORES,
        )
