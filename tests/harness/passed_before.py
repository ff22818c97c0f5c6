"""A pytest plugin: as a step of `make test`, go on where an earlier run of the same files ended.

A test is not repeated if it has passed since any file of the project changed: all that git does not ignore
counts, so that nothing must be known about what a test reads. What failed, was skipped or was not reached
runs. Only the steps of several leave tests out (`setup/in-turn.sh`, as with `setup/unchanged.sh`);
`make python` never does.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

STEP = "SKIP_UNCHANGED"
"""The variable that says, if it is not empty, that this is a step of several."""
KEY = "loko/passed"
_SAVE_EVERY_S = 20.0
_FILES = "LOKO_TESTED_FILES"


def fingerprint(root: Path) -> str | None:
    """Return a hash of all files below `root` that git does not ignore; None if git does not know."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    try:
        listed = subprocess.run(listing, cwd=root, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    whole = hashlib.sha256(f"{sys.version}\0{sys.prefix}\0".encode())
    for name in sorted(filter(None, listed.split(b"\0"))):
        path = root / os.fsdecode(name)
        try:
            kind = b"link" if path.is_symlink() else b"%o" % (path.stat().st_mode & 0o111)
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        except OSError:  # it was deleted, or is the folder of another repository
            kind, content = b"none", b""
        whole.update(b"%s\0%s\0%s" % (name, kind, hashlib.sha256(content).digest()))
    return whole.hexdigest()


def pytest_configure(config: pytest.Config) -> None:
    if not os.environ.get(STEP):
        return
    if not hasattr(config, "workerinput"):
        os.environ[_FILES] = fingerprint(config.rootpath) or ""  # for the workers, too
    if files := os.environ.get(_FILES):
        config.pluginmanager.register(PassedBefore(config, files), "passed before")


class PassedBefore:
    """Leaves out the tests that have passed with these files, and keeps those that pass now."""

    def __init__(self, config: pytest.Config, files: str) -> None:
        self._config, self._files = config, files
        self._is_worker = hasattr(config, "workerinput")
        kept = config.cache.get(KEY, {}) if config.cache else {}
        self._before: set[str] = set(kept.get("tests", [])) if kept.get("files") == files else set()
        self._passed: set[str] = set()
        self._saved_s = time.monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [item for item in items if item.nodeid in self._before]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in self._before]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._is_worker:
            return
        if report.outcome != "passed" or hasattr(report, "wasxfail"):
            self._passed.discard(report.nodeid)
        elif report.when == "call":
            self._passed.add(report.nodeid)
        if time.monotonic() - self._saved_s > _SAVE_EVERY_S:
            self._save()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._is_worker:
            return
        self._save()
        if self._before and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._before:
            terminalreporter.line(
                f"{len(self._before):,} tests passed before, with these same files;"
                f" to repeat them: make test {STEP}="
            )

    def _save(self) -> None:
        """Keep what has passed, unless files were edited meanwhile."""
        if self._config.cache and fingerprint(self._config.rootpath) == self._files:
            self._config.cache.set(KEY, {"files": self._files, "tests": sorted(self._before | self._passed)})
        self._saved_s = time.monotonic()
