"""The command `loko bench` with all that it measures: switches, controllers, and slices."""

from __future__ import annotations

from typing import Final

from loko_testbed.cli.bench.procedures import bench_app
from loko_testbed.cli.bench.slices import bench_slice

bench_app.command("slice")(bench_slice)

BENCH: Final = bench_app
