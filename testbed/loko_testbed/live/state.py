"""The folder in which live labs are noted, accessible only to their user."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from loko_testbed.simulation.runner import RunError

LABS = Path("/run/loko")
"""Where running labs are noted. They are root's, and so is the folder."""


def state_folder() -> Path:
    """Return the folder for this user's live programs: `LABS` for root, else ``$XDG_RUNTIME_DIR/loko``."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return LABS if os.geteuid() == 0 or not runtime else Path(runtime) / "loko"


def create_state_folder() -> Path:
    """Return the folder, after creating it if it does not exist. Raises `RunError`."""
    folder = state_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made ({error.strerror}): run it as root") from None
    return folder


def remove_if_unused() -> None:
    """Remove the folder if it is empty and nobody has locked it (`loko_testbed.live.exclusion`)."""
    folder = state_folder()
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        with contextlib.suppress(OSError):  # held, not empty, or just removed by another
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder.rmdir()
    finally:
        os.close(held)
