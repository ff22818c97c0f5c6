"""Produce tables, which are computed, not replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loko_testbed.reproduce.figure import lab_of, notes_of
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.allocation import allocation_of
from loko_testbed.reproduce.figure_types.table.document import COLUMNS, TableFigure, cell_name
from loko_testbed.reproduce.result import AxisLabel, FigureResult, HostResult, Provenance, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress
from loko_testbed.tasks.provenance import commit, versions

_KB: Final = 1024


def compute(tables: Sequence[TableFigure], options: Options, _progress: Progress) -> list[FigureResult]:
    """Compute the tables. There are no raw rows."""
    return [_table_result(table, options) for table in tables]


def _table_result(table: TableFigure, options: Options) -> FigureResult:
    lab = lab_of(table)
    rows: list[list[str | float]] = []
    for scheme in table.schemes:
        allocation = allocation_of(table, lab, scheme)
        curve = allocation.service.curve
        values = (
            curve.rate_bps / 1e6,
            curve.latency_ns / 1e6,
            allocation.max_rate_bps / 1e6,
            allocation.max_burst_bytes / _KB,
            allocation.delay_ns / 1e6,
        )
        rows.append([scheme, *(round(value, 6) for value in values)])
    return FigureResult(
        figure=table.figure,
        paper=table.paper,
        title=table.title,
        mode=options.mode,
        seed=options.seed,
        x=AxisLabel(name="allocation scheme", unit=""),
        table=TableResult(
            columns=["scheme", *COLUMNS],
            rows=rows,
            findings=[["", *(cell_name(scheme, column) for column in COLUMNS)] for scheme in table.schemes],
        ),
        claims=[],
        notes=notes_of(table),
        provenance=Provenance(
            commit=commit(),
            profile=next(iter(lab.switches.values())).profile.name,
            host=HostResult(),
            runs=0,
            seconds=0,
            versions=versions(),
            assumptions={},
        ),
    )


FIGURE_TYPE: Final = FigureType(
    documents=(TableFigure,),
    compute=compute,
    estimate_s=lambda table: dict.fromkeys(map(str, table.modes), 1.0),
)
