"""Everything that a test run starts ends with it, even if pytest is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import run_mark
from live_harness import Machine, left, named, needs_namespaces, wait_until

from loko_testbed.live.background import BackgroundLab

HERE = Path(__file__).parent

DETACHED = """
import subprocess, sys, time
def test_forever():
    left = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    print("up", left.pid, file=sys.__stderr__, flush=True)
    time.sleep(1000)
"""

LAB = """
import os, subprocess, sys, time
from loko_testbed.live.background import BackgroundLab
def test_forever():
    loko = os.path.join(os.path.dirname(sys.executable), "loko")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([loko, "lab", "up", "two-switch", "--relaxed"], check=True, **quiet)
    print("up", BackgroundLab.find("two-switch").pid, file=sys.__stderr__, flush=True)
    time.sleep(1000)
"""


def killed_run(folder: Path, test: str, *options: str) -> list[tuple[str, psutil.Process]]:
    """Run an endless test, kill pytest during it, and return the processes that it had started."""
    (folder / "test_run.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-p", "leaked_processes", "-s", "-q", *options, str(folder)]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=surroundings
    ) as run:
        try:
            assert run.stderr is not None
            detached = psutil.Process(int(run.stderr.readline().removeprefix("up ")))
            return [*named(run.pid), (detached.name(), detached), *named(detached.pid)]
        finally:
            run.kill()


def has_ended(started: list[tuple[str, psutil.Process]]) -> bool:
    return not left([process for _, process in started])


@pytest.mark.parametrize("options", [(), ("--numprocesses", "1")], ids=["alone", "worker"])
def test_processes_of_their_own_session_end_with_a_killed_pytest(tmp_path: Path, options) -> None:
    started = killed_run(tmp_path, DETACHED, *options)
    wait_until(lambda: has_ended(started), "what the run had started has ended")


def test_others_are_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "1000"])
    try:
        started = killed_run(tmp_path, DETACHED)
        wait_until(lambda: has_ended(started), "what the run had started has ended")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_process_that_has_just_begun_shows_its_environment() -> None:
    """Popen returns while exec is in progress; on a busy machine the kernel shows no environment yet."""
    for _ in range(200):
        with subprocess.Popen(["sleep", "1000"], env={run_mark.MARK: "17-4"}) as begun:
            shown = run_mark.environment_of(Path(f"/proc/{begun.pid}"))
            begun.kill()
        assert run_mark.runs_of(shown) == ["17-4"]


def test_a_process_without_environment_is_not_waited_for() -> None:
    with subprocess.Popen(["sleep", "1000"], env={}) as bare:
        assert run_mark.environment_of(Path(f"/proc/{bare.pid}")) == b""
        bare.kill()


@pytest.mark.live
@pytest.mark.namespaces
@pytest.mark.waits
@needs_namespaces
@pytest.mark.usefixtures("relaxed")
def test_a_lab_in_the_background_ends_with_a_killed_pytest(tmp_path: Path) -> None:
    before = Machine.now()
    started = killed_run(tmp_path, LAB)
    assert "zodiac-fx" in {name for name, _ in started}
    wait_until(lambda: has_ended(started), "what the run had started has ended")
    assert not list(BackgroundLab.all())
    wait_until(lambda: Machine.now() == before, f"the machine is as before: {before}, {Machine.now()}")
