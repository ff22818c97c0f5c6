"""The commands `loko evaluate`, `figures` and `report`: what they take, and what they print."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from loko.control.relay import interpreter
from loko.document import InputError
from loko.terminal import tell
from loko.topology.lab import Backend
from loko_testbed.cli.choices import PCAP_LIMIT_MEGABYTES, PcapLimitOption
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both
from loko_testbed.live.permission import obstacle
from loko_testbed.reproduce.figure_types import figure_type_named, refuse_unsupported
from loko_testbed.reproduce.figure_types.experiments import experiments, experiments_named, select
from loko_testbed.reproduce.flow_figure import refuse_unsupported_senders
from loko_testbed.reproduce.folder import short_name
from loko_testbed.reproduce.hardware import select_by_boards
from loko_testbed.reproduce.result import ClaimResult, FigureResult, GuaranteeResult
from loko_testbed.reproduce.runs import FigureRun, read_runs
from loko_testbed.reproduce.verdicts import (
    KINDS,
    LEVELS,
    EvidenceLadder,
    counts,
    evidence_ladder,
    ladder_rows,
    ladder_values,
    sentences,
)
from loko_testbed.simulation.options import OS_KEN, Builder, CaptureChoice, Options
from loko_testbed.simulation.senders import SenderChoice, SenderName
from loko_testbed.tasks.executor import Executor, Workers, prepare
from loko_testbed.tasks.files import lock_folder, output_directory
from loko_testbed.tasks.progress import ProgressBar


class ModeName(StrEnum):
    """Where the switches run."""

    VIRTUAL = "virtual"
    LIVE = "live"
    HARDWARE = "hardware"


class PointChoice(StrEnum):
    """Which points of a figure."""

    ALL = "all"
    ADMITTED = "admitted"


FiguresArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FIGURE]...", help="Such as fig17a. Default: all but long ones."),
]
ModeOption = Annotated[
    ModeName,
    typer.Option(help="Boards in virtual time, live on this machine (as root), or some of them real."),
]
RunsOption = Annotated[int | None, typer.Option(min=1, help="Runs of each point. Default: the paper's.")]
SecondsOption = Annotated[
    float | None, typer.Option(min=0.01, max=3600, help="Length of a run. Default: the paper's.")
]
SeedOption = Annotated[
    int, typer.Option(min=0, help="The same seed gives the same traffic; in virtual time, the same bytes.")
]
OutOption = Annotated[Path | None, typer.Option(help="Folder of results. Default: results/MODE[-BACKEND].")]
PointsOption = Annotated[
    PointChoice, typer.Option(help="All points, or those at which the paper's guarantee holds.")
]
QuickOption = Annotated[bool, typer.Option("--quick", help="A small run: few points, few and short runs.")]
JobsOption = Annotated[
    int | None,
    typer.Option(min=1, max=256, help="Points computed at a time (virtual). Default: one per processor."),
]
CapacityOption = Annotated[
    float | None,
    typer.Option(min=0, help="True capacity divided by equation 6; the paper allows 0.94 to 1.06."),
]
SenderOption = Annotated[
    SenderName | None,
    typer.Option(
        help="How hosts send (docs/senders.md). Default: as the figure says, the papers' identified."
    ),
]
BurstOption = Annotated[
    int | None, typer.Option(min=0, help="Frames in a generator's burst; 0: as many as the bucket holds.")
]
LoadOption = Annotated[
    float | None,
    typer.Option(min=0.01, max=10, help="Mean rate of the generators divided by that of their shapers."),
]
QueueOption = Annotated[int | None, typer.Option(min=1, help="Frames that may wait before a shaper.")]
LatencyOption = Annotated[
    int | None,
    typer.Option(min=0, help="How late a shaper releases frames that waited for tokens (virtual)."),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="End with status 1 also if a claim of the paper does not hold.")
]
BackendOption = Annotated[
    Backend | None,
    typer.Option(help="Backend of every emulated switch (live, hardware). Default: as the lab says."),
]
BuilderOption = Annotated[Builder, typer.Option(help="What builds the lab's network (live).")]
FrameworkOption = Annotated[
    str, typer.Option(help="OpenFlow framework of the controller (live, hardware): os-ken or ryu.")
]
FrameworkPythonOption = Annotated[
    str | None, typer.Option(help="Interpreter that has the framework. Default: this one.")
]
CablingOption = Annotated[
    Path | None, typer.Option(help="Which switches are real boards (hardware), and how they are cabled.")
]
ExecutorOption = Annotated[
    Executor, typer.Option(help="Where tasks run (virtual): on this machine, or on a Dask cluster.")
]
PcapOption = Annotated[
    Path | None, typer.Option(help="Folder for captures of the first run of each point (virtual).")
]
PcapRunsOption = Annotated[int, typer.Option(min=1, help="Runs of each point that leave captures.")]
SchedulerOption = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="The Dask scheduler's, such as tcp://10.0.0.1:8786.")
]


def evaluate(
    figures: FiguresArgument = None,
    *,
    mode: ModeOption = ModeName.VIRTUAL,
    runs: RunsOption = None,
    seconds: SecondsOption = None,
    seed: SeedOption = 1,
    out: OutOption = None,
    points: PointsOption = PointChoice.ALL,
    quick: QuickOption = False,
    jobs: JobsOption = None,
    capacity_factor: CapacityOption = None,
    sender: SenderOption = None,
    burst_frames: BurstOption = None,
    offered_load: LoadOption = None,
    queue_frames: QueueOption = None,
    shaper_latency_ns: LatencyOption = None,
    backend: BackendOption = None,
    builder: BuilderOption = Builder.MININET,
    framework: FrameworkOption = OS_KEN,
    framework_python: FrameworkPythonOption = None,
    cabling: CablingOption = None,
    executor: ExecutorOption = Executor.PROCESSES,
    scheduler: SchedulerOption = None,
    pcap: PcapOption = None,
    pcap_runs: PcapRunsOption = 1,
    pcap_limit: PcapLimitOption = PCAP_LIMIT_MEGABYTES,
    strict: StrictOption = False,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each claim.")] = False,
) -> None:
    """Replay figures of the papers and compare them with what the papers say.

    Writes FIGURE.json, .parquet, .svg, .png and report.html. Runs whose results exist with the same
    parameters are not repeated. Status 1 if a guarantee that Loko's admission gives is broken and no stall of
    the host explains it; claims that do not hold are reported, and change the status only with --strict.

    Example: loko evaluate fig17a fig17b --runs 30 --seconds 10 --seed 1 --out results/virtual

    Example: loko evaluate fig17a --quick --seconds 2 --pcap captures
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    chosen = select_by_boards(
        select(figures or [], experiments_named(figures or []), mode.value),
        mode.value,
        cabling,
        all_or_none=bool(figures),
    )
    _check_framework(mode, framework, framework_python)
    senders = SenderChoice(
        sender=None if sender is None else sender.value,
        burst_frames=burst_frames,
        offered_load=offered_load,
        queue_frames=queue_frames,
        shaper_latency_ns=shaper_latency_ns,
    )
    refuse_unsupported_senders(chosen, senders, real_time=mode is not ModeName.VIRTUAL)
    _check_executor(mode, executor, scheduler)
    if pcap is not None and mode is not ModeName.VIRTUAL:
        raise InputError("--pcap: for --mode virtual only; leave it out")
    given = {
        "capacity_factor": capacity_factor is not None,
        "executor": executor is not Executor.PROCESSES,
        "pcap": pcap is not None,
    }
    refuse_unsupported(chosen, [name for name, is_given in given.items() if is_given])
    processes = jobs if jobs is not None else len(os.sched_getaffinity(0))
    if mode is ModeName.VIRTUAL and processes > 1:
        # Start the fork server now: it imports these modules while this process imports the rest.
        prepare("loko_testbed.reproduce.plots", "loko_testbed.reproduce.replay.campaign")
    from loko_testbed.reproduce.evaluate import evaluate as replay  # noqa: PLC0415

    options = Options(
        mode=mode.value,
        seed=seed,
        out=_directory(
            mode, out, capacity_factor, backend, needs_root=any(figure.needs_root for figure in chosen)
        ),
        runs=runs,
        seconds=seconds,
        points=points.value,
        quick=quick,
        jobs=processes,
        senders=senders,
        capacity_factor=capacity_factor,
        backend=backend,
        builder=builder,
        framework=framework,
        framework_python=framework_python,
        cabling=cabling,
        executor=executor,
        scheduler=scheduler,
        captures=None
        if pcap is None
        else CaptureChoice(folder=pcap, runs=pcap_runs, limit_bytes=pcap_limit * 1_000_000),
    )
    with lock_folder(options.out), ProgressBar() as progress:
        before, begun_s = read_runs(options.out), time.monotonic()
        results = replay(chosen, options, progress)
        seconds = time.monotonic() - begun_s
    if as_csv:
        claims = (
            {"figure": result.figure, "paper": result.paper} | claim.model_dump(mode="json")
            for result in results
            for claim in result.claims
        )
        print_csv(["figure", "paper", *ClaimResult.model_fields], claims)
    else:
        _print_results(results, options.out, as_json)
        if not as_json:
            made = [run for name, run in read_runs(options.out).items() if before.get(name) != run]
            _print_times(made, seconds)
    if any(result.breaks_ours or (strict and result.broken_claims) for result in results):
        raise typer.Exit(1)


