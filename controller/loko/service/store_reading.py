"""All that a store holds, read from its tables and checked; also from stores that have no version yet."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import ValidationError

from loko.document import document_errors
from loko.service.store_document import StoreDocument
from loko.service.store_schema import (
    APPLICATION,
    COLUMNS,
    VERSION,
    checksum,
    difference,
    schema_difference,
    shape,
)

LAST_NUMBER: Final = "last-number"
"""The circumstance that keeps the highest number ever given to a flow."""
_UNVERSIONED: Final = {
    "circumstances": ("name", "value"),
    "flows": ("number", "id", "state", "flow", "path"),
    "turns": ("number", "slot", "period_ns"),
    "debts": ("server", "amount"),
    "notes": ("number", "at_ms", "kind", "name", "text", "warning"),
}
"""The tables of a store without a version. The oldest ones have only flows and circumstances."""
_UNWRITTEN: Final = {"openflow": "1.0"}
"""Circumstances that stores without a version need not name: there was no choice yet."""
_UNWRITTEN_OF_ADMISSION: Final = {**_UNWRITTEN, "padding": "0", "target-ms": "None", "robust": "no"}

_NOT_STORED: Final = {"promise": None, "broken": None}
"""Columns of a flow that stores without a version lack."""


_OF_ENVIRONMENT: Final = frozenset(
    {
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
        *(sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
    }
)
"""Errors of SQLite that the disk, or another program, causes."""


class DamagedError(Exception):
    """A store cannot be read as it should be. The text says what is wrong, as a clause."""


class ForeignError(Exception):
    """A database is no store."""


class NewerError(Exception):
    """A store is of a later version than this program knows."""


class OlderError(Exception):
    """A store is of an earlier version than this program reads."""


def is_of_environment(error: sqlite3.Error) -> bool:
    """Return whether an error is no fault of the file's contents. Its code is above the first 8 bits."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_ENVIRONMENT


def version_of(database: sqlite3.Connection) -> int:
    """Return the version of a store; 0 if it has none.

    Raises `ForeignError`, `NewerError` or `OlderError`.
    """
    [application] = database.execute("PRAGMA application_id").fetchone()
    [version] = database.execute("PRAGMA user_version").fetchone()
    if application == 0 and version == 0 and {"flows", "circumstances"} <= shape(database).keys():
        return 0
    if application != APPLICATION or version < 1:
        raise ForeignError
    if version > VERSION:
        raise NewerError
    if version < VERSION:
        raise OlderError
    return VERSION


def read(database: sqlite3.Connection) -> StoreDocument:
    """Return all that a store holds, whatever its version.

    Raises `DamagedError`, `ForeignError`, `NewerError` or `OlderError`.
    """
    try:
        version = version_of(database)
        # More than `quick_check`: it also compares the index of ids with the flows.
        [told] = database.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        if is_of_environment(error):
            raise
        raise DamagedError(str(error)) from None
    if told != "ok":
        raise DamagedError(" ".join(str(told).removeprefix("*** in database main ***").split()))
    return content(database) if version else _document(database, _unversioned)


def content(database: sqlite3.Connection) -> StoreDocument:
    """Return all that a store of this version holds. Raises `DamagedError`."""
    return _document(database, _values)


def _document(
    database: sqlite3.Connection, values_of: Callable[[sqlite3.Connection], dict[str, Any]]
) -> StoreDocument:
    try:
        return StoreDocument.model_validate(values_of(database))
    except ValidationError as error:
        problem = document_errors(error)[0]
        raise DamagedError(f"{problem.name}: {problem.message}") from None
    except sqlite3.Error as error:
        if is_of_environment(error):
            raise
        raise DamagedError(str(error)) from None


def _values(database: sqlite3.Connection) -> dict[str, Any]:
    if told := schema_difference(database):
        raise DamagedError(told)
    named = dict(_rows(database, "circumstances"))
    last = named.pop(LAST_NUMBER, None)
    if last is None or not last.isdecimal():
        raise DamagedError("it does not say which number its last flow had")
    return {
        "version": VERSION,
        "circumstances": named,
        "last_number": int(last),
        "flows": [flow_values(row) for row in _rows(database, "flows")],
        "residual_backlogs": dict(_rows(database, "residual_backlogs")),
        "notes": [note_values(row) for row in _rows(database, "notes")],
    }


def _rows(database: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table by its first column, without their checksums. Raises `DamagedError`."""
    names = ", ".join((*COLUMNS[table], "checksum"))
    query = f"SELECT {names} FROM {table} ORDER BY {COLUMNS[table][0]}"  # noqa: S608 - our names
    for *row, stored in database.execute(query):
        if checksum(table, row) != stored:
            raise DamagedError(f"the checksum of a row of {table} is wrong ({COLUMNS[table][0]} {row[0]!r})")
        yield tuple(row)


def flow_values(row: tuple[Any, ...]) -> dict[str, Any]:
    """Return a row of flows as plain values of a `StoredFlowDocument`. Raises `DamagedError`."""
    number, flow_id, state, document = row
    try:
        details = json.loads(document)
        told_id = details["flow"]["id"]
    except (ValueError, TypeError, KeyError):
        raise DamagedError(f"what it says of flow {flow_id!r} is no JSON of a flow") from None
    if told_id != flow_id:
        raise DamagedError(f"flow {number} has two ids")
    return {"number": number, "state": state, **details}


def note_values(row: tuple[Any, ...]) -> dict[str, Any]:
    """Return a row of notes as plain values of a `NoteDocument`."""
    return {**dict(zip(COLUMNS["notes"], row, strict=True)), "warning": bool(row[-1])}


def _unversioned(database: sqlite3.Connection) -> dict[str, Any]:
    there = shape(database)
    optional = _UNVERSIONED.keys() - {"circumstances", "flows"} - there.keys()
    expected = {name: columns for name, columns in _UNVERSIONED.items() if name not in optional}
    if told := difference(there, expected):
        raise DamagedError(told)

    def rows(table: str) -> list[tuple[Any, ...]]:
        if table in optional:
            return []
        names = ", ".join(_UNVERSIONED[table])
        return database.execute(f"SELECT {names} FROM {table} ORDER BY 1").fetchall()  # noqa: S608 - our names

    send_slots = {number: {"slot": slot, "period_ns": period_ns} for number, slot, period_ns in rows("turns")}
    granted = []
    for number, flow_id, state, flow, path in rows("flows"):
        try:
            hops = [{"switch": switch, "output_port": port} for switch, port in json.loads(path)]
            document = json.dumps(
                {"flow": json.loads(flow), "path": hops, "send_slot": send_slots.get(number), **_NOT_STORED}
            )
        except (ValueError, TypeError):
            raise DamagedError(f"what it says of flow {flow_id!r} is no JSON of a flow") from None
        granted.append(flow_values((number, flow_id, state, document)))
    named = dict(rows("circumstances"))
    if (padding := named.pop("fillers", None)) is not None:
        named["padding"] = padding
    last = database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'flows'").fetchone()
    return {
        "version": VERSION,
        "circumstances": {**(_UNWRITTEN if "schedule" in named else _UNWRITTEN_OF_ADMISSION), **named},
        "last_number": max([last[0] if last else 0, *(flow["number"] for flow in granted)]),
        "flows": granted,
        "residual_backlogs": dict(rows("debts")),
        "notes": [note_values(row) for row in rows("notes")],
    }
