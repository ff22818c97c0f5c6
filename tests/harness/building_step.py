"""Run the set-up step that builds the emulator, in a folder of its own and with stand-in compilers."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

STAND_INS = {
    "rustc": "echo 'rustc 1.90.0 (of a test)'",
    # Bash survives Ctrl-C if the child it waits for has just exited by itself; a compiler does not.
    "cargo": """
        trap 'trap - INT; kill -INT $$' INT
        [ "$1" = build ] || exit 0
        mkdir -p target/release
        echo half >target/release/zodiac-fx
        touch "$WORK/building"
        echo >>"$WORK/builds"
        while [ -e "$WORK/slow" ]; do sleep 0.02; done
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
TIMEOUT_S = 120
PYTHON = 'test -e "$WORK/.venv/module"'
"""Stand-in for the interpreter: it succeeds if the module can be imported."""


def _script(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


class Step:
    """The build step, run in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Copy the scripts; nothing is built yet."""
        self.folder = folder
        self._started: list[subprocess.Popen[str]] = []
        self.script = folder / "setup/emulator.sh"
        self.program = folder / "switch-emulator/target/release/zodiac-fx"
        self.source = folder / "switch-emulator/source"
        shutil.copytree(ROOT / "setup", folder / "setup")
        self.source.parent.mkdir()
        self.source.write_text("first\n")
        programs = folder / "programs"
        for name, body in STAND_INS.items():
            _script(programs / name, body)
        self.make_environment()
        outside = {name: value for name, value in os.environ.items() if not name.startswith("LOKO_SETUP_")}
        self._surroundings = {**outside, "PATH": f"{programs}:{os.environ['PATH']}", "WORK": str(folder)}

    def make_environment(self) -> None:
        """Create the Python environment, without the module."""
        shutil.rmtree(self.folder / ".venv", ignore_errors=True)
        _script(self.folder / ".venv/bin/python", PYTHON)

    def begin(self, **surroundings: str) -> subprocess.Popen[str]:
        """Start the step in a process group of its own."""
        running = subprocess.Popen(
            [self.script],
            env=self._surroundings | surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(running)
        return running

    def end(self) -> None:
        """Kill the processes that a test has left running."""
        for running in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.communicate()

    def run(self) -> str:
        """Run the step to completion and return its output."""
        running = self.begin()
        output, errors = running.communicate(timeout=TIMEOUT_S)
        assert running.returncode == 0, output + errors
        return output + errors

    def begin_building(self) -> subprocess.Popen[str]:
        """Start the step and wait until its compiler runs. The compiler ends after `go_on`."""
        (self.folder / "slow").touch()
        (self.folder / "building").unlink(missing_ok=True)
        running = self.begin()
        deadline = time.monotonic() + TIMEOUT_S
        while not (self.folder / "building").exists():
            assert running.poll() is None, "ended before the build"
            assert time.monotonic() < deadline, "does not get to the build"
            time.sleep(0.01)
        return running

    def go_on(self) -> None:
        """Let the compiler finish."""
        (self.folder / "slow").unlink()

    def builds(self) -> int:
        """Return how often the compiler was started."""
        return len((self.folder / "builds").read_text().splitlines())

    def kill_while_building(self) -> None:
        """Start the step, and kill it and its compiler before the build is done."""
        running = self.begin_building()
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        self.go_on()
