"""The command `loko bench`: step 1, from a switch to its profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as Printed

from loko.document import InputError
from loko.switch_model.device import load_profile, profile_names
from loko.switch_model.scenario import OpenFlow
from loko_testbed.cli.bench.captures import analyse_captures
from loko_testbed.cli.bench.chosen_campaign import ChosenCampaign
from loko_testbed.cli.bench.controller import bench_controller
from loko_testbed.cli.bench.live import check, judge, report, senders
from loko_testbed.cli.bench.predictability import judge_predictability
from loko_testbed.cli.bench.workers import ExecutorOption, JobsOption, SchedulerOption
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both
from loko_testbed.measure.bench.cost_model.fitted import fit
from loko_testbed.measure.bench.cost_model.profile_document import Origin, measured_profile
from loko_testbed.measure.bench.cost_model.summary import lines, summary
from loko_testbed.measure.bench.device import wire_of
from loko_testbed.measure.bench.device_choice import form_of
from loko_testbed.measure.bench.inventory import SoftwareSwitch
from loko_testbed.measure.bench.part import Design, Key, MeasurementPart, NoFrameLength, Procedure, Samples
from loko_testbed.measure.bench.preconditions import preconditions
from loko_testbed.measure.bench.procedures import EVERY_PROCEDURE, IN_OPENFLOW_13, PROCEDURES
from loko_testbed.measure.bench.procedures.dp_time import PAPER_SAMPLES
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.executor import Executor
from loko_testbed.tasks.files import write_atomically
from loko_testbed.tasks.provenance import commit

bench_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Measure a switch and derive its profile (step 1 of Loko).",
)

bench_app.command("analyse")(analyse_captures)
bench_app.command("check")(check)
bench_app.command("preconditions")(judge)
bench_app.command("senders")(senders)
bench_app.command("controller")(bench_controller)
bench_app.command("predictability")(judge_predictability)

DeviceOption = Annotated[
    str,
    typer.Option(
        help="A profile, for its board in virtual time, or an inventory.", autocompletion=profile_names
    ),
]
OutOption = Annotated[Path | None, typer.Option(help="Folder of samples. Default: results/bench/DEVICE.")]
SamplesOption = Annotated[int, typer.Option(min=3, max=100_000, help="Samples of each combination.")]
DesignOption = Annotated[
    Design | None,
    typer.Option(help="All of Table 1, or enough for every number. Default: full in virtual time only."),
]
EstimateOption = Annotated[bool, typer.Option("--estimate", help="Only say how long it would take.")]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same samples in virtual time.")]
FormOption = Annotated[
    str | None,
    typer.Option(help="Profile that gives the form and what is not measured. Default: the device's own."),
]
OpenFlowOption = Annotated[
    OpenFlow,
    typer.Option(
        "--openflow", help="Version of the sessions. 1.0 tells most numbers, also of a board in 1.3."
    ),
]


def _in_version(procedure: Procedure, openflow: OpenFlow) -> Procedure:
    """Return the procedure for this version. Raises `InputError` if it is the same in both versions."""
    if openflow is OpenFlow.V1_0:
        return procedure
    if procedure.name not in IN_OPENFLOW_13:
        raise InputError(
            f"--openflow {openflow.value}: {procedure.name} measures the same in both versions; leave it out,"
            f" or choose {', '.join(IN_OPENFLOW_13)} or all"
        )
    return IN_OPENFLOW_13[procedure.name]


def add_command(app: typer.Typer, procedure: Procedure) -> None:
    """Add the command of one procedure; they differ in nothing but what they measure."""
    example = f"Example: loko bench {procedure.name} --device zodiac-fx"

    @app.command(procedure.name, help=f"{procedure.text}\n\n{example}")
    def command(
        *,
        device: DeviceOption = "zodiac-fx",
        out: OutOption = None,
        samples: SamplesOption = PAPER_SAMPLES,
        design: DesignOption = None,
        estimate: EstimateOption = False,
        seed: SeedOption = 1,
        openflow: OpenFlowOption = OpenFlow.V1_0,
        jobs: JobsOption = None,
        executor: ExecutorOption = Executor.PROCESSES,
        scheduler: SchedulerOption = None,
        as_json: JsonOption = False,
        as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each row.")] = False,
    ) -> None:
        refuse_both(as_json=as_json, as_csv=as_csv)
        asked = _in_version(procedure, openflow)
        chosen = ChosenCampaign.of(
            (asked, *asked.beside),
            device,
            out=out,
            samples=samples,
            design=design,
            seed=seed,
            jobs=jobs,
            executor=executor,
            scheduler=scheduler,
        )
        if estimate:
            _say(chosen.estimates())
            return
        kept = chosen.measure()
        rows = _rows(asked, chosen.parts(), kept, chosen.left_out())
        if not rows:
            raise RunError(f"{device}: this switch, or its bench, has nothing that {asked.name} measures")
        if as_csv:
            print_csv(_COLUMNS, rows)
        else:
            _print(asked, rows, as_json)


for _one in PROCEDURES:
    add_command(bench_app, _one)


@bench_app.command("all")
def measure_all(
    *,
    device: DeviceOption = "zodiac-fx",
    out: OutOption = None,
    samples: SamplesOption = PAPER_SAMPLES,
    design: DesignOption = None,
    estimate: EstimateOption = False,
    seed: SeedOption = 1,
    form: FormOption = None,
    openflow: OpenFlowOption = OpenFlow.V1_0,
    jobs: JobsOption = None,
    executor: ExecutorOption = Executor.PROCESSES,
    scheduler: SchedulerOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each number.")] = False,
) -> None:
    """Run the whole campaign and write profile.toml, each number with its source and range.

    What was measured before is not measured again. Numbers that the campaign does not measure come from the
    device's own profile, and are named. An Open vSwitch does not have the board's form: what can be measured
    of it is compared with Loko's preconditions instead.

    With --openflow 1.3 it measures the costs of 1.3 as well, in sessions of their own.

    Example: loko bench all --device zodiac-fx --out results/bench/zodiac-fx
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    whole = ChosenCampaign.of(
        PROCEDURES if openflow is OpenFlow.V1_0 else EVERY_PROCEDURE,
        device,
        out=out,
        samples=samples,
        design=design,
        seed=seed,
        jobs=jobs,
        executor=executor,
        scheduler=scheduler,
    )
    if estimate:
        _say(whole.estimates())
        return
    kept = whole.measure()
    if isinstance(whole.chosen.inventory, SoftwareSwitch):
        report(preconditions(kept, whole.chosen.inventory.wire()), as_json=as_json, as_csv=as_csv)
        return
    form_name = form or whole.chosen.form
    values = form_of(form_name)
    fitted = fit(kept, wire_of(load_profile(form_name).ports), values)
    profile = measured_profile(
        values,
        fitted,
        name=f"{Path(device).stem}-measured",
        title=f"Measured: {Path(device).stem}",
        origin=Origin(device=device, date=whole.begun(), commit=commit(), samples=samples, seed=seed),
    )
    path = whole.folder / "profile.toml"
    write_atomically(path, profile.text.encode())
    if as_json:
        print_json(summary(profile, fitted, path))
        return
    if as_csv:
        measured = summary(profile, fitted, path)["measured"]
        rows = ({"number": name} | number for name, number in measured.items())
        print_csv(["number", "value", "standard_error", "samples"], rows)
        return
    _say(lines(profile, fitted, path))


