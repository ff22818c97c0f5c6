"""The file of a store: locked, opened, checked, created, copied."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from loko.document import InputError
from loko.service.store_document import StoreDocument, flow_row, note_row
from loko.service.store_reading import (
    LAST_NUMBER,
    DamagedError,
    ForeignError,
    NewerError,
    OlderError,
    is_of_environment,
    read,
    version_of,
)
from loko.service.store_schema import VERSION, create, insert
from loko.service.write_ahead_log import log_damage
from loko.user_error import ENVIRONMENT_FAULT, EnvironmentFaultError

_WAIT_S: Final = 2.0
"""How long to wait for a store that is in use: another command may be looking at it."""
_BUSY_S: Final = 5.0
"""How long a transaction waits for another connection, such as one that makes a backup."""
_LONGEST: Final = 160
"""Characters of what is wrong that fit into a line."""


class Lock:
    """Lets only one process write to a store. SQLite's own locks would keep readers out as well."""

    def __init__(self, path: Path, wait_s: float | None = None) -> None:
        """Take the lock of a store. Raises `InputError` if another process has it, `OSError` for files."""
        self._descriptor = os.open(_beside(path, ".lock"), os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        until_s = time.monotonic() + (_WAIT_S if wait_s is None else wait_s)
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= until_s:
                    self.release()
                    raise InputError(
                        f"store {path}: another service uses it; end that or give another"
                    ) from None
                time.sleep(0.02)

    def release(self) -> None:
        """Let others have the store."""
        os.close(self._descriptor)


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open a store whose lock is held, or create it. It is checked, and of the current version.

    Raises `InputError` in one line.
    """
    with one_line(path):
        if not path.exists():
            create_store(
                path,
                StoreDocument(
                    version=VERSION, circumstances={}, last_number=0, flows=[], residual_backlogs={}, notes=[]
                ),
            )
        _refuse_damaged_log(path)
        database = _connected(path)
        try:
            document = read(database)
            if version_of(database) == 0:
                database.execute(
                    "PRAGMA journal_mode = DELETE"
                )  # its log must not become that of the new file
                database.close()
                _replace(path, document)
                database = _connected(path)
                read(database)
        except BaseException:
            database.close()
            raise
        return database


@contextlib.contextmanager
def reading(path: Path) -> Iterator[tuple[sqlite3.Connection, StoreDocument]]:
    """Open a store as it is at this moment, whether or not a service uses it, and give what it holds.

    Raises `InputError` in one line.
    """
    with one_line(path):
        _refuse_strange_file(path)
        uri = f"{_uri(path)}?mode=ro"
        connected = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_S)
        with contextlib.closing(connected) as database:
            _begin_reading(path, database)
            yield database, read(database)


def _begin_reading(path: Path, database: sqlite3.Connection) -> None:
    """Begin to read the store as it is. Its log is checked unless a service is writing to it."""
    lock = None
    with contextlib.suppress(InputError):
        lock = Lock(path, wait_s=0)
    try:
        if lock is not None:
            _refuse_damaged_log(path)
        database.execute("BEGIN")
        database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    finally:
        if lock is not None:
            lock.release()


def create_store(path: Path, document: StoreDocument) -> None:
    """Write a new store. It appears under its name as a whole, or not at all.

    Raises `InputError` if there is one, `OSError` or `sqlite3.Error` if the disk does not take it.
    """
    if path.exists():
        raise InputError(f"store {path}: is there already; give another file, or remove it first")
    path.parent.mkdir(parents=True, exist_ok=True)
    for end in ("-wal", "-journal"):
        if _size(_beside(path, end)):
            raise InputError(
                f"store {path}: is missing, but its log {_beside(path, end).name} is there; put it back, or"
                " remove the log as well"
            )
    _replace(path, document)


def copy(database: sqlite3.Connection, to: Path) -> None:
    """Copy an open store into a new file. Raises `InputError`, `OSError` or `sqlite3.Error`."""
    if to.exists():
        raise InputError(f"{to}: is there already; give another file, or remove it first")
    with _appearing(to) as new, contextlib.closing(sqlite3.connect(new)) as copied:
        database.backup(copied)


def _replace(path: Path, document: StoreDocument) -> None:
    with _appearing(path) as new, contextlib.closing(sqlite3.connect(new, isolation_level=None)) as database:
        create(database)
        database.execute("BEGIN IMMEDIATE")
        write_document(database, document)
        database.execute("COMMIT")


def write_document(database: sqlite3.Connection, document: StoreDocument) -> None:
    """Write all that a store is to hold into its empty tables, within a transaction."""
    named = {**document.circumstances, LAST_NUMBER: str(document.last_number)}
    insert(database, "circumstances", named.items())
    insert(database, "flows", [flow_row(flow.stored) for flow in document.flows])
    insert(database, "residual_backlogs", document.residual_backlogs.items())
    insert(database, "notes", [note_row(note.noted) for note in document.notes])


@contextlib.contextmanager
def _appearing(path: Path) -> Iterator[Path]:
    """Give a path to write a file at, which appears under its own name when it is complete and on disk."""
    new = _beside(path, ".new")
    for end in ("", "-wal", "-shm", "-journal"):
        _beside(new, end).unlink(missing_ok=True)
    try:
        yield new
        _sync(new)
        new.replace(path.resolve())
        _sync(path.resolve().parent)
    finally:
        new.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _connected(path: Path) -> sqlite3.Connection:
    _refuse_strange_file(path)
    database = sqlite3.connect(
        f"{_uri(path)}?mode=rw", uri=True, isolation_level=None, timeout=_BUSY_S, check_same_thread=False
    )
    try:
        # Before anything is changed: whether it is a database at all.
        version_of(database)
        [mode] = database.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise InputError(f"store {path}: its disk does not support SQLite's WAL mode; give a local file")
        database.execute("PRAGMA synchronous = FULL")
        # Deleted rows are overwritten, so that no repair takes them for flows.
        database.execute("PRAGMA secure_delete = ON")
    except BaseException:
        database.close()
        raise
    return database


def damaged(path: Path, what: str) -> InputError:
    """Return the error for a store that cannot be read as it should be; `what` may quote what is there."""
    readable = "".join(letter if letter.isprintable() else "?" for letter in what)[:_LONGEST]
    return InputError(
        f"store {path}: is damaged: {readable}; 'loko store export --repair {path}' saves what can be read;"
        " or give another store"
    )


@contextlib.contextmanager
def one_line(path: Path) -> Iterator[None]:
    """Turn all that may go wrong with a store's file into an `InputError`, or one of the environment."""
    try:
        yield
    except ForeignError:
        raise InputError(f"store {path}: is no store of flows; give another file") from None
    except NewerError:
        raise InputError(
            f"store {path}: was written by a later version of loko; use that, or give another store"
        ) from None
    except OlderError:
        raise InputError(
            f"store {path}: was written by an earlier version of loko; release its flows with that, or give"
            " another store"
        ) from None
    except DamagedError as error:
        raise damaged(path, str(error)) from None
    except UnicodeDecodeError:
        raise damaged(path, "its declarations are no text") from None
    except sqlite3.Error as error:
        if is_of_environment(error):
            raise EnvironmentFaultError(f"store {path}: {error}") from None
        if isinstance(error, sqlite3.OperationalError):
            raise InputError(f"store {path}: {error}") from None
        if "not a database" in str(error):
            raise InputError(
                f"store {path}: is no store of flows, or its beginning is damaged; give another file, or see"
                f" whether 'loko store export --repair {path}' saves something"
            ) from None
        raise damaged(path, str(error)) from None
    except OSError as error:
        kind = EnvironmentFaultError if error.errno in ENVIRONMENT_FAULT else InputError
        raise kind(f"store {path}: {error.strerror or error}") from None


def refuse_memory(path: Path) -> None:
    """Raise `InputError` for SQLite's name of a database that is on no disk."""
    if path.name == ":memory:":
        raise InputError(f"store {path}: is no file, so a restart would lose every promise; give a file")


def _refuse_damaged_log(path: Path) -> None:
    log = _beside(path, "-wal")
    if _size(log) and (told := log_damage(log.read_bytes())):
        raise damaged(path, told)


def _refuse_strange_file(path: Path) -> None:
    if not path.exists():
        raise InputError(f"store {path}: no such file")
    if path.is_dir():
        raise InputError(f"store {path}: Is a directory; give a file")
    if not path.is_file():
        raise InputError(f"store {path}: is no ordinary file; give another")
    if not path.stat().st_size:
        raise InputError(f"store {path}: is empty, so what it held is lost; put a backup there, or remove it")


def _beside(path: Path, end: str) -> Path:
    """Return the path of a file that SQLite, or this program, keeps beside a store."""
    real = path.resolve()
    return real.with_name(real.name + end)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _uri(path: Path) -> str:
    return f"file:{quote(str(path.resolve()))}"
