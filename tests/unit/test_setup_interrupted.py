"""A build of the emulator that is killed: what it left does not count, and the next set-up does it again.

The step runs with stand-ins for the compilers, in a copy of the scripts.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

STAND_INS = {
    "rustc": "echo 'rustc 1.90.0 (of a test)'",
    "cargo": """
        [ "$1" = build ] || exit 0
        mkdir -p target/release
        echo half >target/release/zodiac-fx
        touch "$WORK/building"
        [ -e "$WORK/slow" ] && sleep 60
        cat source >target/release/zodiac-fx
        chmod +x target/release/zodiac-fx
    """,
    "uv": """
        case $1 in
        --version) echo "uv 0.9.0" ;;
        build) mkdir -p "$WORK/.setup/wheels" && touch "$WORK/.setup/wheels/module.whl" ;;
        pip) [ -f "${@: -1}" ] && touch "$WORK/.venv/module" ;;
        esac
    """,
}
PYTHON = 'test -e "$WORK/.venv/module"'
"""Whether the module can be imported."""


def _script(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


class Step:
    """The step of the set-up that builds the emulator, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "switch-emulator/target/release/zodiac-fx"
        self.source = folder / "switch-emulator/source"
        shutil.copytree(ROOT / "setup", folder / "setup")
        self.source.parent.mkdir()
        self.source.write_text("first\n")
        programs = folder / "programs"
        for name, body in STAND_INS.items():
            _script(programs / name, body)
        self.make_environment()
        self._surroundings = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "WORK": str(folder)}

    def make_environment(self) -> None:
        """The Python environment, without the module."""
        shutil.rmtree(self.folder / ".venv", ignore_errors=True)
        _script(self.folder / ".venv/bin/python", PYTHON)

    def begin(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.folder / "setup/emulator.sh"],
            env=self._surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self) -> str:
        running = self.begin()
        output, _ = running.communicate(timeout=30)
        assert running.returncode == 0, output
        return output

    def kill_while_building(self) -> None:
        (self.folder / "slow").touch()
        (self.folder / "building").unlink(missing_ok=True)
        running = self.begin()
        deadline = time.monotonic() + 30
        while not (self.folder / "building").exists():
            assert running.poll() is None, "ended before the build"
            assert time.monotonic() < deadline, "does not get to the build"
            time.sleep(0.01)
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        (self.folder / "slow").unlink()


@pytest.fixture
def step(tmp_path):
    return Step(tmp_path)


def test_the_first_build_killed(step):
    step.kill_while_building()
    assert step.program.read_text() == "half\n"
    assert "building the emulator" in step.run()
    assert step.program.read_text() == "first\n"
    assert step.run() == "", "done already"


def test_a_later_build_killed(step):
    step.run()
    step.source.write_text("second\n")
    step.kill_while_building()
    assert "building the emulator" in step.run(), "neither the half-built nor the earlier program counts"
    assert step.program.read_text() == "second\n"


def test_a_build_killed_whose_sources_were_put_back(step):
    step.run()
    step.source.write_text("second\n")
    step.kill_while_building()
    step.source.write_text("first\n")
    step.run()
    assert step.program.read_text() == "first\n", "not the half-built program of the second sources"


def test_a_python_environment_made_anew_gets_the_module_again(step):
    step.run()
    step.make_environment()
    step.run()
    assert (step.folder / ".venv/module").exists()
    assert step.run() == ""
