"""The commands `loko bench check` and `preconditions`: is a switch wired rightly, and of which kind."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from loko.terminal import tell
from loko_testbed.cli.bench.progress import measuring
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both
from loko_testbed.measure.bench.campaign import run
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.inventory import Inventory, load_inventory
from loko_testbed.measure.bench.live.bench import CONNECT_S
from loko_testbed.measure.bench.live.open_device import open_bench
from loko_testbed.measure.bench.live.self_test import self_test
from loko_testbed.measure.bench.live.shaped_senders import CASES, measure
from loko_testbed.measure.bench.preconditions import SAMPLES, Precondition, preconditions, reduced_parts
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.tasks.files import lock_folder, output_directory

DeviceOption = Annotated[str, typer.Option(help="An inventory: its name in labs/bench, or its path.")]
OutOption = Annotated[Path | None, typer.Option(help="Folder of samples. Default: results/bench/DEVICE.")]
SamplesOption = Annotated[int, typer.Option(min=3, max=100_000, help="Frames of each case.")]

_SIGNS = {True: "[green]holds", False: "[red]fails", None: "[yellow]unknown"}


def check(*, device: DeviceOption) -> None:
    """Check within seconds that a switch is wired as its inventory says. Needs root.

    Example: sudo loko bench check --device labs/bench/zodiac-fx.yml
    """
    with open_bench(load_inventory(device)) as bench:
        self_test(bench, connect_s=CONNECT_S)
        tell(f"{bench.name}: wired as its inventory says; stamps by {bench.stamps}")


def judge(
    *,
    device: DeviceOption,
    out: OutOption = None,
    samples: SamplesOption = SAMPLES,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each precondition.")] = False,
) -> None:
    """Measure a part of Table 1, throughput and buffer, and say which of Loko's preconditions hold.

    What was measured before is not measured again. Needs root. Status 1 if a precondition fails.

    Example: sudo loko bench preconditions --device labs/bench/openvswitch.yml
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    inventory = load_inventory(device)
    folder = output_directory(out if out is not None else Path("results") / "bench" / inventory.name)
    store, wire = measured_store(inventory, folder, samples=samples)
    conditions = preconditions(store.samples(part.key for part in reduced_parts()), wire)
    report(conditions, as_json=as_json, as_csv=as_csv)
    if any(condition.holds is False for condition in conditions):
        raise typer.Exit(1)


def senders(
    *,
    seconds: Annotated[float, typer.Option(min=5, max=600, help="Length of each measurement.")] = 5.0,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each sender.")] = False,
) -> None:
    """Measure what mgen and tc's tbf do on this machine at the rates of figures 3a, 3b and 3c. Needs root.

    Shows how much longer than its tokens a frame takes (--shaper-latency-ns of `loko evaluate`), how fast the
    generator is without a shaper, and how much of a long burst finds room (docs/senders.md).

    Example: sudo loko bench senders --seconds 10
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    senders = []
    for case in CASES:
        senders.append(measure(case, seconds))
    rows = [{**asdict(sender), "latency_us": sender.latency_us} for sender in senders]
    if as_json:
        print_json(rows)
        return
    if as_csv:
        gaps = ("gap_p1_us", "gap_p50_us", "gap_p99_us")
        columns = [name for name in rows[0] if name != "gap_us"]
        told = ({**row, **dict(zip(gaps, row["gap_us"] or (), strict=False))} for row in rows)
        print_csv([*columns, *gaps], told)
        return
    table = Table(
        "sender", "told [1/s]", "reached", "left", "us a frame", "tokens", "more", "of a burst", box=None
    )
    for sender in senders:
        table.add_row(
            sender.name,
            f"{sender.offered_pps:.0f}",
            f"{sender.accepted_pps:.0f}",
            f"{sender.sent_pps:.0f}",
            f"{sender.frame_us:.1f}",
            f"{sender.token_us:.1f}" if sender.shaped else "-",
            "-" if sender.latency_us is None else f"{sender.latency_us:.1f}",
            "-" if sender.burst_frames is None else f"{sender.burst_frames:.0f}",
        )
    Console().print(table)


def measured_store(inventory: Inventory, folder: Path, *, samples: int) -> tuple[SampleStore, LinkTiming]:
    """Measure the missing parts of `reduced_parts`. Return the samples, and the switch's links.

    Raises `InputError` or `RunError`; what is measured by then is kept.
    """
    store = SampleStore(folder, {"preconditions": inventory.model_dump(mode="json"), "samples": samples})
    todo = reduced_parts(samples=samples)
    with lock_folder(folder), open_bench(inventory) as bench:
        self_test(bench, connect_s=CONNECT_S)
        with measuring(todo, store.complete_among(part.key for part in todo), real_time=True) as tell:
            run(bench.device, todo, store, seed=1, on_part=tell)
        return store, bench.device.wire


def report(conditions: list[Precondition], *, as_json: bool, as_csv: bool) -> None:
    """Print which preconditions hold and which do not."""
    if as_json:
        print_json([asdict(condition) for condition in conditions])
        return
    if as_csv:
        print_csv([field.name for field in fields(Precondition)], map(asdict, conditions))
        return
    table = Table("", "Loko presumes", "measured", box=None, padding=(0, 1, 1, 0))
    for condition in conditions:
        table.add_row(
            _SIGNS[condition.holds],
            f"[bold]{condition.name}[/bold]\n{condition.presumed}",
            condition.measured,
        )
    Console().print(table)
