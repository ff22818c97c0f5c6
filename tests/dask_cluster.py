"""A Dask cluster of this machine: a scheduler and workers, each a process of its own, on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

PATIENCE_S = 60.0


class Cluster(NamedTuple):
    """Where the scheduler listens, and what computes."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def cluster(
    folder: Path,
    *,
    workers: int = 2,
    pythons: Sequence[Path] = (),
    surroundings: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """Start it, with its files in an empty folder; end it afterwards.

    With `pythons` there is a worker of each of these environments, and the scheduler is of the first.
    """
    pytest.importorskip("distributed")
    told = folder / "scheduler.json"
    with ExitStack() as stack:

        def start(python: Path, program: str, *options: str) -> subprocess.Popen[bytes]:
            command = [python, "-m", f"distributed.cli.{program}", "--no-dashboard", *options]
            with (folder / f"{program}.log").open("ab") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=surroundings)
            stack.callback(process.wait, PATIENCE_S)
            stack.callback(process.terminate)
            return process

        chosen = pythons or [Path(sys.executable)] * workers
        start(
            chosen[0], "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(told)
        )
        until = time.monotonic() + PATIENCE_S
        while not told.exists():
            assert time.monotonic() < until, (folder / "dask_scheduler.log").read_text()
            time.sleep(0.05)
        address = json.loads(told.read_text())["address"]
        alone = ("--no-nanny", "--nthreads", "1", "--host", "127.0.0.1")
        yield Cluster(address, [start(python, "dask_worker", address, *alone) for python in chosen])
