"""`make test` goes on where an earlier run of the same files ended: `tests/harness/passed_before.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import passed_before
import pytest

LIGHT = {"PYTHONPATH": str(Path(passed_before.__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
IN_WORKERS = ("-p", "xdist", "--numprocesses", "2")
TESTS = """
import pathlib, pytest

def note(name):
    with open(pathlib.Path(__file__).parent.parent / "ran", "a") as file:
        file.write(name + " ")

def test_passes():
    note("passes")

def test_fails():
    note("fails")
    assert (pathlib.Path(__file__).parent.parent / "mended").exists()

def test_is_skipped():
    note("skipped")
    pytest.skip("here")

@pytest.fixture
def torn():
    yield
    raise ValueError

def test_is_torn_down_badly(torn):
    note("torn")

@pytest.mark.xfail
def test_is_expected_to_fail():
    note("expected")
    assert 0
"""


class Project:
    """A repository with tests that note, beside it, which of them run."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self.ran = folder / "ran"
        self.mended = folder / "mended"
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        (self.root / ".gitignore").write_text(".pytest_cache\n__pycache__\nignored\n")
        self.tests = self.root / "test_all.py"
        self.tests.write_text(TESTS)
        (self.root / "pytest.ini").write_text("[pytest]\n")

    def run(self, *options: str, step: str = "1", **settings: str) -> tuple[list[str], str]:
        """Run pytest, as a step of several unless `step` is empty; return what ran, and what is printed.

        Its last line is the exit status.
        """
        self.ran.write_text("")
        words = [sys.executable, "-m", "pytest", "-p", "passed_before", *options]
        place = os.environ | LIGHT | {passed_before.STEP: step} | settings
        done = subprocess.run(words, cwd=self.root, env=place, capture_output=True, text=True, check=False)
        return sorted(self.ran.read_text().split()), f"{done.stdout}\n{done.returncode}"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


ALL = ["expected", "fails", "passes", "skipped", "torn"]


def test_only_what_has_passed_is_left_out(project: Project) -> None:
    assert project.run()[0] == ALL
    ran, printed = project.run()
    assert ran == ["expected", "fails", "skipped", "torn"]
    assert (
        "\n1 tests passed before, with these same files; to repeat them: make test SKIP_UNCHANGED=\n"
        in printed
    )
    project.mended.touch()
    assert "fails" in project.run()[0]
    assert project.run()[0] == ["expected", "skipped", "torn"]


@pytest.mark.parametrize("options", [(), IN_WORKERS])
def test_a_run_with_nothing_left_to_do_succeeds(project: Project, options: tuple[str, ...]) -> None:
    project.tests.write_text("def test_passes():\n    pass\n")
    assert project.run(*options)[1].endswith("\n0")
    printed = project.run(*options)[1]
    assert printed.endswith("\n0")
    assert "1 passed" not in printed
    assert project.run(*options, "-k", "unknown", step="")[1].endswith(
        f"\n{int(pytest.ExitCode.NO_TESTS_COLLECTED)}"
    )


def test_any_change_of_what_git_does_not_ignore_counts(project: Project) -> None:
    other = project.root / "labs/other.yml"
    other.parent.mkdir()
    other.write_text("1")
    subprocess.run(["git", "add", "."], cwd=project.root, check=True)
    seen = [passed_before.fingerprint(project.root)]
    (project.root / "ignored").touch()
    assert passed_before.fingerprint(project.root) == seen[0]
    for change in (
        lambda: other.write_text("2"),
        lambda: other.chmod(0o755),
        lambda: other.with_name("new").touch(),
        lambda: other.with_name("new").rename(other.with_name("renamed")),
        other.unlink,
        lambda: other.symlink_to("elsewhere"),
    ):
        change()
        seen.append(passed_before.fingerprint(project.root))
    assert None not in seen
    assert len(set(seen)) == len(seen)


def test_after_a_change_everything_is_repeated(project: Project) -> None:
    project.run()
    (project.root / "new").touch()
    assert project.run()[0] == ALL


def test_what_passes_while_files_are_edited_does_not_count(project: Project) -> None:
    project.tests.write_text(
        TESTS.replace('note("passes")', 'note("passes"); pathlib.Path("edited").touch()')
    )
    assert "passes" in project.run()[0]
    (project.root / "edited").unlink()
    assert "passes" in project.run()[0]


def test_outside_of_make_test_everything_runs(project: Project) -> None:
    project.run()
    assert project.run(step="")[0] == ALL
    assert "passes" not in project.run()[0]


def test_without_git_everything_runs(project: Project) -> None:
    project.run(GIT_DIR="/nowhere")
    assert project.run(GIT_DIR="/nowhere")[0] == ALL
