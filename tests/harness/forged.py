"""Changes to the files of an archive, as a forger makes them, who then computes the manifest again."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import zipfile
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pydantic_core import to_json

from loko_testbed.reproduce.bundle.archive import MANIFEST, ROOT

Place = tuple[str | int, ...]
Files = Mapping[str, bytes]
PROGRAM: Final = 0o100755
PLAIN: Final = 0o100644
_FLIPS: Final = 2
"""Places of a file at which a byte is changed."""


class Change(NamedTuple):
    """A file of an archive as a forger leaves it."""

    what: str
    file: str
    data: bytes | None
    """None: the file is taken out."""


def files_in(archive: Path) -> dict[str, bytes]:
    """Return the files of an archive by path from its root, without the manifest."""
    with zipfile.ZipFile(archive) as opened:
        files = {info.filename.removeprefix(f"{ROOT}/"): opened.read(info) for info in opened.infolist()}
    files.pop(MANIFEST)
    return files


def programs_in(archive: Path) -> frozenset[str]:
    """Return the files that are programs."""
    with zipfile.ZipFile(archive) as opened:
        return frozenset(
            info.filename.removeprefix(f"{ROOT}/")
            for info in opened.infolist()
            if (info.external_attr >> 16) & 0o100
        )


def write_forged(
    target: Path, files: Files, *, commit: str, programs: frozenset[str] = frozenset(), **manifest: Any
) -> Path:
    """Write an archive of these files, with a manifest that fits them, apart from its keys in `manifest`."""
    listed = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
    }
    fitting = {"format": "loko-artifact-1", "commit": commit, "files": listed, **manifest}
    with zipfile.ZipFile(target, "w") as opened:
        for name, data in {**files, MANIFEST: json.dumps(fitting).encode()}.items():
            info = zipfile.ZipInfo(f"{ROOT}/{name}")
            info.create_system, info.external_attr = 3, (PROGRAM if name in programs else PLAIN) << 16
            opened.writestr(info, data)
    return target


def changes(files: Files) -> Iterator[Change]:
    """Yield changes of every file, and of every field of those files that have fields."""
    for name, data in sorted(files.items()):
        yield Change("taken out", name, None)
        yield Change("a byte more", name, data + b"\n")
        yield from _flipped(name, data)
        form = _FORMS.get(PurePosixPath(name).suffix)
        for what, changed in form(data) if form else ():
            assert changed != data, (name, what)
            yield Change(what, name, changed)


def _flipped(name: str, data: bytes) -> Iterator[Change]:
    for place in random.Random(name).sample(range(len(data)), min(_FLIPS, len(data))):
        yield Change(f"byte {place}", name, data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])


def _of_json(data: bytes) -> Iterator[tuple[str, bytes]]:
    yield "the same values", json.dumps(json.loads(data)).encode()
    for what, value in changed_values(json.loads(data)):
        yield what, to_json(value, indent=1) + b"\n"


def _of_lines(data: bytes) -> Iterator[tuple[str, bytes]]:
    lines = data.splitlines(keepends=True)
    yield "reversed", b"".join(reversed(lines))
    for number, line in enumerate(lines):
        yield f"line {number} taken out", b"".join(lines[:number] + lines[number + 1 :])
        yield f"line {number} twice", b"".join([*lines[:number], line, *lines[number:]])
        for what, value in changed_values(json.loads(line)):
            forged = json.dumps(value, separators=(",", ":")).encode() + b"\n"
            yield f"line {number}: {what}", b"".join([*lines[:number], forged, *lines[number + 1 :]])


def _of_yaml(data: bytes) -> Iterator[tuple[str, bytes]]:
    for what, value in changed_values(yaml.safe_load(data)):
        yield what, yaml.safe_dump(value).encode()


def _of_table(data: bytes) -> Iterator[tuple[str, bytes]]:
    table = pq.read_table(BytesIO(data))
    yield "a row less", _packed(table.slice(1))
    yield "reversed", _packed(table.take(list(reversed(range(len(table))))))
    for place, field in enumerate(table.schema):
        values = table.column(place).to_pylist()
        values[0] = _other(values[0])
        yield field.name, _packed(table.set_column(place, field, pa.array(values, field.type)))
        yield f"{field.name} taken out", _packed(table.remove_column(place))
    for key, text in (table.schema.metadata or {}).items():
        yield f"{key.decode()} changed", _packed(table.replace_schema_metadata({key: text.swapcase()}))
    yield "described", _packed(table.replace_schema_metadata({"forged": "1"}))


def _packed(table: pa.Table) -> bytes:
    target = BytesIO()
    pq.write_table(table, target, compression="zstd")
    return target.getvalue()


_FORMS: Final[Mapping[str, Callable[[bytes], Iterator[tuple[str, bytes]]]]] = {
    ".json": _of_json,
    ".jsonl": _of_lines,
    ".parquet": _of_table,
    ".yml": _of_yaml,
    ".cff": _of_yaml,
}
"""How files have fields, by suffix."""


def changed_values(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield copies of a document of which each has one field changed, more, or less.

    Items of a list have the same fields: one of them, always the same, stands for all.
    """
    fields: dict[Place, list[Place]] = {}
    for place in _places(document):
        fields.setdefault(tuple("[]" if isinstance(part, int) else part for part in place), []).append(place)
    for path, places in fields.items():
        place = random.Random(repr(path)).choice(places)
        where = ".".join(map(str, place)) or "document"
        value = _at(document, place)
        if isinstance(value, dict):
            yield f"{where}: a field more", _with(document, place, {**value, "forged": 1})
        elif isinstance(value, list):
            yield f"{where}: an item more", _with(document, place, [*value, *(value[-1:] or ["forged"])])
            if value:
                yield f"{where}: an item less", _with(document, place, value[:-1])
        else:
            yield f"{where}: {_other(value)!r}", _with(document, place, _other(value))
        if place and isinstance(place[-1], str):
            parent = _at(document, place[:-1])
            less = {key: below for key, below in parent.items() if key != place[-1]}
            yield f"{where} taken out", _with(document, place[:-1], less)


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from _places(below, (*place, key))


def _at(document: Any, place: Place) -> Any:
    for part in place:
        document = document[part]
    return document


def _with(document: Any, place: Place, value: Any) -> Any:
    """Return the document with another value at a place; the rest of it is shared with the given one."""
    if not place:
        return value
    changed = copy.copy(document)
    changed[place[0]] = _with(document[place[0]], place[1:], value)
    return changed


def _other(value: Any) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return 0 if value is None else f"{value}x"
