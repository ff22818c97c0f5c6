"""A bundle of `make bundle` is used only on matching machines, and only if it is complete."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

UV = """#!/bin/bash
case $1 in
--version) echo "uv 0.9.0" ;;
venv)
    mkdir -p "${@: -1}/bin"
    cat >"${@: -1}/bin/python" <<'PYTHON'
#!/bin/bash
while [ "$1" != --dest ]; do shift; done
mkdir -p "$2"
touch "$2/$(cat "$WORK/release").whl"
[ ! -e "$WORK/broken" ] || exit 1
PYTHON
    chmod +x "${@: -1}/bin/python" ;;
esac
"""
"""A stand-in for uv. The pip of its environments downloads the current release, and can be made to fail
halfway."""

SEEN = """
. setup/step.sh
. setup/prebuilt.sh
tell_unused
prebuilt_emulator && echo emulator
echo "${UV_FIND_LINKS:-none}"
"""


class Machine:
    """A copy of the scripts, with a built emulator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "setup", folder / "setup")
        for file, text in {
            "requirements.lock": "one==1\n",
            "release": "one-1",
            "switch-emulator/source": "fn main() {}\n",
            "switch-emulator/target/release/zodiac-fx": "built",
            "programs/uv": UV,
            ".setup/wheels/switch_emulator.whl": "",
        }.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        for program in ("programs/uv", "switch-emulator/target/release/zodiac-fx"):
            (folder / program).chmod(0o755)
        self._surroundings = {
            **{
                name: value
                for name, value in os.environ.items()
                if name not in ("LOKO_BUILD", "CARGO_TARGET_DIR")
            },
            "PATH": f"{folder / 'programs'}:{os.environ['PATH']}",
            "WORK": str(folder),
            "LOKO_SETUP_PAUSE_S": "0",
        }
        self.wheels = folder / "prebuilt/wheels"
        self.key = folder / "prebuilt/wheels.key"

    def bundle(self) -> int:
        return self._run("setup/bundle.sh").returncode

    def sees(self) -> tuple[list[str], str]:
        """Return what a set-up step finds, and what it reports about the rest."""
        done = self._run("bash", "-c", SEEN)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines(), done.stderr

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self._surroundings, capture_output=True, text=True, check=False
        )


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_what_was_bundled_here_is_used_here(machine):
    assert machine.bundle() == 0
    assert machine.sees() == (["emulator", str(machine.wheels)], "")


def test_without_a_bundle_nothing_is_said(machine):
    assert machine.sees() == (["none"], "")


def test_after_a_changed_pin_the_old_packages_are_not_used_and_the_next_bundle_has_none_of_them(machine):
    machine.bundle()
    (machine.folder / "requirements.lock").write_text("one==2\n")
    (machine.folder / "release").write_text("one-2")
    seen, said = machine.sees()
    assert seen == ["emulator", "none"]
    assert said == (
        "setup: note: prebuilt/wheels is for another requirements.lock and not used; "
        "'make bundle' makes it anew\n"
    )

    assert machine.bundle() == 0
    assert machine.sees() == (["emulator", str(machine.wheels)], "")
    assert [file.name for file in machine.wheels.iterdir()] == ["one-2.whl"]


def test_an_interrupted_bundle_is_not_used_and_made_anew(machine):
    (machine.folder / "broken").touch()
    assert machine.bundle() == 1
    assert list(machine.wheels.iterdir()), "half of them are there"
    seen, said = machine.sees()
    assert seen == ["none"]
    assert said == "setup: note: prebuilt/wheels is unfinished and not used; 'make bundle' makes it anew\n"

    (machine.folder / "broken").unlink()
    assert machine.bundle() == 0
    assert machine.sees() == (["emulator", str(machine.wheels)], "")


def test_a_later_bundle_that_is_interrupted_does_not_count_as_the_earlier_one(machine):
    machine.bundle()
    (machine.folder / "requirements.lock").write_text("one==2\n")
    (machine.folder / "broken").touch()
    assert machine.bundle() == 1
    (machine.folder / "requirements.lock").write_text("one==1\n")
    assert machine.sees()[0] == ["emulator", "none"], "of the emulator nothing has changed"


@pytest.mark.parametrize("part", ["architecture", "release", "Python"])
def test_what_was_bundled_on_another_machine_is_not_used_and_the_difference_is_told(machine, part):
    machine.bundle()
    number = {"architecture": 1, "release": 2, "Python": 3}[part]
    for key in (machine.key, machine.folder / "prebuilt/emulator.key"):
        words = key.read_text().split()
        words[number] = "other"
        key.write_text(" ".join(words) + "\n")
    seen, said = machine.sees()
    assert seen == ["none"]
    assert said.startswith("setup: note: prebuilt/wheels is for another machine (")
    assert "other" in said


def test_an_emulator_of_other_sources_is_not_used(machine):
    machine.bundle()
    (machine.folder / "switch-emulator/source").write_text("fn main() { todo!() }\n")
    assert machine.sees() == ([str(machine.wheels)], "")
