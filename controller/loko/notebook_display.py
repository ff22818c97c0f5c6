"""How results appear in notebooks: as HTML tables, and as streams that libraries of data frames read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

MOST_ROWS: Final = 60
"""Rows that a table shows; a last line counts the others."""


def html_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of texts as HTML. Texts are escaped, and numbers are texts already."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[:MOST_ROWS]
    )
    left = len(rows) - MOST_ROWS
    more = f'<tr><td colspan="{len(columns)}">and {left:,} more</td></tr>' if left > 0 else ""
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}{more}</tbody></table>"
    )


def arrow_stream(
    columns: Mapping[str, type], rows: Sequence[Mapping[str, object]], requested_schema: object = None
) -> object:
    """Return rows as a stream of the Arrow C data interface (a PyCapsule), null where a row lacks a column.

    `columns` maps names to `str`, `bool`, `int` or `float`.
    """
    import pyarrow as pa  # noqa: PLC0415 - only those who ask for a frame wait for it

    types = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    return pa.Table.from_pylist(list(rows), schema=schema).__arrow_c_stream__(requested_schema)
