"""Results for other programs: the options `--json` and `--csv`, which a command has both or neither of."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import typer

from loko_testbed.cli.choices import refuse_together

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def refuse_both(*, as_json: bool, as_csv: bool) -> None:
    """Refuse the two together, before anything is measured. Raises `InputError`."""
    refuse_together({"--json": as_json, "--csv": as_csv})


def print_json(values: object) -> None:
    """Print what `--json` promises."""
    typer.echo(json.dumps(values, indent=2, ensure_ascii=False))


def print_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Print what `--csv` promises: see `csv_lines`."""
    typer.echo(csv_lines(columns, rows), nl=False)


def csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return a heading and a line for each row. What a row lacks is empty; what is no column is left out."""
    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n", extrasaction="ignore")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()
