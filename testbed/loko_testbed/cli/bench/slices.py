"""The command `loko bench slice`."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from loko_testbed.cli.bench.workers import ExecutorOption, JobsOption, SchedulerOption, workers_of
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both
from loko_testbed.measure.slices.campaign import measured_rows
from loko_testbed.measure.slices.document import load_sliced_switch
from loko_testbed.measure.slices.judgement import SliceRow, SliceVerdict
from loko_testbed.tasks.executor import Executor
from loko_testbed.tasks.files import lock_folder, output_directory
from loko_testbed.tasks.progress import ProgressBar

_COLOURS = {SliceVerdict.DIFFERS: "red", SliceVerdict.FOLLOWS: "yellow", SliceVerdict.AS_CONFIGURED: "green"}


def bench_slice(
    *,
    device: Annotated[
        str, typer.Option(help="A sliced switch: its name in labs/slicing/devices, or its path.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder of samples. Default: results/bench/slice-DEVICE.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="The same seed gives the same samples in virtual time.")
    ] = 1,
    jobs: JobsOption = None,
    executor: ExecutorOption = Executor.PROCESSES,
    scheduler: SchedulerOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV, a line for each row of the table.")
    ] = False,
) -> None:
    """Measure from outside what the slices of a port do, and say where that is not what was configured.

    Rate and what it counts, accuracy by length of frame, bucket, dequeue group, latency, borrowing, isolation
    under attack, TCP. What was measured before is not measured again. Status 1 if something differs.

    Example: loko bench slice --device policer-of-one-packet
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    switch = load_sliced_switch(device)
    workers = workers_of(jobs, executor, scheduler, real_time=switch.real_time)
    folder = output_directory(out or Path("results") / "bench" / f"slice-{Path(device).stem}")
    with lock_folder(folder), ProgressBar() as progress:
        judged = measured_rows(switch, folder, seed=seed, workers=workers, progress=progress)
    if as_json:
        print_json([asdict(row) for row in judged])
    elif as_csv:
        print_csv([field.name for field in fields(SliceRow)], map(asdict, judged))
    else:
        _print(judged)
    if any(row.verdict is SliceVerdict.DIFFERS for row in judged):
        raise typer.Exit(1)


def _print(judged: list[SliceRow]) -> None:
    table = Table("slice", "what", "configured", "measured", "verdict, and why", box=None)
    for row in judged:
        colour = _COLOURS.get(row.verdict)
        verdict = row.verdict.value if colour is None else f"[{colour}]{row.verdict.value}[/]"
        because = f": {row.because}" if row.because else ""
        table.add_row(row.slice, row.what, row.configured, row.measured, verdict + because)
    Console().print(table)
