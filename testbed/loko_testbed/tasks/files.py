"""Write files atomically, and lock folders of results."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loko.document import InputError


@contextmanager
def atomic_replacement(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` if the ``with`` block succeeds."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file in one step: neither a reader nor a crash ever sees half of it. Raises `InputError`."""
    try:
        with atomic_replacement(path) as part:
            part.write_bytes(data)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def output_directory(path: Path) -> Path:
    """Create a directory for results and check that it is writable. Raises `InputError` if it is not."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"--out {path}: cannot be written: {error.strerror}; choose another directory"
        ) from None
    return path


@contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Lock a folder of results against other replays. Raises `InputError` if another one holds the lock.

    The kernel releases the lock when the process ends, however it ends.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"--out {path}: another replay writes there; wait for its end, or choose another directory"
        ) from None
    else:
        yield
    finally:
        os.close(folder)
