"""Slices measured in several processes, which give the samples of one process, and a bench that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from measured_slices import measured_rows
from typer.testing import CliRunner

from loko_testbed.cli.bench import BENCH
from loko_testbed.tasks.store import TASKS

_DEVICE = "exact-two"


def bench(folder: Path, *options: str) -> str:
    done = CliRunner().invoke(BENCH, ["slice", "--device", _DEVICE, "--out", str(folder), "--json", *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def kept(folder: Path) -> dict[str, bytes]:
    files = (folder / TASKS / "samples").glob("[!.]*")
    return {path.name: path.read_bytes() for path in files}


def test_two_processes_measure_what_one_does(tmp_path: Path) -> None:
    assert bench(tmp_path / "one", "--jobs", "1") == bench(tmp_path / "two", "--jobs", "2")
    assert kept(tmp_path / "one") == kept(tmp_path / "two") != {}


def test_a_bench_that_is_killed_goes_on_at_the_next_part(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    words = ["bench", "slice", "--device", _DEVICE, "--out", str(folder), "--jobs", "2"]
    command = [sys.executable, "-c", "from loko_testbed.cli.main import main; main()", *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            while not kept(folder):
                assert process.poll() is None, "it ended before it was killed"
                time.sleep(0.002)
            workers = psutil.Process(process.pid).children(recursive=True)
        finally:
            process.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, timeout=120)
    assert not alive
    before = {path: path.stat().st_mtime_ns for path in (folder / TASKS / "samples").glob("[!.]*")}
    rows = measured_rows(_DEVICE, folder)
    assert len(kept(folder)) > len(before)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert rows == measured_rows(_DEVICE, tmp_path / "at-once")


def test_real_time_has_one_process(tmp_path: Path) -> None:
    for options in (["--jobs", "2"], ["--executor", "dask", "--scheduler", "tcp://127.0.0.1:1"]):
        words = ["slice", "--device", "open-vswitch", "--out", str(tmp_path), *options]
        done = CliRunner().invoke(BENCH, words)
        assert f"{options[0]} {options[1]}: for virtual time only" in str(done.exception)
    assert not (tmp_path / TASKS).exists()
