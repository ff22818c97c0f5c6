"""The commands `loko bench check` and `preconditions`: is a switch wired rightly, and of which kind."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from evaluation.bench.campaign import run
from evaluation.bench.findings import read_samples
from evaluation.bench.inventory import load_inventory
from evaluation.bench.live.bench import CONNECT_S
from evaluation.bench.live.open_device import open_bench
from evaluation.bench.live.self_test import self_test
from evaluation.bench.preconditions import Precondition, preconditions
from evaluation.bench.progress import measuring
from evaluation.bench.reduced import SAMPLES, reduced_parts
from evaluation.bench.store import SampleStore
from evaluation.files import alone_in, output_directory
from evaluation.provenance import commit

DeviceOption = Annotated[str, typer.Option(help="An inventory: its name in labs/bench, or its path.")]
OutOption = Annotated[Path | None, typer.Option(help="Folder of samples. Default: results/bench/DEVICE.")]
SamplesOption = Annotated[int, typer.Option(min=3, max=100_000, help="Frames of each case.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_SAMPLES: str = "preconditions.sqlite"
_SIGNS = {True: "[green]holds", False: "[red]fails", None: "[yellow]unknown"}


def check(*, device: DeviceOption) -> None:
    """See within seconds whether a switch is wired as its inventory says. Needs root.

    Example: sudo loko bench check --device labs/bench/zodiac-fx.yml
    """
    with open_bench(load_inventory(device)) as bench:
        self_test(bench, connect_s=CONNECT_S)
        typer.echo(f"{bench.name}: wired as its inventory says; stamps by {bench.stamps}")


def judge(
    *,
    device: DeviceOption,
    out: OutOption = None,
    samples: SamplesOption = SAMPLES,
    as_json: JsonOption = False,
) -> None:
    """Measure a part of Table 1, throughput and buffer, and say what of Loko's model the switch satisfies.

    What is measured already is not measured again. Needs root. Status 1 if a precondition fails.

    Example: sudo loko bench preconditions --device labs/bench/openvswitch.yml
    """
    entry = load_inventory(device)
    folder = output_directory(out if out is not None else Path("results") / "bench" / entry.name)
    parameters = {"device": entry.model_dump(mode="json"), "samples": samples, "commit": commit()}
    todo = reduced_parts(samples=samples)
    with (
        alone_in(folder),
        SampleStore(folder / _SAMPLES, parameters) as store,
        open_bench(entry) as bench,
    ):
        self_test(bench, connect_s=CONNECT_S)
        with measuring(todo, store.parts(), real_time=True) as tell:
            run(bench.device, todo, store, seed=1, on_part=tell)
        found = preconditions(read_samples(store), bench.device.wire)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=1))
    else:
        _print(found)
    if any(one.holds is False for one in found):
        raise typer.Exit(1)


def _print(found: list[Precondition]) -> None:
    table = Table("", "Loko presumes", "measured", box=None, padding=(0, 1, 1, 0))
    for one in found:
        table.add_row(_SIGNS[one.holds], f"[bold]{one.name}[/bold]\n{one.presumed}", one.measured)
    Console().print(table)
