"""`setup/in-turn.sh`: steps of the Makefile one after the other, or beside each other."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MAKEFILE = """
.PHONY: setup
meets-%: # a waits for the file b, and b for a
	@touch $*; until [ -e $(if $(filter a,$*),b,a) ]; do sleep 0.01; done; echo "$@"
fails:
	@echo of no use; exit 3
setup:
	@echo setup
tells:
	@echo "set up: $$SETUP_IS_DONE"
lasts:
	@echo begun; exec sleep 1000
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "setup").mkdir()
    (tmp_path / "Makefile").write_text(MAKEFILE)
    return Path(shutil.copy(ROOT / "setup/in-turn.sh", tmp_path / "setup"))


def test_steps_joined_run_beside_each_other_and_the_time_of_each_is_told(script: Path) -> None:
    place = {**os.environ, "MAKEFLAGS": "n"}  # as from a make that only prints its commands
    done = subprocess.run(
        [script, "all", "setup", "tells", "meets-a+meets-b"],
        capture_output=True,
        text=True,
        check=False,
        env=place,
    )
    assert done.returncode == 0, done.stderr
    said, times = done.stdout.splitlines()[:4], done.stdout.splitlines()[4:]
    assert said == ["setup", "set up: 1", "meets-a", "meets-b"]
    assert re.fullmatch(r"all: \d+\.\d s", times[0])
    named = [re.fullmatch(r" {4}(\S+) +\d+\.\d s", line) for line in times[1:]]
    assert sorted(match[1] for match in named if match) == ["meets-a", "meets-b", "setup", "tells"]


def test_a_step_that_fails_ends_it_with_what_repeats_only_that(script: Path) -> None:
    done = subprocess.run(
        [script, "all", "tells+fails", "setup"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "of no use" in done.stdout.splitlines()
    assert done.stderr.splitlines()[-1] == "all: 'fails' failed; repeat only that: make fails"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_ended_ends_its_steps(script: Path, number: signal.Signals) -> None:
    with subprocess.Popen([script, "all", "lasts+lasts"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.1)
        process.send_signal(number)
        # The steps hold the pipe open as well, so it ends with the last of them.
        assert "begun" not in process.stdout.read()
    assert process.returncode == -number
