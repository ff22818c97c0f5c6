"""Flows in a table: CSV as spreadsheets save it, or the first sheet of a workbook.

The first row has a heading for each column. A heading may have the unit of its numbers in brackets
(``rate [Mbit/s]``). Where the headings are others, the columns are named by the user, or guessed.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from loko.document import InputError

GUESS: Final = "guess"
"""The value of ``--columns`` that accepts the columns which the headings probably mean."""
LEFT_OUT: Final = "-"
"""The name of a column that is not read."""
_ZIP: Final = b"PK\x03\x04"
_OLE: Final = b"\xd0\xcf\x11\xe0"
"""First bytes of workbooks: of those that are ZIP archives, and of older ones."""
_WITH_UNITS: Final = frozenset({"rate", "burst", "frame", "deadline", "period"})
"""Columns whose values have units."""
_UNIT_IN_HEADING: Final = re.compile(r"(.+?)\s*(?:\[(.+)\]|\((.+)\))")
_SEPARATOR_LINE: Final = re.compile(r"sep=(.)\s*", re.IGNORECASE)
_BARE_NUMBER: Final = re.compile(r"[\d\s.,']+")
_HEADINGS: Final = {
    "id": r"(flow|stream)?[ _-]?(id|name)|flow|stream",
    "source": r"from|src|source|sender|talker",
    "destination": r"to|dst|dest|destination|receiver|listener",
    "udp_source": r"(?=.*port)(?=.*\b(src|source|from))(?!.*dest).*|sport",
    "udp_destination": r"(?=.*port)(?=.*\b(dst|dest|to\b)).*|dport",
    "period": r"cycle([ _-]?time)?|period|interval",
    "rate": r"rate|band[ -]?width|throughput|(data|bit)[ -]?rate",
    "burst": r"(max\w*[. ]*)?burst([ _-]?size)?",
    "frame": r"((frame|packet)[ _-]?)?(size|length)|frame|packet",
    "deadline": r"(max\w*[. ]*)?(latency|delay)|deadline",
    "traffic_class": r"(traffic[ _-]?)?class",
}
"""Headings of people and other programs, as patterns, by column."""


class TableRow(NamedTuple):
    """One row below the headings."""

    line: int
    cells: Sequence[str]
    """As written, without spaces around them."""


@dataclass(frozen=True, slots=True)
class FlowTable:
    """A table that was read, before its headings are understood."""

    name: str
    headings: Sequence[str]
    rows: Sequence[TableRow]
    """Rows that have a cell with text."""
    separator: str
    """Stands between the columns of a text; a comma for a workbook."""
    line: int = 1
    """Line of the headings."""
    is_workbook: bool = False

    def named(
        self, columns: str | None, known: Collection[str]
    ) -> Iterator[tuple[int, Mapping[str, str] | str]]:
        """Yield each row's line and its cells by column; a row with other cells is one line of text.

        Empty cells are left out. `columns` is `GUESS`, or names the columns in their order; None takes the
        headings, which must then be `known`. Raises `InputError`.
        """
        meant = self._columns(columns, known)
        for line, cells in self.rows:
            if len(cells) != len(meant):
                yield line, f"{len(cells)} cells; the first {self._row} names {len(meant)} columns"
                continue
            yield (
                line,
                {
                    column.name: column.with_unit(cell)
                    for column, cell in zip(meant, cells, strict=True)
                    if cell and column.name != LEFT_OUT
                },
            )

    @property
    def _row(self) -> str:
        return "row" if self.is_workbook else "line"

    def _columns(self, columns: str | None, known: Collection[str]) -> list[_FlowColumn]:
        if columns is None or columns.strip().lower() == GUESS:
            return self._understood(known, may_guess=columns is not None)
        given = [_FlowColumn.parse(name) for name in re.split(r"[,;\t]", columns)]
        strange = [column.name for column in given if column.name not in {*known, LEFT_OUT}]
        if strange:
            raise InputError(f"--columns: unknown column '{strange[0]}' ({_allowed(known)})")
        if len(given) != len(self.headings):
            raise InputError(f"--columns: names {len(given)} columns; {self.name} has {len(self.headings)}")
        names = [column.name for column in given if column.name != LEFT_OUT]
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"--columns: names '{twice[0]}' twice; name it once, and '-' what is left out")
        return given

    def _understood(self, known: Collection[str], *, may_guess: bool) -> list[_FlowColumn]:
        """Return what the headings mean. Raises `InputError` for unknown ones: with what they may mean."""
        written = [_FlowColumn.parse(heading) for heading in self.headings]
        strange = [column.name for column in written if column.name not in known]
        if not strange:
            return written
        meant = [_meant(column.name, known) for column in written]
        is_clear = None not in meant and len(set(meant)) == len(meant)
        guessed = [_FlowColumn(name or "", column.unit) for name, column in zip(meant, written, strict=True)]
        if is_clear and may_guess:
            return guessed
        first = f"{self.name}:{self.line}"
        if is_clear and len(strange) > 1:
            raise InputError(
                f"{first}: unknown columns; if this is meant, add '--columns {GUESS}', or make this the first"
                f" {self._row}: {self.separator.join(column.written for column in guessed)}"
            )
        told = [
            f"{first}: unknown column '{column.name}'" + (f"; did you mean '{near}'?" if near else "")
            for column, near in zip(written, meant, strict=True)
            if column.name in strange
        ]
        told[-1] += f" ({_allowed(known)}; --columns names them in order, - leaves one out)"
        raise InputError(*told)


class _FlowColumn(NamedTuple):
    """The name of a column, and the unit of its bare numbers."""

    name: str
    unit: str = ""

    @classmethod
    def parse(cls, heading: str) -> _FlowColumn:
        match = _UNIT_IN_HEADING.fullmatch(heading.strip())
        if match is None:
            return cls(heading.strip().lower())
        return cls(match[1].lower(), match[2] or match[3])

    @property
    def written(self) -> str:
        return f"{self.name} [{self.unit}]" if self.unit and self.name in _WITH_UNITS else self.name

    def with_unit(self, cell: str) -> str:
        if self.unit and self.name in _WITH_UNITS and _BARE_NUMBER.fullmatch(cell):
            return f"{cell} {self.unit}"
        return cell


def is_workbook(data: bytes) -> bool:
    """Return whether a file is a workbook rather than text."""
    return data.startswith((_ZIP, _OLE))


def is_table(text: str, known: Collection[str]) -> bool:
    """Return whether a text begins with headings rather than with YAML or JSON.

    Of headings one is known, or two probably mean different columns.
    """
    first = text.lstrip().split("\n", 1)[0]
    if _SEPARATOR_LINE.fullmatch(first):
        return True
    cells = next(csv.reader([first], delimiter=_separator(first)), [])
    names = [_FlowColumn.parse(cell).name for cell in cells]
    return len(cells) > 1 and (
        any(name in known for name in names) or len({*map(_other_heading, names)} - {None}) > 1
    )


def text_table(name: str, text: str) -> FlowTable:
    """Read columns that are separated by commas, semicolons or tabs. Raises `InputError`.

    Spreadsheets take the separator from a first line such as ``sep=;``.
    """
    lines = text.splitlines()
    stated = _SEPARATOR_LINE.fullmatch(lines[0]) if lines else None
    first = 1 if stated else 0
    separator = stated[1] if stated else _separator(lines[0] if lines else "")
    table = csv.reader(lines[first:], delimiter=separator)
    headings = next(table, [])
    if not headings:
        raise InputError(f"{name}: is empty; name the columns in the first line: id,source,destination,…")
    return FlowTable(
        name, headings, _filled((first + table.line_num, cells) for cells in table), separator, first + 1
    )


def workbook_table(name: str, data: bytes) -> FlowTable:
    """Read the first sheet of a workbook of Excel or LibreOffice. Raises `InputError`."""
    from python_calamine import CalamineError, CalamineWorkbook  # noqa: PLC0415 - seldom needed

    try:
        sheet = CalamineWorkbook.from_filelike(io.BytesIO(data)).get_sheet_by_index(0)
        table = [[_text(name, cell) for cell in row] for row in sheet.to_python(skip_empty_area=False)]
    except CalamineError as error:
        raise InputError(f"{name}: is no readable workbook ({error}); save it as .xlsx or CSV") from None
    if not table or not any(table[0]):
        raise InputError(f"{name}: the first sheet has no headings; name the columns in its first row")
    return FlowTable(name, table[0], _filled(enumerate(table[1:], 2)), ",", is_workbook=True)


def _filled(rows: Iterator[tuple[int, Sequence[str]]]) -> list[TableRow]:
    stripped = (TableRow(line, [cell.strip() for cell in cells]) for line, cells in rows)
    return [row for row in stripped if any(row.cells)]


def _text(name: str, cell: object) -> str:
    """Return a cell as people see it. Raises `InputError` for dates and times of day."""
    if isinstance(cell, float):
        return f"{cell:.15g}"
    if isinstance(cell, str | int):
        return str(cell)
    raise InputError(f"{name}: a cell is a date or a time of day ({cell}); format it as a number or text")


def _separator(first_line: str) -> str:
    """Return what separates the columns: a comma, or the semicolon or tab of a spreadsheet."""
    return max(",;\t", key=first_line.count)


def _meant(heading: str, known: Collection[str]) -> str | None:
    """Return the column that a heading probably means."""
    if heading in known:
        return heading
    return _other_heading(heading) or next(iter(difflib.get_close_matches(heading, known, n=1)), None)


def _other_heading(heading: str) -> str | None:
    """Return the column that people and other programs call so."""
    return next((column for column, pattern in _HEADINGS.items() if re.fullmatch(pattern, heading)), None)


def _allowed(known: Collection[str]) -> str:
    return f"allowed: {', '.join(known)}"
