"""How a file differs from what it should be, in words, and whether the two can be compared at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_VERSIONS: Final = "provenance.versions."
_LONGEST_VALUE: Final = 60
"""Characters of a value in a line."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A file, or a value in it, that is not as it should be."""

    what: str
    """The file, what differs, and both values."""
    comparable: bool = True
    """Whether the difference counts. False: other versions of the programs that write the file explain it."""


def file_difference(name: str, there: Path, here: Path, *, versions: bool) -> Iterator[Difference]:
    """Yield what differs between the archive's file and the one that came out here.

    `versions`: whether other versions of the programs that write such files made the archive's.
    """
    if there.is_file() != here.is_file():
        lacks = "did not come out here" if there.is_file() else "is not in the archive"
        yield Difference(f"{name}: {lacks}")
    if not there.is_file() or not here.is_file():
        return
    theirs, ours = there.read_bytes(), here.read_bytes()
    if theirs == ours:
        return
    if there.suffix == ".json":
        lines = list(_unlike(json.loads(theirs), json.loads(ours), ""))
        if not lines:
            yield Difference(f"{name}: other bytes, but the same values")
        for where, line in lines:
            yield Difference(f"{name}: {line}", comparable=not where.startswith(_VERSIONS))
        return
    sizes = f"{len(ours)} here, {len(theirs)} in the archive"
    if not versions:
        yield Difference(f"{name}: other bytes: {sizes}")
    elif there.suffix == ".parquet":
        same = _same_rows(there, here)
        rows = "the same rows" if same else "other rows"
        yield Difference(f"{name}: {rows}, other bytes: {sizes}", comparable=not same)
    else:
        yield Difference(f"{name}: other versions drew it: {sizes}", comparable=False)


def _same_rows(there: Path, here: Path) -> bool:
    try:
        tables = [pq.read_table(path) for path in (there, here)]
    except (OSError, pa.ArrowException):
        return False
    return bool(tables[0].equals(tables[1], check_metadata=True))


def _unlike(there: Any, here: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield where two JSON values differ: ``series[0].points[0].lost: 2 here, 0 in the archive``."""
    if repr(there) == repr(here):  # unlike ==, it tells 1 from 1.0 and True; most of a document is the same
        return
    if isinstance(there, dict) and isinstance(here, dict):
        for name in sorted(there.keys() | here.keys()):
            place = f"{where}.{name}" if where else name
            if name in there and name in here:
                yield from _unlike(there[name], here[name], place)
            else:
                value, lacking = (there, "not here") if name in there else (here, "not in the archive")
                yield place, f"{place}: {_short(value[name])} is {lacking}"
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for place, (theirs, other) in enumerate(zip(there, here, strict=True)):
            yield from _unlike(theirs, other, f"{where}[{place}]")
    elif there != here or type(there) is not type(here):
        yield where, f"{where}: {_short(here)} here, {_short(there)} in the archive"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
