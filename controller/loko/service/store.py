"""The promises on disk: SQLite, whole batches in one transaction each."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from loko.document import InputError
from loko.service.history import CAPACITY
from loko.service.migration import Migration
from loko.service.outcome import (
    Delete,
    Insert,
    LoggedEvent,
    Rewrite,
    StoredFlow,
    UpdateState,
    Write,
    WriteBacklogs,
)
from loko.service.store_document import BEGUN, StoreDocument, flow_row, note_row
from loko.service.store_file import Lock, one_line, open_for_writing, refuse_memory
from loko.service.store_reading import LAST_NUMBER, content, is_of_environment
from loko.service.store_schema import checksum, insert
from loko.user_error import EnvironmentFaultError, UserError


class StoreError(Exception):
    """The disk did not take what was to be stored."""


class StoreUnavailableError(StoreError):
    """It did not, but may do so later: it is full, read-only, or has failed. Nothing of it was stored."""


def _in_one_line(error: StoreError) -> UserError:
    """Return the error that ends a start at which the disk took nothing."""
    kind = EnvironmentFaultError if isinstance(error, StoreUnavailableError) else InputError
    return kind(f"store {error}")


class Store:
    """The flows of one lab on disk. Only one process can use it at a time: a second one is refused.

    Calls may come from different threads, one at a time. With WAL mode and `synchronous = FULL`, what `write`
    has written survives a kill and a power cut.
    """

    def __init__(
        self, path: Path, *, lab: str, options: Mapping[str, str], migration: Migration | None = None
    ) -> None:
        """Open or create a store. Raises `InputError` if it is damaged, or of other circumstances.

        A `migration` is carried out first.
        """
        self._path = path
        refuse_memory(path)
        with one_line(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(path)
        try:
            self._database = open_for_writing(path)
        except BaseException:
            self._lock.release()
            raise
        self._database.create_function("row_checksum", -1, lambda table, *row: checksum(table, row))
        try:
            with one_line(path):
                if migration is not None:
                    self._migrate(migration)
                self._compare({"lab": lab, **options})
        except UserError:
            self.close()
            raise

    def close(self) -> None:
        """Close the file, so that another process can use it."""
        self._database.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def content(self) -> StoreDocument:
        """Return all that the store holds. Raises `InputError` if it is damaged."""
        with one_line(self._path):
            return content(self._database)

    def load(self) -> list[StoredFlow]:
        """Return the flows in the order of their numbers."""
        return [flow.stored for flow in self.content().flows]

    def backlogs(self) -> dict[str, float]:
        """Return what released flows may have left, by server, as of when it was written."""
        return self.content().residual_backlogs

    def notes(self) -> list[LoggedEvent]:
        """Return the latest of what has happened, in order."""
        return [note.noted for note in self.content().notes]

    def last_number(self) -> int:
        """Return the highest number ever given to a flow, also to one that is gone."""
        return self.content().last_number

    def begin(self, name: str, flows_after: Callable[[int], Sequence[StoredFlow]]) -> bool:
        """Take up the flows of a document with this name, only once: not again after they were released.

        `flows_after` makes them, with numbers above the one that it is given. Return whether they were taken
        up now. Raises `InputError` if the disk does not take them; then none is taken up.
        """
        if self.content().circumstances.get(BEGUN) == name:
            return False
        writes = [Insert(flow) for flow in flows_after(self.last_number())]
        try:
            self._transact(writes, begun=name)
        except StoreError as error:
            raise _in_one_line(error) from None
        return True

    def write(self, writes: Iterable[Write]) -> None:
        """Carry out all writes or, if the process ends meanwhile, none.

        Raises `StoreUnavailableError` if the disk takes nothing now, `StoreError` if it never will.
        """
        self._transact(writes)

    def _transact(
        self,
        writes: Iterable[Write],
        *,
        begun: str | None = None,
        circumstances: Mapping[str, str] | None = None,
        forgets_notes: bool = False,
    ) -> None:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            for write in writes:
                self._write(write)
            if begun is not None:
                insert(self._database, "circumstances", [(BEGUN, begun)], replacing=True)
            if circumstances is not None:
                self._restate(circumstances)
            if forgets_notes:
                self._database.execute("DELETE FROM notes")
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            if self._database.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")
            kind = StoreUnavailableError if is_of_environment(error) else StoreError
            raise kind(f"{self._path}: {error}") from None

    def _write(self, write: Write) -> None:
        database = self._database
        match write:
            case Insert(stored=stored):
                insert(database, "flows", [flow_row(stored)])
                insert(database, "circumstances", [(LAST_NUMBER, str(stored.number))], replacing=True)
            case UpdateState(number=number, state=state):
                database.execute(
                    "UPDATE flows SET state = :state,"
                    " checksum = row_checksum('flows', number, id, :state, document) WHERE number = :number",
                    {"number": number, "state": state.value},
                )
            case Rewrite(stored=stored):
                insert(database, "flows", [flow_row(stored)], replacing=True)
            case Delete(number=number):
                database.execute("DELETE FROM flows WHERE number = ?", (number,))
            case LoggedEvent(number=number):
                insert(database, "notes", [note_row(write)], replacing=True)
                database.execute("DELETE FROM notes WHERE number <= ?", (number - CAPACITY,))
            case WriteBacklogs(backlogs=backlogs):
                for server, amount in backlogs.items():
                    if amount is None:
                        database.execute("DELETE FROM residual_backlogs WHERE server = ?", (server,))
                    else:
                        insert(database, "residual_backlogs", [(server, float(amount))], replacing=True)

    def _compare(self, circumstances: Mapping[str, str]) -> None:
        """Check that flows were granted under the same circumstances: under others, no guarantee would hold.

        An empty store takes over the new circumstances. Raises `InputError` if one differs.
        """
        held = self.content()
        written = held.options
        if not held.flows and not held.residual_backlogs:
            try:
                # Notes of another lab name switches that are not here.
                is_another = written.get("lab") != circumstances["lab"]
                self._transact([], circumstances=circumstances, forgets_notes=is_another)
            except StoreError as error:
                raise _in_one_line(error) from None
            return
        for name in sorted(written.keys() | circumstances.keys(), key=lambda name: (name != "lab", name)):
            before, after = written.get(name), circumstances.get(name)
            if before != after:
                granted = f"without {name}" if before is None else f"with {name} {before}"
                what = "flows that were" if held.flows else "what flows have left that were"
                mend = "delete them first" if held.flows else "serve once more as before for a second"
                raise InputError(
                    f"store {self._path}: holds {what} granted {granted}, not"
                    f" {'without' if after is None else after}; {mend}, give another store, or add"
                    " --migrate to see what would become of them"
                )

    def _migrate(self, migration: Migration) -> None:
        """Write what becomes of the flows, under new circumstances, or nothing. Raises `InputError`."""
        if self.content() != migration.held:
            raise InputError(f"store {self._path}: has changed meanwhile; look again what would break")
        backlogs = WriteBacklogs(dict.fromkeys(migration.held.residual_backlogs))
        try:
            self._transact([*migration.writes, backlogs], circumstances=migration.circumstances)
        except StoreError as error:
            raise _in_one_line(error) from None

    def _restate(self, circumstances: Mapping[str, str]) -> None:
        """Replace the circumstances, within a transaction."""
        kept = {LAST_NUMBER, BEGUN} | circumstances.keys()
        gone = [(name,) for name in self.content().circumstances.keys() - kept]
        self._database.executemany("DELETE FROM circumstances WHERE name = ?", gone)
        insert(self._database, "circumstances", circumstances.items(), replacing=True)
