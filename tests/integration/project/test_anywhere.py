"""The repository works from unusual places.

`make anywhere` does the same with complete builds.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import switch_emulator
from live_harness import needs_namespaces

from loko_testbed.live.confinement import Confinement
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks import provenance

ROOT = Path(__file__).resolve().parents[3]
SOMEBODY = 12345
GIT = ["git", "-c", "safe.directory=*", "-C", str(ROOT)]

READ_ONLY = """
mount --make-rprivate /
mount --bind "$SOURCE" "$SOURCE"
mount -o remount,bind,ro "$SOURCE"
"""


def files():
    """Return the files that belong to the repository in its present state."""
    command = [*GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def copied(folder):
    for name in files():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy)
    return folder


def without(*names):
    return {name: value for name, value in os.environ.items() if name not in names}


class Clone:
    """A read-only copy and a separate build folder, both in paths with spaces, used from a third folder."""

    def __init__(self, folder):
        self.source = copied(folder / "a source")
        self.build = folder / "a build"
        self.here = folder / "where I am"
        self.here.mkdir()
        self._surroundings = {
            **without("VIRTUAL_ENV", "CARGO_TARGET_DIR", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"),
            "SOURCE": str(self.source),
            "LOKO_BUILD": str(self.build),
            "PYTHONDONTWRITEBYTECODE": "",
        }

    def run(self, script, **surroundings):
        """Run a script in the third folder and return the lines that it prints."""
        done = subprocess.run(
            ["unshare", "--mount", "bash", "-ec", READ_ONLY + script],
            cwd=self.here,
            env=self._surroundings | surroundings,
            capture_output=True,
            text=True,
            check=False,
            timeout=250,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A copy with its environment set up. Its emulator is this repository's, as building takes minutes."""
    clone = Clone(tmp_path_factory.mktemp("any where"))
    lines = clone.run('"$SOURCE/setup/python.sh"')
    assert lines == [f"setup: installing the Python environment {clone.build}/.venv"]
    [packages] = clone.build.glob(".venv/lib/python3*/site-packages")
    (packages / "switch_emulator").symlink_to(Path(switch_emulator.__file__).parent)
    (clone.build / ".venv/bin/zodiac-fx").symlink_to(Path(sys.prefix) / "bin/zodiac-fx")
    return clone


pytestmark = [needs_namespaces, pytest.mark.disposable_root]


def test_set_up_has_nothing_left_to_do_but_the_emulator_and_writes_nothing_into_the_source(clone):
    lines = clone.run('make --no-print-directory -C "$SOURCE" help; "$SOURCE/setup/all.sh" --check')
    assert [line for line in lines if line.startswith("setup:")] == [
        "setup: building the emulator (Rust, release)"
    ]
    assert any(line.startswith("setup ") for line in lines), "the list of targets"
    kept = {str(path.relative_to(clone.source)) for path in clone.source.rglob("*") if path.is_file()}
    assert kept == set(files())


def test_the_command_line_works_from_any_folder(clone):
    lines = clone.run('"$LOKO_BUILD/.venv/bin/loko" evaluate table2 --out "my results"')
    assert "report: my results/report.html" in lines
    result = json.loads((clone.here / "my results/table2.json").read_text())
    assert result["provenance"]["commit"] == "unknown", "this copy is no git repository"


def test_the_playbook_puts_results_into_the_build_folder(clone):
    play = "setup/with-tools ansible-playbook playbooks/evaluate.yml --tags evaluation"
    clone.run(f'cd "$SOURCE"; {play} -e mode=virtual -e figures=table2')
    assert (clone.build / "results/virtual/table2.json").is_file()


def test_a_disposable_root_has_the_repository_wherever_it_lies(clone):
    # The machine has another /tmp, and its overlay of / does not include other file systems.
    chosen = "tests/roles/test_bad_days.py -k 'no_list_knows or sources_go_back'"
    lines = clone.run(
        f'mkdir "$LOKO_BUILD/tmp"; mount -t tmpfs new "$LOKO_BUILD/tmp"; cd "$SOURCE"\n'
        f"TMPDIR=$LOKO_BUILD/tmp setup/with-tools pytest -q {chosen}"
    )
    assert "2 passed" in lines[-1]


def test_an_environment_that_was_moved_is_made_anew(clone):
    # The programs of a moved environment would still run what is at its original place, or nothing.
    moved = clone.build.with_name("moved")
    lines = clone.run(f'"$SOURCE/setup/python.sh" --check; cp -rs "$LOKO_BUILD" "{moved}"')
    assert lines == []
    lines = clone.run('"$SOURCE/setup/python.sh" --check', LOKO_BUILD=str(moved))
    assert lines == [f"setup: installing the Python environment {moved}/.venv"]


def test_a_build_folder_must_be_absolute():
    done = subprocess.run(
        [ROOT / "setup/all.sh", "--check"],
        env=os.environ | {"LOKO_BUILD": "elsewhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert (
        done.stderr == f"setup: LOKO_BUILD=elsewhere: give an absolute path, such as {Path.cwd()}/elsewhere\n"
    )


def test_a_live_run_with_a_python_that_has_no_mininet_is_refused_with_what_to_use(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RunError, match=r"no Mininet: use the environment that 'make setup' makes$"):
        Confinement.start()


@pytest.fixture
def lent(tmp_path):
    """A copy of the set-up scripts in a folder that belongs to another user."""
    folder = tmp_path / "lent"
    shutil.copytree(ROOT / "setup", folder / "setup")
    subprocess.run(["chown", "-R", str(SOMEBODY), folder], check=True)
    return folder


def owners(folder):
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def test_what_root_makes_in_the_folder_of_another_user_becomes_theirs(lent):
    def root_runs(*command):
        return subprocess.run(command, cwd=lent, env=without("LOKO_BUILD"), check=False).returncode

    assert root_runs("setup/with-tools", "bash", "-c", "mkdir made && touch made/file && exit 3") == 3
    assert (lent / "made/file").exists()
    assert owners(lent) == {SOMEBODY}
    assert root_runs("bash", "-c", ". setup/step.sh; begin trial; logged trial true; remember trial key") == 0
    assert (lent / ".setup/trial.done").exists()
    assert owners(lent) == {SOMEBODY}


def test_a_result_names_the_commit_of_a_repository_of_another_user_and_never_that_of_one_around_it(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as in a hook of another repository
    inner = tmp_path / "inner"
    inner.mkdir()
    surroundings = without("GIT_DIR")
    for words in (
        ["init", "--quiet"],
        [
            "-c",
            "user.name=I",
            "-c",
            "user.email=i@example.org",
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            "One",
        ],
    ):
        subprocess.run(["git", "-C", tmp_path, *words], check=True, env=surroundings)
    subprocess.run(["chown", "-R", str(SOMEBODY), tmp_path / ".git", tmp_path], check=True)
    assert len(provenance.commit_of(tmp_path)) == 12
    assert provenance.commit_of(inner) == "unknown"
