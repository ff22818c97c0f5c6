"""Rows of a damaged store, read page by page without SQLite, which gives up at the first damaged page.

Only rows whose checksum is right are taken, so whatever the damage, no flow comes back other than it was. The
file format is at https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from loko.service.store_reading import LAST_NUMBER, flow_values, note_values
from loko.service.store_schema import COLUMNS, VERSION, checksum
from loko.service.write_ahead_log import pages_of

_PAGE_BYTES: Final = 4096
"""Size of a page where the beginning of the file does not say it: SQLite's default."""
_TABLE_LEAF: Final = b"\x0d"
_KINDS: Final = {_TABLE_LEAF, b"\x02", b"\x05", b"\x0a"}
"""First bytes of the pages of tables and indices."""
_LENGTHS: Final = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
"""Bytes of a value by its serial type."""


@dataclass
class Salvaged:
    """Rows that could be read of a damaged store."""

    rows: dict[str, dict[object, tuple[Any, ...]]] = field(
        default_factory=lambda: {table: {} for table in COLUMNS}
    )
    """By table and first column."""
    damaged_rows: int = 0
    """Rows that are there, but not as they were written."""
    unread_pages: int = 0
    """Pages of zeros or of an unknown kind: a store may have such pages, and lost ones look the same."""

    def values(self) -> dict[str, Any]:
        """Return the rows as plain values of a `StoreDocument`."""
        named = {str(name): value for name, value in self.rows["circumstances"].values()}
        last = named.pop(LAST_NUMBER, "0")
        # Should an id be there twice, the older one belongs to a flow that is gone.
        flows = {row[1]: flow_values(row) for row in sorted(self.rows["flows"].values())}
        numbers = [flow["number"] for flow in flows.values()]
        return {
            "version": VERSION,
            "circumstances": named,
            "last_number": max([int(last), *numbers]),
            "flows": list(flows.values()),
            "residual_backlogs": dict(self.rows["residual_backlogs"].values()),
            "notes": [note_values(row) for row in sorted(self.rows["notes"].values())],
        }


def salvage(file: bytes, log: bytes = b"") -> Salvaged:
    """Return the rows of a store whose checksums are right, from its file and its write-ahead log."""
    size = int.from_bytes(file[16:18], "big")
    page_bytes = size if size in {512, 1024, 2048, 4096, 8192, 16384, 32768} else _PAGE_BYTES
    pages = {at // page_bytes + 1: file[at : at + page_bytes] for at in range(0, len(file), page_bytes)}
    pages |= pages_of(log)
    found, read = Salvaged(), _Pages(pages)
    for number, page in pages.items():
        if number > 1 and page[:1] == _TABLE_LEAF:  # the first one has the declarations of the tables
            for row in read.rows(page):
                _take(found, row)
    unknown = {number for number, page in pages.items() if number > 1 and page[:1] not in _KINDS}
    found.unread_pages = len(unknown - read.continued)
    return found


def _take(found: Salvaged, row: tuple[Any, ...] | None) -> None:
    for table, columns in COLUMNS.items():
        if row is not None and len(row) == len(columns) + 1:
            values = row[:-1]
            if table == "residual_backlogs" and isinstance(values[1], int):  # SQLite's way to store 3.0
                values = (values[0], float(values[1]))
            if checksum(table, values) == row[-1]:
                found.rows[table][values[0]] = values
                return
    found.damaged_rows += 1


class _Pages:
    """The pages of a database, by number from 1."""

    def __init__(self, pages: Mapping[int, bytes]) -> None:
        self._pages = pages
        self.continued: set[int] = set()
        """Pages on which long rows go on."""

    def rows(self, page: bytes) -> Iterator[tuple[Any, ...] | None]:
        """Yield the rows of a leaf of a table; None for each that cannot be read."""
        count = int.from_bytes(page[3:5], "big")
        for place in range(min(count, (len(page) - 8) // 2)):
            [at] = struct.unpack_from(">H", page, 8 + 2 * place)
            try:
                length, at = _number(page, at)
                key, at = _number(page, at)
                yield _row(key, self._record(page, at, length))
            except (IndexError, struct.error, UnicodeDecodeError, KeyError):
                yield None

    def _record(self, page: bytes, at: int, length: int) -> bytes:
        """Return the record of a row, which goes on on other pages if it is long."""
        usable = len(page)
        if length > len(self._pages) * usable:
            raise IndexError
        most, least = usable - 35, (usable - 12) * 32 // 255 - 23
        if length <= most:
            return page[at : at + length]
        local = least + (length - least) % (usable - 4)
        local = local if local <= most else least
        data, [following] = page[at : at + local], struct.unpack_from(">I", page, at + local)
        while len(data) < length:
            data += self._pages[following][4:]
            self.continued.add(following)
            [following] = struct.unpack_from(">I", self._pages[following])
        return data[:length]


def _row(key: int, record: bytes) -> tuple[Any, ...]:
    header, at = _number(record, 0)
    types, values = [], []
    while at < header:
        kind, at = _number(record, at)
        types.append(kind)
    for kind in types:
        size = _LENGTHS[kind] if kind < 12 else (kind - 12) // 2
        values.append(_value(kind, record[at : at + size], size))
        at += size
    # SQLite keeps an integer key as the key of the row, and NULL in its place.
    return (key if values[0] is None else values[0], *values[1:])


def _value(kind: int, data: bytes, size: int) -> object:
    if len(data) < size:
        raise IndexError
    if kind == 0:
        return None
    if kind == 7:
        return struct.unpack(">d", data)[0]
    if kind >= 12:
        return data.decode() if kind % 2 else data
    return kind - 8 if kind in {8, 9} else int.from_bytes(data, "big", signed=True)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return an integer of variable length, of 1 to 9 bytes, and where it ends."""
    value = 0
    for _ in range(8):
        byte = data[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | data[at], at + 1
