"""The promises on disk: SQLite, whole batches in one transaction each."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from loko.document import InputError
from loko.flow import FlowDocument
from loko.network import Hop
from loko.one_line_error import OF_ENVIRONMENT, EnvironmentFaultError, OneLineError
from loko.serve.history import KEPT
from loko.serve.outcome import (
    Change,
    Erase,
    FlowState,
    Happening,
    Insert,
    Noted,
    Owe,
    StoredFlow,
    Turn,
    Write,
)

_UNWRITTEN: Final = {"openflow": "1.0", "robust": "no"}
"""Circumstances of older stores, which do not state them."""
_BEGUN: Final = "begun-with"
"""The circumstance that names the document whose flows were taken up at the beginning."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS circumstances (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS flows (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('accepted', 'installed', 'removing')),
    flow TEXT NOT NULL,
    path TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS turns (
    number INTEGER PRIMARY KEY,
    slot INTEGER NOT NULL,
    period_ns INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS debts (server TEXT PRIMARY KEY, amount REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS notes (
    number INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    warning INTEGER NOT NULL
) STRICT;
"""


_OF_ENVIRONMENT: Final = frozenset(
    {
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
        *(sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
    }
)
"""What SQLite reports if the disk, or another program, is the cause."""


class StoreError(Exception):
    """The disk did not take what was to be stored."""


class StoreUnavailableError(StoreError):
    """It did not, but may do so later: it is full, read-only, or has failed. Nothing of it was stored."""


def _is_of_environment(error: sqlite3.Error) -> bool:
    """Return whether an error is no fault of the file's contents. Its code is above the first 8 bits."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_ENVIRONMENT


class Store:
    """The flows of one lab on disk. Only one process can use it at a time: a second one is refused.

    Calls may come from different threads, one at a time. With WAL mode and `synchronous = FULL`, what `write`
    has written survives a kill and a power cut.
    """

    def __init__(self, path: Path, *, lab: str, options: Mapping[str, str]) -> None:
        """Open or create a store. Raises `InputError` if it belongs to another lab or other options."""
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))  # says why not, if not
            self._database = sqlite3.connect(path, isolation_level=None, timeout=0.2, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise InputError(
                    f"--store {path}: another service uses it; end that or give another"
                ) from None
            raise self._refusal(error) from None
        except sqlite3.DatabaseError:
            raise InputError(f"--store {path}: is no store of flows; give another file") from None
        except OSError as error:
            if error.errno in OF_ENVIRONMENT:
                raise EnvironmentFaultError(f"--store {path}: {error.strerror}") from None
            raise InputError(f"--store {path}: {error.strerror}") from None
        try:
            self._compare({"lab": lab, **options})
        except InputError:
            self.close()
            raise
        except sqlite3.OperationalError as error:
            self.close()
            raise self._refusal(error) from None

    def _refusal(self, error: sqlite3.Error) -> OneLineError:
        kind = EnvironmentFaultError if _is_of_environment(error) else InputError
        return kind(f"--store {self._path}: {error}")

    def close(self) -> None:
        """Close the file, so that another process can use it."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load(self) -> list[StoredFlow]:
        """Return the flows in the order of their numbers."""
        rows = self._database.execute("SELECT number, state, flow, path FROM flows ORDER BY number")
        turns = {
            number: Turn(slot, period_ns)
            for number, slot, period_ns in self._database.execute("SELECT number, slot, period_ns FROM turns")
        }
        return [
            StoredFlow(
                number=number,
                flow=FlowDocument.model_validate_json(flow).flow,
                path=tuple(Hop(switch=switch, output_port=port) for switch, port in json.loads(path)),
                state=FlowState(state),
                turn=turns.get(number),
            )
            for number, state, flow, path in rows
        ]

    def debts(self) -> dict[str, float]:
        """Return what released flows may have left, by server, as of when it was written."""
        return dict(self._database.execute("SELECT server, amount FROM debts"))

    def notes(self) -> list[Noted]:
        """Return the latest of what has happened, in order."""
        rows = self._database.execute(
            "SELECT number, at_ms, kind, name, text, warning FROM notes ORDER BY number"
        )
        return [
            Noted(number, at_ms, Happening(kind=kind, name=name, text=text, warning=bool(warning)))
            for number, at_ms, kind, name, text, warning in rows
        ]

    def last_number(self) -> int:
        """Return the highest number ever given to a flow, also to one that is gone."""
        row = self._database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'flows'").fetchone()
        return int(row[0]) if row else 0

    def begin(self, name: str, flows_after: Callable[[int], Sequence[StoredFlow]]) -> bool:
        """Take up the flows of a document with this name, only once: not again after they were released.

        `flows_after` makes them, with numbers above the one that it is given. Return whether they were taken
        up now. Raises `InputError` if the disk does not take them; then none is taken up.
        """
        known = self._database.execute("SELECT value FROM circumstances WHERE name = ?", (_BEGUN,)).fetchone()
        if known == (name,):
            return False
        writes = [Insert(flow) for flow in flows_after(self.last_number())]
        try:
            self._transact(writes, begun=name)
        except StoreUnavailableError as error:
            raise EnvironmentFaultError(f"--store {error}") from None
        except StoreError as error:
            raise InputError(f"--store {error}") from None
        return True

    def write(self, writes: Iterable[Write]) -> None:
        """Carry out all writes or, if the process ends meanwhile, none.

        Raises `StoreUnavailableError` if the disk takes nothing now, `StoreError` if it never will.
        """
        self._transact(writes)

    def _transact(self, writes: Iterable[Write], *, begun: str | None = None) -> None:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            for write in writes:
                self._write(write)
            if begun is not None:
                self._database.execute("INSERT OR REPLACE INTO circumstances VALUES (?, ?)", (_BEGUN, begun))
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            if self._database.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")
            kind = StoreUnavailableError if _is_of_environment(error) else StoreError
            raise kind(f"{self._path}: {error}") from None

    def _write(self, write: Write) -> None:
        match write:
            case Insert(stored=stored):
                flow = json.dumps(stored.flow._asdict())
                path = json.dumps([[hop.switch, hop.output_port] for hop in stored.path])
                self._database.execute(
                    "INSERT INTO flows VALUES (?, ?, ?, ?, ?)",
                    (stored.number, stored.flow.id, stored.state.value, flow, path),
                )
                if stored.turn is not None:
                    self._database.execute(
                        "INSERT INTO turns VALUES (?, ?, ?)", (stored.number, *stored.turn)
                    )
            case Change(number=number, state=state):
                self._database.execute("UPDATE flows SET state = ? WHERE number = ?", (state.value, number))
            case Erase(number=number):
                for table in ("flows", "turns"):
                    self._database.execute(f"DELETE FROM {table} WHERE number = ?", (number,))  # noqa: S608 - our names
            case Noted(number=number, at_ms=at_ms, what=what):
                self._database.execute(
                    "INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?, ?)",
                    (number, at_ms, what.kind, what.name, what.text, what.warning),
                )
                self._database.execute("DELETE FROM notes WHERE number <= ?", (number - KEPT,))
            case Owe(debts=debts):
                for server, amount in debts.items():
                    self._database.execute("DELETE FROM debts WHERE server = ?", (server,))
                    if amount is not None:
                        self._database.execute("INSERT INTO debts VALUES (?, ?)", (server, amount))

    def _compare(self, circumstances: Mapping[str, str]) -> None:
        """Check that flows were granted under the same circumstances: under others, no guarantee would hold.

        An empty store takes over the new circumstances. Raises `InputError` if one differs.
        """
        flows, debts = (
            self._database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our names
            for table in ("flows", "debts")
        )
        if not flows and not debts:
            named = self._database.execute("SELECT value FROM circumstances WHERE name = 'lab'").fetchone()
            if named != (circumstances["lab"],):
                self._database.execute("DELETE FROM notes")  # they name the switches of another
            self._database.executemany(
                "INSERT OR REPLACE INTO circumstances VALUES (?, ?)", list(circumstances.items())
            )
            return
        written = dict(self._database.execute("SELECT name, value FROM circumstances").fetchall())
        for name, value in {**_UNWRITTEN, **written}.items():
            if circumstances.get(name, value) != value:
                held = "flows that were" if flows else "what flows have left that were"
                mend = "delete them first" if flows else "serve once more as before for a second"
                raise InputError(
                    f"--store {self._path}: holds {held} granted with {name} {value}, not"
                    f" {circumstances[name]}; {mend}, or give another store"
                )
