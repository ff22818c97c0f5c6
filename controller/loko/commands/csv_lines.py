"""Rows as CSV, for every command that has `--csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence


def csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return a heading and a line for each row. What a row lacks is empty; what is no column is left out."""
    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n", extrasaction="ignore")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()
