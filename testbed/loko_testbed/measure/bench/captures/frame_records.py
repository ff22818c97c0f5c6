"""Fates of captured frames, in the project's format of packet records (Parquet)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from loko.document import InputError
from loko_testbed.measure.bench.captures.pairing import FrameFate
from loko_testbed.measure.bench.device import MISSING
from loko_testbed.simulation.records import RecordWriter
from loko_testbed.simulation.runner import LOST, RunRecords
from loko_testbed.tasks.files import atomic_replacement

_AT_ONCE: Final = 65_536
"""Rows that are written at a time."""


@contextmanager
def frame_records(path: Path | None) -> Iterator[Callable[[FrameFate], None] | None]:
    """Yield the function that takes fates; the file is complete at the end of the ``with``.

    Flow and run are 0, `sequence` counts frames in the order in which they entered, times are nanoseconds
    since the first one did. A frame that may have been under way when the capture ended has no row. Yields
    None without a path. Raises `InputError` if the file cannot be written.
    """
    if path is None:
        yield None
        return
    try:
        with atomic_replacement(path) as part, RecordWriter(part) as writer:
            rows = _Rows(writer)
            yield rows.add
            rows.write()
    except OSError as error:
        raise InputError(f"--records {path}: cannot be written: {error.strerror or error}") from None


class _Rows:
    """Sorts fates into the order in which frames entered. A loss is known only a second later."""

    def __init__(self, writer: RecordWriter) -> None:
        self._writer = writer
        self._waiting: dict[int, FrameFate] = {}
        self._ready: list[FrameFate] = []
        self._next = 0
        self._begin_ns: int | None = None

    def add(self, fate: FrameFate) -> None:
        self._waiting[fate.number] = fate
        while waiting_fate := self._waiting.pop(self._next, None):
            self._ready.append(waiting_fate)
            self._next += 1
        if len(self._ready) >= _AT_ONCE:
            self._write(self._ready)
            self._ready = []

    def write(self) -> None:
        """Write what is left, even behind frames whose fate is unknown."""
        self._write(self._ready + [self._waiting[number] for number in sorted(self._waiting)])

    def _write(self, fates: list[FrameFate]) -> None:
        if not fates:
            return
        if self._begin_ns is None:
            self._begin_ns = fates[0].entered_ns
        left = np.array([fate.left_ns for fate in fates], dtype=np.int64)
        records = RunRecords(
            flow=np.zeros(len(fates), dtype=np.int32),
            sequence=np.array([fate.number for fate in fates], dtype=np.int64),
            sent_ns=np.array([fate.entered_ns for fate in fates], dtype=np.int64) - self._begin_ns,
            received_ns=np.where(left == MISSING, LOST, left - self._begin_ns),
            size=np.array([fate.length_bytes for fate in fates], dtype=np.int32),
        )
        self._writer.add(records, run=0, point=0.0)
