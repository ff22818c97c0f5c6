"""The replay of figures: plan, run what is not there yet, judge, draw, write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from evaluation import draw
from evaluation.campaign import Job, Plan, PointResult, carry_out, kept_result, point_result_values
from evaluation.claims import judge
from evaluation.experiment import Experiment, Sweep, Table
from evaluation.facts import fact
from evaluation.files import replacing, write_atomically
from evaluation.modes import Runners
from evaluation.provenance import commit, machine, versions
from evaluation.records import RecordWriter, summary
from evaluation.report import write_report
from evaluation.result import (
    AxisLabel,
    FigureResult,
    HostResult,
    NoteResult,
    Provenance,
    Series,
    TableResult,
    merge_counters,
    read_results,
    runs_of,
    write_result,
)
from evaluation.traffic import allocation_of, prepare
from loko.document import InputError
from loko.lab import Backend, load_lab

Points = Literal["all", "admitted"]
_KB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line may change. None: as the experiment says, the paper's scale."""

    mode: str
    seed: int
    out: Path
    runs: int | None = None
    seconds: float | None = None
    points: Points = "all"
    quick: bool = False
    jobs: int = 1
    offered_load: float | None = None
    capacity_factor: float | None = None
    backend: Backend | None = None


class Progress(Protocol):
    """Is told how far the replay is."""

    def begin(self, runs: int, kept: int) -> None:
        """So many runs are to be done; so many points are there from an earlier replay."""

    def ran(self, job: Job) -> None:
        """One more run is done. Called from any thread."""

    def writing(self, figure: str) -> None:
        """A figure's points are complete."""


def evaluate(chosen: Sequence[Experiment], options: Options, progress: Progress) -> list[FigureResult]:
    """Replay the figures and write their results, records, pictures and the report to ``options.out``.

    Points that are there already with the same parameters are not run again. Raises `InputError` or
    `RunError` in one line.
    """
    for experiment in chosen:
        if options.mode not in experiment.modes:
            raise InputError(f"{experiment.name}: cannot be replayed in mode {options.mode}")
    earlier = read_results(options.out)
    plans = {one.name: plan_of(one, options) for one in chosen if isinstance(one, Sweep)}
    done: dict[str, dict[float, PointResult]] = {name: {} for name in plans}
    jobs: list[Job] = []
    for name, plan in plans.items():
        kept = _kept(plan, options.out)
        for x in plan.values:
            job = Job(plan=plan, x=x, path=_point_path(options.out, plan, x))
            result = kept.get(x) or job.kept()
            if result is None:
                jobs.append(job)
            else:
                done[name][x] = result
    _run(jobs, plans, done, options, progress)
    results = [
        _sweep_result(plans[one.name], done[one.name])
        if isinstance(one, Sweep)
        else _table_result(one, options)
        for one in chosen
    ]
    return _publish(chosen, results, earlier, options.out, progress)


def plan_of(sweep: Sweep, options: Options) -> Plan:
    """How a sweep is run under these options. Raises `InputError`."""
    values = sweep.x.values
    if options.quick and sweep.quick.values is not None:
        values = sweep.quick.values
    if options.points == "admitted":
        values = [x for x in values if x in sweep.guaranteed]
    default = sweep.quick if options.quick else sweep
    return Plan(
        setting=prepare(sweep),
        mode=options.mode,
        seed=options.seed,
        runs=options.runs if options.runs is not None else default.runs,
        seconds=options.seconds if options.seconds is not None else default.seconds,
        values=tuple(values),
        offered_load=options.offered_load if options.offered_load is not None else sweep.offered_load,
        capacity_factor=options.capacity_factor,
        backend=options.backend,
        commit=commit(),
    )


def _point_path(out: Path, plan: Plan, x: float) -> Path:
    return out / ".points" / f"{plan.sweep.figure}-{x:g}.parquet"


def _records_path(out: Path, plan: Plan) -> Path:
    return out / f"{plan.sweep.figure}.parquet"


def _kept(plan: Plan, out: Path) -> dict[float, PointResult]:
    """The points in a complete figure's records, if they are all that is planned now."""
    path = _records_path(out, plan)
    if not path.exists():
        return {}
    entries = summary(path).get("points")
    if not isinstance(entries, list) or len(entries) != len(plan.values):
        return {}
    found: dict[float, PointResult] = {}
    for x, entry in zip(plan.values, entries, strict=True):
        result = kept_result(entry, plan.fingerprint(x), path)
        if result is None:
            return {}
        found[x] = result
    return found


def _run(
    jobs: Sequence[Job],
    plans: Mapping[str, Plan],
    done: Mapping[str, dict[float, PointResult]],
    options: Options,
    progress: Progress,
) -> None:
    """Run the jobs; put each figure's records together as soon as its points are complete."""
    waiting = {job.plan.sweep.name for job in jobs}
    progress.begin(sum(job.plan.runs for job in jobs), sum(map(len, done.values())))
    for name, plan in plans.items():
        if name not in waiting and not _kept(plan, options.out):
            _gather(plan, done[name], options.out)
    if not jobs:
        return
    kept = options.out / ".points"
    kept.mkdir(exist_ok=True)
    for part in kept.glob(".*.part"):  # of a replay that was killed
        part.unlink()
    with Runners() as runners:
        threads = 1 if options.mode == "live" else options.jobs
        for job, result in carry_out(jobs, runners.runner, parallel=threads, on_run=progress.ran):
            name = job.plan.sweep.name
            done[name][job.x] = result
            if len(done[name]) == len(job.plan.values):
                progress.writing(name)
                _gather(job.plan, done[name], options.out)
    if not any(kept.iterdir()):
        kept.rmdir()


