"""The tables of a store, their version, and the checksums of their rows.

Each row has a checksum of its own, since SQLite notices damage only in what holds rows together, not in their
contents.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

VERSION: Final = 2
"""`PRAGMA user_version` of the stores that this version of the service reads and writes."""
APPLICATION: Final = 0x4C6F6B6F
"""`PRAGMA application_id` of every store: "Loko"."""
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "circumstances": ("name", "value"),
        "flows": ("number", "id", "state", "document"),
        "residual_backlogs": ("server", "amount"),
        "notes": ("number", "at_ms", "kind", "name", "text", "warning"),
    }
)
"""The columns of each table, without the checksum, which is the last one."""
_TABLES: Final = """
CREATE TABLE circumstances (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL) STRICT;
CREATE TABLE flows (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    document TEXT NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE residual_backlogs (
    server TEXT PRIMARY KEY,
    amount REAL NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE notes (
    number INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    warning INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
"""


def checksum(table: str, row: Iterable[object]) -> int:
    """Return the checksum of a row, given without its checksum. No row of another table has the same."""
    return zlib.crc32(repr((table, *row)).encode("utf-8", "surrogatepass"))


def create(database: sqlite3.Connection) -> None:
    """Create the tables in an empty database, in one transaction."""
    database.executescript(
        f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
        " COMMIT;"
    )


def insert(
    database: sqlite3.Connection, table: str, rows: Iterable[Sequence[object]], *, replacing: bool = False
) -> None:
    """Insert rows, given without checksums; if `replacing`, in place of those that have the same key."""
    verb = "INSERT OR REPLACE" if replacing else "INSERT"
    names = ", ".join((*COLUMNS[table], "checksum"))
    places = ", ".join("?" * (len(COLUMNS[table]) + 1))
    database.executemany(
        f"{verb} INTO {table} ({names}) VALUES ({places})",
        ([*row, checksum(table, row)] for row in rows),
    )


def shape(database: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Return the columns of each table that is not SQLite's own."""
    names = database.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
    ).fetchall()
    return {
        name: tuple(
            column for (column,) in database.execute("SELECT name FROM pragma_table_info(?)", (name,))
        )
        for (name,) in names
    }


def difference(there: Mapping[str, Sequence[str]], expected: Mapping[str, Sequence[str]]) -> str | None:
    """Return the first difference between tables as they are and as they should be, in words."""
    for name, columns in expected.items():
        if name not in there:
            return f"table {name} is missing"
        for column in columns:
            if column not in there[name]:
                return f"table {name} lacks the column {column}"
        for column in there[name]:
            if column not in columns:
                return f"table {name} has a column {column} that no store has"
    strange = sorted(there.keys() - expected.keys())
    return f"it has a table {strange[0]} that no store has" if strange else None


def schema_difference(database: sqlite3.Connection) -> str | None:
    """Return how the tables differ from those of this version; None if they do not."""
    told = difference(shape(database), {name: (*columns, "checksum") for name, columns in COLUMNS.items()})
    if told is None and _statements(database) != _expected():
        told = "its tables are not declared as in a store"
    return told


@cache
def _expected() -> list[tuple[str, ...]]:
    with sqlite3.connect(":memory:", isolation_level=None) as fresh:
        create(fresh)
        statements = _statements(fresh)
    fresh.close()
    return statements


def _statements(database: sqlite3.Connection) -> list[tuple[str, ...]]:
    return database.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").fetchall()
