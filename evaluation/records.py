"""Packet records on disk: Parquet files with one row per packet. The columns are a stable interface."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evaluation.runner import LOST, RunRecords
from loko.document import InputError

SCHEMA = pa.schema(
    [
        pa.field("flow", pa.int32(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("sent_ns", pa.int64(), nullable=False),
        pa.field("received_ns", pa.int64(), nullable=True),
        pa.field("size", pa.int32(), nullable=False),
        pa.field("run", pa.int32(), nullable=False),
        pa.field("point", pa.float64(), nullable=False),
    ]
)
"""`point` is the x of the point; `received_ns` is null for a lost packet; times count from the run's
start."""

META = b"loko"
"""Key of the summary in a file's metadata."""
_REPEATING = ["flow", "size", "run", "point"]
_RISING = ["sequence", "sent_ns", "received_ns"]


class RecordWriter:
    """Writes a file of records, one row group per run, so that only one run at a time is in memory."""

    def __init__(self, file: Path | BytesIO) -> None:
        self._writer = pq.ParquetWriter(
            file,
            SCHEMA,
            compression="zstd",
            compression_level=1,
            use_dictionary=_REPEATING,
            column_encoding=dict.fromkeys(_RISING, "DELTA_BINARY_PACKED"),
            write_statistics=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def add(self, records: RunRecords, *, run: int, point: float) -> None:
        """Append one run."""
        self._writer.write_table(rows_of(records, run=run, point=point), row_group_size=max(len(records), 1))

    def copy(self, source: Path) -> None:
        """Append all rows of another file of records."""
        with pq.ParquetFile(source) as file:
            for group in range(file.num_row_groups):
                self._writer.write_table(file.read_row_group(group, use_threads=False))

    def describe(self, summary: Mapping[str, Any]) -> None:
        """Store a summary in the file's metadata, for `summary` to read."""
        self._writer.add_key_value_metadata({META: json.dumps(summary).encode()})


def rows_of(records: RunRecords, *, run: int, point: float) -> pa.Table:
    """Convert the records of one run to rows of `SCHEMA`."""
    count = len(records)
    columns = [
        _column(records.flow),
        _column(records.sequence),
        _column(records.sent_ns),
        _column(records.received_ns, records.received_ns != LOST),
        _column(records.size),
        _column(np.full(count, run, dtype=np.int32)),
        _column(np.full(count, point, dtype=np.float64)),
    ]
    return pa.table(columns, schema=SCHEMA)


def _column(values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Wrap values without copying them; null where not `valid`.

    `pa.array` does the same but imports pandas, which takes longer than a short run.
    """
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bits, data])


def records_in(path: Path) -> RunRecords:
    """Read the packets of a file that has one run; the inverse of `rows_of`."""
    with pq.ParquetFile(path) as file:  # in half the time of `pq.read_table`, which serves whole data sets
        rows = file.read(columns=["flow", "sequence", "sent_ns", "received_ns", "size"], use_threads=False)
    arrived = rows.column("received_ns").fill_null(LOST)
    return RunRecords(
        flow=rows.column("flow").to_numpy(),
        sequence=rows.column("sequence").to_numpy(),
        sent_ns=rows.column("sent_ns").to_numpy(),
        received_ns=arrived.to_numpy(),
        size=rows.column("size").to_numpy(),
    )


def summary(path: Path) -> dict[str, Any]:
    """Read what `RecordWriter.describe` stored in a file. Raises `InputError` if the file is damaged."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
        kept = json.loads(metadata[META])
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: damaged records ({reason}); delete the file and run again") from None
    if not isinstance(kept, dict):
        raise InputError(f"{path}: damaged records; delete the file and run again")
    return kept


def read_runs(path: Path) -> Iterator[pa.Table]:
    """Yield the rows of a file, one run at a time."""
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group)
