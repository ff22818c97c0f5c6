"""The command `loko bench` with all that it measures: switches, controllers, and slices."""

from __future__ import annotations

from typing import Final

from evaluation.bench.commands import bench_app
from evaluation.slice_bench.command import bench_slice

bench_app.command("slice")(bench_slice)

BENCH: Final = bench_app
