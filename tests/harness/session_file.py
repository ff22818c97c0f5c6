"""Files that are expensive to create and only read: one worker creates them for all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def session_file(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder of this name, which `make` has filled once, in one of the workers of this run."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    complete = folder / ".complete"
    with FileLock(f"{folder}.lock"):
        if not complete.exists():
            folder.mkdir()
            make(folder)
            complete.touch()
    return folder
