"""A repository of a few files of the source, in place of the checkout: its archives are quick to read."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from loko_testbed.tasks import provenance

PART: Final = (
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "labs/two-switch/lab.yml",
    "setup/step.sh",
    "setup/uv.sh",
    "testbed/loko_testbed/cli/main.py",
)
"""The files: among them programs, and one in the midst of nothing else of its folder."""
_ALWAYS: Final = "2026-01-01T00:00:00Z"
"""When it was committed, so that the commit is the same for all workers of the tests."""


@cache
def is_checkout() -> bool:
    """Return whether this is a git checkout, from which alone an archive is made."""
    return provenance.tracked_files() is not None


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, as nobody in particular, and return what it prints."""
    somebody = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Test"), ("EMAIL", "test@localhost"), ("DATE", _ALWAYS))
    }
    command = ["git", "-c", "safe.directory=*", "-c", "commit.gpgsign=false", "-C", str(folder), *words]
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        command, env=surroundings | somebody, check=True, capture_output=True, text=True
    ).stdout


def make_small_source(folder: Path) -> None:
    """Make such a repository in `folder`, with a commit of all its files."""
    for name in PART:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(provenance.checkout() / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", *PART)
    git(folder, "commit", "--quiet", "--message", "A part of the source")


@contextmanager
def small_source(source: Path) -> Iterator[Path]:
    """Within the block, the program runs from the commit of this checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "_CHECKOUT", source)
        provenance.commit.cache_clear()
        try:
            yield source
        finally:
            provenance.commit.cache_clear()
