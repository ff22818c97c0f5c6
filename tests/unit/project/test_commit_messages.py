"""Commit messages are of one form, in the hook as in `make lint`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).resolve().parents[3] / "setup/commit-messages.sh"
GOOD = "simulator: shrink the working set of a flow"


@pytest.mark.parametrize(
    "message",
    [
        f"{GOOD}\n",
        f"{GOOD}\n\nRings of 1,000 boards forward 1.22 times as many packets.\n",
        "plan, serve: say how much slower switches may be\n# a comment of Git's\n",
        f"new-lab: {'x' * 63}",
    ],
)
def test_the_hook_takes_the_form(message: str, tmp_path: Path) -> None:
    (tmp_path / "message").write_text(message)
    done = run(CHECK, tmp_path / "message")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Shrink the working set", 'not of the form "area: imperative subject"'),
        ("simulator: shrink.", "without a full stop"),
        ("", "not of the form"),
        ("Merge branch 'other'", "a merge; rebase instead"),
        (f"new-lab: {'x' * 64}", "73 characters long, and 72 are the most"),
        (f"{GOOD}\nRings are faster.", "followed by a line that is not empty"),
    ],
)
def test_the_hook_refuses_any_other_in_one_line(message: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "message").write_text(message)
    done = run(CHECK, tmp_path / "message")
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_commits_since_the_check_exists_or_since_a_tag_are_judged(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "Whatever was before")
    (tmp_path / "setup").mkdir()
    check = Path(shutil.copy(CHECK, tmp_path / "setup"))
    commit(tmp_path, "The check itself")
    assert run(check).returncode == 0
    commit(tmp_path, GOOD)
    assert run(check).returncode == 0
    commit(tmp_path, "Something else")
    commit(tmp_path, "It had two lines\nof subject")
    done = run(check)
    assert done.returncode == 1
    assert [line.split('"')[1] for line in done.stderr.splitlines()] == ["It had two lines", "Something else"]
    git(tmp_path, "tag", "v1")
    commit(tmp_path, GOOD)
    assert run(check).returncode == 0


def test_sources_without_their_history_pass(tmp_path: Path) -> None:
    (tmp_path / "setup").mkdir()
    check = shutil.copy(CHECK, tmp_path / "setup")
    assert run(check).returncode == 0


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--message", message)


def git(folder: Path, *words: str) -> None:
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "core.hooksPath=/dev/null"]
    subprocess.run(["git", "-C", str(folder), *author, *words], check=True)


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    alone = {"GIT_CEILING_DIRECTORIES": str(Path(command[0]).parents[2])}
    return subprocess.run(command, env=os.environ | alone, capture_output=True, text=True, check=False)
