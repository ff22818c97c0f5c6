"""Where a result comes from. In virtual time only the day depends on the clock, nothing on the machine."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[1]
_PACKAGES = ("loko-testbed", "switch_emulator", "numpy", "pyarrow", "matplotlib")


@cache
def commit() -> str:
    """The checkout's commit; a mark of uncommitted changes follows, as in ``1a2b3c4+5d6e``."""
    head = _git("rev-parse", "HEAD")
    if head is None:
        return "unknown"
    changes = _git("diff", "HEAD", "--", ":!*.md") or ""
    mark = f"+{hashlib.sha256(changes.encode()).hexdigest()[:8]}" if changes else ""
    return head.strip()[:12] + mark


@cache
def versions() -> dict[str, str]:
    """Versions of what computes and writes the results."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def today() -> str:
    """The day in UTC, as in `2026-11-21`; that of `SOURCE_DATE_EPOCH` if it is set."""
    epoch_s = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch_s), UTC) if epoch_s.isdigit() else datetime.now(UTC)
    return now.date().isoformat()


def machine() -> str:
    """The machine in one line, for runs in real time."""
    return f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} CPUs"


def _git(*arguments: str) -> str | None:
    """What git says of this checkout, whoever owns it; of no other that it may lie in."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    surroundings["GIT_CEILING_DIRECTORIES"] = str(_CHECKOUT.parent)
    try:
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(_CHECKOUT), *arguments],
            env=surroundings,
            capture_output=True,
            check=True,
            timeout=30,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