SampleRow = dict[str, Any]
_COLUMNS: Final = ("what", "frame_bytes", "samples", "min", "p5", "p50", "p95", "max", "left_out")
"""Columns of a `SampleRow`; times in ns, rates in bit/s, frames in frames."""


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)


def _rows(
    procedure: Procedure,
    todo: list[MeasurementPart],
    samples: Samples,
    left_out: Mapping[tuple[Key, int], int],
) -> list[SampleRow]:
    """Return a row for each part and frame length."""
    return [
        _row(part.key.name, size, procedure.shown(times)) | {"left_out": left_out[part.key, size]}
        for part in todo
        for size, times in sorted(samples.get(part.key, {}).items())
        if len(times) and size != NoFrameLength.CONTEXT
    ]


def _row(name: str, size: int, times: Any) -> SampleRow:
    low, middle, high = np.percentile(times, (5, 50, 95))
    return {
        "what": name,
        "frame_bytes": size or None,
        "samples": len(times),
        "min": int(times.min()),
        "p5": float(low),
        "p50": float(middle),
        "p95": float(high),
        "max": int(times.max()),
    }


def _print(procedure: Procedure, rows: list[SampleRow], as_json: bool) -> None:
    if as_json:
        print_json({"procedure": procedure.name, "rows": rows})
        return
    numbers = ("min", "p5", "p50", "p95", "max")
    table = Printed(f"what, in {procedure.unit}", "bytes", *numbers, "left out", box=None)
    for row in rows:
        texts = (f"{row[name] / procedure.scale:.2f}" for name in numbers)
        table.add_row(row["what"], str(row["frame_bytes"] or ""), *texts, str(row["left_out"] or ""))
    Console().print(table)
