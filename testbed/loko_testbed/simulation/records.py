"""Packet records on disk: Parquet files with one row per packet. The columns are a stable interface."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from loko.document import InputError
from loko_testbed.simulation.runner import LOST, RunRecords

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
_OF_RUN = pa.schema([field for field in SCHEMA if field.name not in {"run", "point"}])
_REPEATING = {"flow", "size", "run", "point"}


class RecordWriter:
    """Writes a file of records, one row group per run, so that only one run at a time is in memory."""

    def __init__(self, file: Path | BytesIO) -> None:
        self._writer = _writer(file, SCHEMA, compression="zstd", compression_level=1, write_statistics=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def add(self, records: RunRecords, *, run: int, point: float, most: int | None = None) -> None:
        """Append one run, or only its first `most` packets."""
        rows = rows_of(records, run=run, point=point).slice(0, most)
        self._writer.write_table(rows, row_group_size=max(len(rows), 1))

    def describe(self, summary: Mapping[str, Any]) -> None:
        """Store a summary in the file's metadata, for `summary` to read."""
        self._writer.add_key_value_metadata(_metadata(summary))


def _writer(file: Path | BytesIO, schema: pa.Schema, **options: Any) -> pq.ParquetWriter:
    """Return a writer of packets with these options. What rises from row to row is stored as differences."""
    return pq.ParquetWriter(
        file,
        schema,
        use_dictionary=[name for name in schema.names if name in _REPEATING],
        column_encoding={name: "DELTA_BINARY_PACKED" for name in schema.names if name not in _REPEATING},
        **options,
    )


def _metadata(summary: Mapping[str, Any]) -> dict[bytes, bytes]:
    return {META: json.dumps(summary).encode()}


def packed(records: RunRecords) -> bytes:
    """Return the packets of one run as a file, for `unpacked` to read until its figure has its records.

    It has no statistics, and no columns that are the same in all rows: these take nearly as long to write as
    all else. LZ4 takes three quarters of the time of Zstandard.
    """
    file = BytesIO()
    with _writer(file, _OF_RUN, compression="lz4", write_statistics=False) as writer:
        rows = pa.table(_columns(records), schema=_OF_RUN)
        writer.write_table(rows, row_group_size=max(len(records), 1))
    return file.getvalue()


def rows_of(records: RunRecords, *, run: int, point: float) -> pa.Table:
    """Convert the records of one run to rows of `SCHEMA`."""
    count = len(records)
    same = [_column(np.full(count, run, dtype=np.int32)), _column(np.full(count, point, dtype=np.float64))]
    return pa.table([*_columns(records), *same], schema=SCHEMA)


def _columns(records: RunRecords) -> list[pa.Array]:
    """Return the columns of `_OF_RUN`."""
    return [
        _column(records.flow),
        _column(records.sequence),
        _column(records.sent_ns),
        _column(records.received_ns, records.received_ns != LOST),
        _column(records.size),
    ]


def _column(values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Wrap values without copying them; null where not `valid`.

    `pa.array` does the same but imports pandas, which takes longer than a short run.
    """
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bits, data])


def unpacked(packets: bytes) -> RunRecords:
    """Return the packets that `packed` wrote."""
    # In a quarter of the time of `pq.read_table`, which serves whole data sets and files on slow disks.
    with pq.ParquetFile(pa.BufferReader(packets), pre_buffer=False) as file:
        rows = file.read(columns=_OF_RUN.names, use_threads=False)
    return RunRecords(
        flow=_values(rows.column("flow")),
        sequence=_values(rows.column("sequence")),
        sent_ns=_values(rows.column("sent_ns")),
        received_ns=_values(rows.column("received_ns"), null=LOST),
        size=_values(rows.column("size")),
    )


def _values(column: pa.ChunkedArray, *, null: int = 0) -> NDArray[Any]:
    """Return the values of a column of numbers, with `null` for each null; the inverse of `_column`.

    They are not copied if the column has one chunk without nulls. `to_numpy` and `fill_null` do the same but
    import pandas.
    """
    values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    bits, data = values.buffers()
    here = slice(values.offset, values.offset + len(values))
    numbers = np.frombuffer(data, dtype=values.type.to_pandas_dtype())[here]
    if not values.null_count:
        return numbers
    valid = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), bitorder="little")[here]
    return np.where(valid.view(np.bool_), numbers, null)


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