def _directory(
    mode: ModeName,
    out: Path | None,
    capacity_factor: float | None,
    backend: Backend | None,
    *,
    needs_root: bool,
) -> Path:
    """Create and return the folder of results. Raises `InputError` if the options do not allow the mode."""
    if mode is not ModeName.VIRTUAL:
        _check_real_time(mode, capacity_factor, needs_root=needs_root)
    coarse = backend not in (None, Backend.FIRMWARE)
    if coarse and mode is ModeName.VIRTUAL:
        raise InputError(f"--backend {backend}: exists in live runs only; use --mode live, or leave it out")
    default = Path("results") / (f"{mode}-{backend}" if coarse else mode.value)
    return output_directory(out if out is not None else default)


def _check_framework(mode: ModeName, framework: str, python: str | None) -> None:
    """Raise `InputError` if a framework is chosen in virtual time, or its interpreter cannot be found."""
    if mode is ModeName.VIRTUAL:
        if framework != OS_KEN or python is not None:
            raise InputError("--framework: for --mode live and hardware only; leave it out")
        return
    if shutil.which(interpreter(framework, python)) is None:
        raise InputError(
            f"--framework-python {python}: is not a program; name an interpreter (docs/clients.md)"
        )


def _check_executor(mode: ModeName, executor: Executor, scheduler: str | None) -> None:
    """Raise `InputError` if executor, scheduler and mode contradict each other."""
    Workers(executor=executor, scheduler=scheduler).refuse_contradiction()
    if executor is not Executor.PROCESSES and mode is not ModeName.VIRTUAL:
        raise InputError(f"--executor {executor}: for --mode virtual only; leave it out")


