"""Compute the figures of this type."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from loko import model
from loko_table_walk.document import TableWalk
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.result import AxisLabel
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress


def compute(figure: TableWalk, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Compute a figure: its picture and findings, and the raw rows. Raises `InputError`."""
    sizes = figure.packet_sizes_bytes[:1] if options.quick else figure.packet_sizes_bytes
    progress.begin(len(sizes), 0, unit="frame sizes")
    rows = []
    for size in sizes:
        for entries in figure.entries:
            service = model(
                figure.profile,
                packet_sizes_bytes=[size],
                entries=entries,
                match="five-tuple",
                action="output",
            )
            rows.append({"bytes": size, "entries": entries, "rate_bps": service.rate_bps})
        progress.advance(f"{size} bytes")
    curves = [
        ChartCurve(
            label=f"{size} bytes",
            x=[float(row["entries"]) for row in rows if row["bytes"] == size],
            y=[row["rate_bps"] / 1e6 for row in rows if row["bytes"] == size],
        )
        for size in sizes
    ]
    panel = LinePanel(
        x=ChartAxis(label="flow entries"),
        y=ChartAxis(label="worst throughput [Mbit/s]", low=0),
        curves=curves,
    )
    slowest, fastest = (chosen(row["rate_bps"] for row in rows) for chosen in (min, max))
    outcome = Outcome(
        x=AxisLabel(name="flow entries", unit=""),
        chart=Chart(panels=[panel]),
        findings={"slowdown": fastest / slowest},
        profile=figure.profile,
    )
    return outcome, pa.Table.from_pylist(rows)


FIGURE_TYPE: Final = FigureType(
    documents=(TableWalk,), compute=OneByOne(compute), estimate_s=lambda _figure: {"virtual": 1.0}
)
