"""Samples on disk while a campaign runs. Each measured combination is written at once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loko.document import InputError
from loko_testbed.measure.bench.part import Key, Samples
from loko_testbed.tasks.provenance import today

_SCHEMA = """
create table if not exists campaign (parameters text not null);
create table if not exists beginning (day text not null);
create table if not exists sample (
    part text not null, size integer not null, times blob not null, disturbed integer not null,
    primary key (part, size)
) without rowid;
create table if not exists complete (part text primary key) without rowid;
"""


class SampleStore:
    """A file of samples, by part (such as a flow table) and frame length."""

    def __init__(self, path: Path, parameters: Mapping[str, Any] | None) -> None:
        """Open or create the file. Samples taken with other parameters are dropped; None keeps all.

        Raises `InputError`.
        """
        wanted = json.dumps(parameters, sort_keys=True)
        try:
            self._base = sqlite3.connect(path)
            self._base.executescript(_SCHEMA)
            # Survives a crash of this process. A power failure may cost the last parts, but no more.
            self._base.execute("pragma journal_mode = wal")
            self._base.execute("pragma synchronous = normal")
            row = self._base.execute("select parameters from campaign").fetchone()
            if parameters is not None and row != (wanted,):
                with self._base:
                    self._base.execute("delete from sample")
                    self._base.execute("delete from complete")
                    self._base.execute("delete from campaign")
                    self._base.execute("delete from beginning")
                    self._base.execute("insert into campaign values (?)", (wanted,))
                    self._base.execute("insert into beginning values (?)", (today(),))
        except sqlite3.DatabaseError as error:
            raise InputError(f"{path}: not a file of samples ({error}); delete it and run again") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._base.close()

    @property
    def begun(self) -> str:
        """The day on which the campaign began, even if it was interrupted since."""
        row = self._base.execute("select day from beginning").fetchone()
        return str(row[0]) if row else today()

    def complete_among(self, parts: Iterable[Key]) -> set[Key]:
        """Return those of these parts that are complete."""
        there = {part for (part,) in self._base.execute("select part from complete")}
        return {part for part in parts if str(part) in there}

    def keep(self, part: Key, size: int, times: NDArray[np.int64], left_out: int) -> None:
        """Store the samples of one combination of a part, and how many were left out of them."""
        row = (str(part), int(size), times.astype("<i8").tobytes(), left_out)
        with self._base:
            self._base.execute("insert or replace into sample values (?, ?, ?, ?)", row)

    def complete(self, part: Key) -> None:
        """Note that all combinations of a part are stored."""
        with self._base:
            self._base.execute("insert or replace into complete values (?)", (str(part),))

    @property
    def left_out(self) -> int:
        """Number of samples that were left out because the bench's host lost time."""
        return int(self._base.execute("select coalesce(sum(disturbed), 0) from sample").fetchone()[0])

    def rows(self, parts: Iterable[Key]) -> Iterator[tuple[Key, int, NDArray[np.int64], int]]:
        """Yield part, frame length, times in nanoseconds, and samples left out, in a fixed order."""
        wanted = {str(part): part for part in parts}
        for name, size, times, left_out in self._base.execute(
            "select part, size, times, disturbed from sample order by part, size"
        ):
            if name in wanted:
                yield wanted[name], size, np.frombuffer(times, dtype="<i8").astype(np.int64), left_out

    def samples(self, parts: Iterable[Key]) -> Samples:
        """Return the samples of these parts, as far as they are stored."""
        samples: dict[Key, dict[int, NDArray[np.int64]]] = {}
        for part, size, times, _ in self.rows(parts):
            samples.setdefault(part, {})[size] = times
        return samples