def _check_real_time(mode: ModeName, capacity_factor: float | None, *, needs_root: bool) -> None:
    if capacity_factor is not None:
        raise InputError("--capacity-factor: for --mode virtual only; leave it out")
    if needs_root and (reason := obstacle()):
        raise InputError(f"--mode {mode}: {reason}; or use --mode virtual")


def figures(
    *,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each figure.")] = False,
) -> None:
    """List the figures that can be replayed, their papers, and how long they take at the paper's scale.

    Example: loko figures --json
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    known = [(figure, figure_type_named(figure.kind).estimate_s(figure)) for figure in experiments().values()]
    if as_json:
        print_json(
            [
                {
                    "name": figure.name,
                    "title": figure.title,
                    "paper": figure.paper,
                    "modes": figure.modes,
                    "estimate_s": {mode: round(value, 1) for mode, value in times.items()},
                }
                for figure, times in known
            ]
        )
        return
    modes = [mode.value for mode in ModeName]
    if as_csv:
        columns = ["name", "title", "paper", *(f"estimate_{mode}_s" for mode in modes)]
        rows = (
            {"name": figure.name, "title": figure.title, "paper": figure.paper}
            | {f"estimate_{mode}_s": round(value, 1) for mode, value in times.items()}
            for figure, times in known
        )
        print_csv(columns, rows)
        return
    table = Table("figure", "title", *modes, box=None)
    for figure, times in known:
        cells = (_duration(times[mode]) if mode in times else "-" for mode in modes)
        table.add_row(figure.name, figure.title, *cells)
    Console().print(table)


def report(directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")]) -> None:
    """Write DIR/report.html again from the results in DIR.

    Example: loko report results/virtual
    """
    from loko_testbed.reproduce.report import write_report  # noqa: PLC0415 - imports the drawing code, which is slow

    tell(f"written: {write_report(directory)}")


def _print_results(results: Sequence[FigureResult], directory: Path, as_json: bool) -> None:
    violations = sum(result.violations for result in results)
    counted = sentences(results)
    ladder = evidence_ladder(counted)
    if as_json:
        figures = [
            {
                "figure": result.figure,
                "paper": result.paper,
                "violations": result.violations,
                "guarantees": [guarantee.model_dump() for guarantee in result.guarantees],
                "claims": [claim.model_dump() for claim in result.claims],
            }
            for result in results
        ]
        print_json(
            {
                "out": str(directory),
                "violations": violations,
                "counts": {kind: asdict(count) for kind, count in counts(counted).items()},
                "ladder": ladder_values(ladder),
                "figures": figures,
            }
        )
        return
    for result in results:
        _print_result(result)
    _print_ladder(ladder)
    for kind, count in counts(counted).items():
        tell(f"{KINDS[kind]}: {count}")
    if any(result.breaks_ours for result in results):
        tell("a guarantee that Loko's admission gives does not hold here")
    tell(f"report: {directory / 'report.html'}")


def _print_ladder(ladder: EvidenceLadder) -> None:
    """Print how many sentences hold, of those tested, by paper, kind and level of evidence."""
    table = Table("paper", "hold", *LEVELS, box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for row in ladder_rows(ladder, KINDS):
        table.add_row(*row)
    Console().print(table)


def _print_times(made: Sequence[FigureRun], seconds: float) -> None:
    """Print how long each figure took that was replayed now, the longest first."""
    if not made:
        return
    tell("seconds by figure:")
    for run in sorted(made, key=lambda run: -run.seconds - run.seeds_seconds):
        seeds = f", and {run.seeds_seconds:.1f} at further seeds" if run.seeds_seconds else ""
        tell(f"  {run.seconds:7.1f}  {short_name(run.figure)}{seeds}")
    others = seconds - sum(run.seconds + run.seeds_seconds for run in made)
    tell(f"  {max(0.0, others):7.1f}  pictures, report and all else")
    tell(f"  {seconds:7.1f}  in all")


def _print_result(result: FigureResult) -> None:
    host = result.provenance.host
    told = "; ".join(f"{KINDS[kind]}: {count}" for kind, count in counts(sentences([result])).items())
    tell(f"{result.name}: {told}")
    for guarantee in result.guarantees:
        _print_guarantee(guarantee)
    if result.switched_by_open_vswitch and result.counted:
        tell("  no guarantee tested: Open vSwitch forwards in place of the boards")
    if result.coarse_errors:
        tell(
            f"  {result.coarse_errors} packets within admission lost or late: the coarse emulator's error,"
            " which says nothing of the board's guarantee (docs/stand-in.md)"
        )
    for claim in result.claims:
        if claim.holds is not True:
            why = f"; {claim.because}" if claim.holds is None and claim.because else ""
            compared = f"{result.reference}: {claim.paper}; here: {claim.here}{why}"
            tell(f"  {claim.judgement}: {claim.claim} ({compared})")
    for board, said in result.provenance.real_boards.items():
        tell(f"  {board} is a real board: {', '.join(map(' '.join, said.items()))}")
    if host.stalls:
        tell(f"  stalls of the host: {host.stalls}, the worst {host.worst_stall_us:.0f} us")


def _print_guarantee(guarantee: GuaranteeResult) -> None:
    if guarantee.verdict == "not promised":
        return
    told = f"guarantee {guarantee.verdict}"
    if guarantee.verdict == "broken":
        told = f"{'GUARANTEE VIOLATED' if guarantee.ours else told} by {guarantee.broken_by} packets"
    elif guarantee.verdict == "not tested":
        told = f"{told}, nothing was sent: lengthen the runs with --seconds"
    tell(f"  {guarantee.system}: {told}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
