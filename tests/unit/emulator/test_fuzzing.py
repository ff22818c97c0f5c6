"""Only the fuzz targets use chance, and their script prints the commands that keep what it finds.

The script runs in a copy of the project's folders, with stand-ins for the instrumented programs.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[3]
FUZZ = Path("switch-emulator/fuzz")
INPUT = b"an input that fails"

STAND_IN = """#!/bin/bash
for argument; do
    case $argument in
    -artifact_prefix=*) prefix=${argument#*=} ;;
    -merge=1) merging=true ;;
    -*) ;;
    *) folders+=("$argument") ;;
    esac
done
if [ -n "${merging:-}" ]; then
    cp "${folders[1]}"/* "${folders[0]}"
elif [ -f "${folders[0]}" ]; then
    grep -q 'that fails' "${folders[0]}" && { echo "failed again"; exit 77; }
    echo "nothing failed"
elif [ -e "$BROKEN" ]; then
    printf 'an input that fails' >"${prefix}crash-1"
    printf 'thread panicked at here:\\nwhat did not hold\\nstack backtrace:\\n'
    echo "Test unit written to ${prefix}crash-1"
    exit 77
else
    printf 'useful' >"${folders[0]}/found"
    printf '#9 DONE cov: 12 ft: 3\\nstat::number_of_executed_units: 9\\nstat::peak_rss_mb: 1\\n'
fi
"""


class Project:
    """A project with one fuzz target."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fuzz = folder / FUZZ
        (self.fuzz / "fuzz_targets").mkdir(parents=True)
        (self.fuzz / "fuzz_targets/frames.rs").touch()
        shutil.copy(ROOT / FUZZ / "run.sh", self.fuzz)
        program = folder / "switch-emulator/target/fuzzing/bin/frames"
        program.parent.mkdir(parents=True)
        program.write_text(STAND_IN)
        program.chmod(0o755)
        self.broken = folder / "broken"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        surroundings = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
        return subprocess.run(
            [self.fuzz / "run.sh", *arguments],
            cwd=self.folder,
            env=surroundings | {"BROKEN": str(self.broken), "CI": "true"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def advised(text: str, what: str) -> list[str]:
    """Return the arguments of the command that a line advises."""
    [arguments] = re.findall(rf"^fuzz: {what} with: make fuzz ARGS='(.*)'$", text, re.MULTILINE)
    return shlex.split(arguments)


def test_what_failed_is_reproduced_and_kept_by_the_printed_commands(project: Project) -> None:
    project.broken.touch()
    failed = project.run("--seconds", "1")
    assert failed.returncode == 1
    assert "what did not hold" in failed.stderr
    again = project.run(*advised(failed.stderr, "reproduce"))
    assert (again.returncode, again.stdout) == (77, "failed again\n")
    assert project.run(*advised(failed.stderr, "keep it")).returncode == 0
    assert (project.fuzz / "regressions/frames/what-failed").read_bytes() == INPUT


def test_where_nobody_can_fetch_the_input_it_is_printed(project: Project) -> None:
    project.broken.touch()
    [text] = re.findall(r"base64 --decode: (\S+)", project.run("--seconds", "1").stderr)
    assert (
        subprocess.run(["base64", "--decode"], input=text.encode(), capture_output=True, check=True).stdout
        == INPUT
    )


def test_what_was_found_useful_goes_into_the_corpus_when_it_is_merged(project: Project) -> None:
    assert "12 edges covered, 1 inputs found" in project.run("--seconds", "1").stdout
    assert not (project.fuzz / "corpus/frames/found").exists()
    assert "1 inputs more" in project.run("merge").stdout
    assert (project.fuzz / "corpus/frames/found").read_text() == "useful"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["keep", "frames"], "fuzz: keep wants a target, an input and perhaps a name: keep frames FILE NAME"),
        (["keep", "frames", "nowhere"], "fuzz: there is no input nowhere"),
        (["keep", "frams", "run.sh"], "fuzz: there is no target frams; there are: frames"),
        (
            ["keep", "frames", "switch-emulator/fuzz/run.sh", "../up"],
            "fuzz: a name has small letters, digits and hyphens, unlike '../up'",
        ),
        (["merge"], "fuzz: nothing was found for frames yet: make fuzz ARGS='frames' finds some"),
        (["--seconds", "0"], "fuzz: --seconds wants a whole number of seconds, such as --seconds 3600"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(project: Project, arguments: list[str], line: str) -> None:
    done = project.run(*arguments)
    assert (done.returncode, done.stderr) == (2, line + "\n")


def test_property_tests_draw_the_same_examples_at_every_run() -> None:
    gate = settings.get_profile("gate")
    assert gate.derandomize
    assert gate.database is None
    assert not settings.get_profile("random").derandomize
    cargo = tomllib.loads((ROOT / "switch-emulator/.cargo/config.toml").read_text())
    assert int(cargo["env"]["PROPTEST_RNG_SEED"]) > 0
