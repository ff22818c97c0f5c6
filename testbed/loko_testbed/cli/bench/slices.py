"""The command `loko bench slice`."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both
from loko_testbed.measure.bench.part import SampleSet
from loko_testbed.measure.bench.store import PartSamples, SampleStore, part_samples
from loko_testbed.measure.slices.devices import open_device
from loko_testbed.measure.slices.document import load_sliced_switch
from loko_testbed.measure.slices.judgement import SliceRow, SliceVerdict, rows
from loko_testbed.measure.slices.measurements import SliceMeasurement, parts
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
    judged = measured_rows(device, out or Path("results") / "bench" / f"slice-{Path(device).stem}", seed=seed)
    if as_json:
        print_json([asdict(row) for row in judged])
    elif as_csv:
        print_csv([field.name for field in fields(SliceRow)], map(asdict, judged))
    else:
        _print(judged)
    if any(row.verdict is SliceVerdict.DIFFERS for row in judged):
        raise typer.Exit(1)


def measured_rows(device: str, folder: Path, *, seed: int) -> list[SliceRow]:
    """Measure what is missing, and return the table. Raises `InputError` or `RunError`."""
    switch = load_sliced_switch(device)
    opened, port = open_device(switch), switch.port()
    todo = parts(port, switch.counted_as(), opened)
    output_directory(folder)
    parameters = {
        "switch": switch.model_dump(mode="json"),
        "port": port.model_dump(mode="json"),
        "device": opened.parameters(),
        "seed": seed,
    }
    store = SampleStore(folder, parameters)

    def measure(part: SliceMeasurement) -> PartSamples:
        return part_samples((size, SampleSet(numbers)) for size, numbers in part.measure(opened, seed))

    measured = store.parts(measure)
    with lock_folder(folder), ProgressBar() as bar:
        bar.begin(len(todo), len(store.complete_among(part.key for part in todo)), "parts")
        for place, _ in measured.each_done(todo):
            bar.advance(str(todo[place].key))
    return rows(port, switch.counted_as(), store.samples(part.key for part in todo))


def _print(judged: list[SliceRow]) -> None:
    table = Table("slice", "what", "configured", "measured", "verdict, and why", box=None)
    for row in judged:
        colour = _COLOURS.get(row.verdict)
        verdict = row.verdict.value if colour is None else f"[{colour}]{row.verdict.value}[/]"
        because = f": {row.because}" if row.because else ""
        table.add_row(row.slice, row.what, row.configured, row.measured, verdict + because)
    Console().print(table)
