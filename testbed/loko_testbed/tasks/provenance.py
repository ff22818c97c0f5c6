"""Provenance of results: commit, versions, machine.

The provenance stored in a result of virtual time depends neither on the clock nor on the machine; what does
depend on them goes to `loko_testbed.reproduce.runs`.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PYTHONPATH = Path(__file__).resolve().parents[2]
_CHECKOUT = _PYTHONPATH.parent if _PYTHONPATH.name == "testbed" else _PYTHONPATH
"""The source's folder, or the folder where the package is installed."""
_MARKS = ("", "loko/data/")
"""Folders of the files below, in that of the source: unpacked source, an installed package."""
_COMMIT = "COMMIT"
_SUMS = "SHA256SUMS"
"""Files that stand in for git where there is none; `_SUMS` has the format of `sha256sum --check`."""
MARKS = (_COMMIT, _SUMS)
_PACKAGES = ("loko-testbed", "switch_emulator", "numpy", "pyarrow", "vl-convert-python")


@cache
def commit() -> str:
    """Return the commit of this program's source as it was when first asked for, as `commit_of` does."""
    return commit_of(_CHECKOUT)


def commit_of(source: Path) -> str:
    """Return the commit of a folder, with a suffix for uncommitted changes, as in ``1a2b3c4+5d6e``.

    Without git it is what the folder was packed with, else "unknown".
    """
    head = _git(source, "rev-parse", "HEAD")
    if head is None:
        return _packed_commit(source) or "unknown"
    changes = _git(source, "diff", "HEAD", "--", ":!*.md") or ""
    mark = f"+{hashlib.sha256(changes.encode()).hexdigest()[:8]}" if changes else ""
    return head.strip()[:12] + mark


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute and write results."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            if package == "switch_emulator" and (its_own := _emulator_version()) is not None:
                versions[package] = its_own
    return versions


def _emulator_version() -> str | None:
    """Return the emulator's version if it was installed as part of this project's wheel."""
    try:
        from switch_emulator import __version__  # noqa: PLC0415 - slow to import, so only where needed
    except ImportError:
        return None
    return __version__


def today() -> str:
    """Return the date in UTC, as in `2026-11-21`; `SOURCE_DATE_EPOCH` overrides it."""
    epoch_s = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch_s), UTC) if epoch_s.isdigit() else datetime.now(UTC)
    return now.date().isoformat()


def checkout() -> Path:
    """Return the folder of the source."""
    return _CHECKOUT


def packed_marks(files: Mapping[str, Path]) -> dict[str, bytes]:
    """Return the files to pack beside `files`, by name, from which `commit` works without git."""
    return marks_of({name: sha256_of(path) for name, path in files.items()}, commit())


def marks_of(sums: Mapping[str, str], named: str) -> dict[str, bytes]:
    """Return the files `MARKS` beside files with these checksums, by name, of this commit."""
    lines = "".join(f"{known}  {name}\n" for name, known in sorted(sums.items()))
    return {_COMMIT: f"{named}\n".encode(), _SUMS: lines.encode()}


def _packed_commit(source: Path) -> str | None:
    """Return the commit of unpacked source, with a suffix if a file differs from what was packed."""
    folder = next((source / at for at in _MARKS if (source / at / _COMMIT).is_file()), source)
    try:
        named = (folder / _COMMIT).read_text(encoding="ascii").strip()
        sums = [line.split("  ", 1) for line in (folder / _SUMS).read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return None
    changed = []
    for known, name in (pair for pair in sums if len(pair) == 2 and not pair[1].endswith(".md")):
        path = source / name
        now = sha256_of(path) if path.is_file() else ""
        if now != known:
            changed.append(f"{name} {now}")
    return named + (f"+{hashlib.sha256(repr(changed).encode()).hexdigest()[:8]}" if changed else "")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 checksum of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tracked_files() -> list[str] | None:
    """Return all existing files that git tracks, sorted; None if this is no checkout."""
    listed = _git(_CHECKOUT, "ls-files", "-z")
    if listed is None:
        return None
    return sorted(name for name in listed.split("\0") if name and (_CHECKOUT / name).is_file())


def committed(named: str) -> tuple[bytes, bytes] | None:
    """Return a commit as git keeps it, and the listing of its tree; None if this checkout lacks it.

    The listing has a line ``MODE TYPE ID<tab>PATH`` for each file, as `git ls-tree -r` prints it.
    """
    commit = _git_output(_CHECKOUT, "cat-file", "commit", named)
    tree = _git_output(_CHECKOUT, "-c", "core.quotePath=off", "ls-tree", "-r", "--full-tree", named)
    return None if commit is None or tree is None else (commit, tree)


def this_moment() -> str:
    """Return the current time in UTC, as in ``2026-11-23T01:40:00Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def machine() -> str:
    """Describe this machine in one line."""
    return f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} CPUs"


def _git(source: Path, *arguments: str) -> str | None:
    """Return what git prints as text; otherwise like `_git_output`."""
    printed = _git_output(source, *arguments)
    return None if printed is None else printed.decode(errors="replace")


def _git_output(source: Path, *arguments: str) -> bytes | None:
    """Run git in a folder, whoever owns it, and return its output; None if that fails.

    A repository that encloses the folder is not searched.
    """
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    surroundings["GIT_CEILING_DIRECTORIES"] = str(source.parent)
    try:
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(source), *arguments],
            env=surroundings,
            capture_output=True,
            check=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