def _gather(plan: Plan, points: Mapping[float, PointResult], out: Path) -> None:
    """Put the records of all points into the figure's one file and drop the points' own files."""
    paths = [_point_path(out, plan, x) for x in plan.values]
    with replacing(_records_path(out, plan)) as part, RecordWriter(part) as writer:
        for path in paths:
            writer.copy(path)
        writer.describe(
            {"points": [point_result_values(plan.fingerprint(x), points[x]) for x in plan.values]}
        )
    for path in (out / ".points").glob(f"{plan.sweep.figure}-*.parquet"):
        path.unlink()


def _sweep_result(plan: Plan, points: Mapping[float, PointResult]) -> FigureResult:
    sweep, setting = plan.sweep, plan.setting
    labels = {flow.label: number for number, flow in enumerate(sweep.flows)}
    series = [
        Series(
            label=label,
            flow=labels[label],
            points=[points[x].points[labels[label]] for x in plan.values],
        )
        for label in sweep.observed
    ]
    profile = setting.allocation.service.profile
    factor = plan.capacity_factor if plan.capacity_factor is not None else profile.cpu.capacity_factor.value
    return FigureResult(
        figure=sweep.figure,
        paper=sweep.paper,
        title=sweep.title,
        mode=plan.mode,
        seed=plan.seed,
        x=AxisLabel(name=sweep.x.name, unit=sweep.x.unit),
        series=series,
        guarantee_ms=round(setting.guarantee_ns / 1e6, 6),
        floor_ms=round(setting.floor_ns / 1e6, 6),
        claims=[],
        notes=_notes(sweep) + _shorter(plan),
        boards=merge_counters([points[x].boards for x in plan.values]),
        provenance=Provenance(
            commit=plan.commit,
            profile=profile.name,
            backend=plan.switched_by,
            host=HostResult.worst([points[x].host for x in plan.values]),
            runs=plan.runs,
            seconds=plan.seconds,
            versions=versions(),
            assumptions={
                "capacity_factor": factor,
                "offered_load": plan.offered_load,
                "sender_queue_frames": sweep.sender_queue_frames,
            },
            machine=machine() if plan.mode == "live" else "",
        ),
    )


def _table_result(table: Table, options: Options) -> FigureResult:
    lab = load_lab(table.lab)
    rows: list[list[str | float]] = []
    for scheme in table.schemes:
        found = allocation_of(table, lab, scheme)
        curve = found.service.curve
        values = (
            curve.rate_bps / 1e6,
            curve.latency_ns / 1e6,
            found.max_rate_bps / 1e6,
            found.max_burst_bytes / _KB,
            found.delay_ns / 1e6,
        )
        rows.append([scheme, *(round(value, 6) for value in values)])
    return FigureResult(
        figure=table.figure,
        paper=table.paper,
        title=table.title,
        mode=options.mode,
        seed=options.seed,
        x=AxisLabel(name="allocation scheme", unit=""),
        series=[],
        table=TableResult(
            columns=["scheme", "R_mbps", "T_ms", "max_rate_mbps", "max_burst_kB", "max_delay_ms"], rows=rows
        ),
        guarantee_ms=None,
        floor_ms=None,
        claims=[],
        notes=_notes(table),
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


def _publish(
    chosen: Sequence[Experiment],
    results: Sequence[FigureResult],
    earlier: Sequence[FigureResult],
    out: Path,
    progress: Progress,
) -> list[FigureResult]:
    """Judge every figure beside the others of the folder, draw it, and write everything but the records."""
    together = {one.figure: one for one in (*earlier, *results)}
    losses = {name: _largest_loss(one) for name, one in together.items() if one.series}
    judged = []
    for experiment, result in zip(chosen, results, strict=True):
        progress.writing(experiment.name)
        claims = judge(experiment, series=result.series, table=result.table, largest_loss=losses)
        final = result.model_copy(update={"claims": claims})
        write_result(final, out)
        write_atomically(out / f"{final.figure}.svg", draw.svg(final))
        write_atomically(out / f"{final.figure}.png", draw.png(final))
        judged.append(final)
    write_report(out)
    return judged


def _largest_loss(result: FigureResult) -> float:
    """The largest loss over x, of all flows together."""
    shares = []
    for points in zip(*(series.points for series in result.series), strict=True):
        packets = sum(point.packets for point in points)
        shares.append(sum(point.lost for point in points) / packets if packets else 0.0)
    return max(shares, default=0.0)


def _shorter(plan: Plan) -> list[NoteResult]:
    """A note if the replay is shorter than the paper's."""
    sweep = plan.sweep
    if plan.runs * plan.seconds >= sweep.runs * sweep.seconds:
        return []
    text = (
        f"This replay has {runs_of(plan.runs, plan.seconds)} a box, the paper {sweep.runs} of"
        f" {sweep.seconds:g} s: it may miss what is rare."
    )
    return [NoteResult(where=fact(sweep.paper, "ev.runs").where, text=text)]


def _notes(experiment: Experiment) -> list[NoteResult]:
    return [
        NoteResult(where=fact(experiment.paper, note.fact).where, text=note.text) for note in experiment.notes
    ]
