"""The replay of sweeps: plan, run what is not there yet, put records and results together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from evaluation.facts import fact
from evaluation.figure import notes_of
from evaluation.files import replacing
from evaluation.folder import POINTS, figure_file, point_file, point_files
from evaluation.guarantees import guarantee
from evaluation.kinds.sweep.campaign import (
    Job,
    Plan,
    PointResult,
    carry_out,
    kept_result,
    point_result_values,
)
from evaluation.kinds.sweep.document import Sweep
from evaluation.kinds.sweep.runners import Runners
from evaluation.kinds.sweep.setting import Setting, prepare
from evaluation.options import Options, Progress
from evaluation.provenance import commit, machine, versions
from evaluation.records import RecordWriter, summary
from evaluation.result import (
    AxisLabel,
    FigureResult,
    GuaranteeResult,
    HostResult,
    NoteResult,
    Provenance,
    Series,
    merge_counters,
    runs_of,
)


def produce(sweeps: Sequence[Sweep], options: Options, progress: Progress) -> list[FigureResult]:
    """Replay the sweeps, points of all of them at a time, and write their records.

    Points that are there already with the same parameters are not run again. Raises `InputError` or
    `RunError` in one line.
    """
    plans = {one.name: plan_of(one, options) for one in sweeps}
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
    return [_result(plans[one.name], done[one.name]) for one in sweeps]


def plan_of(sweep: Sweep, options: Options) -> Plan:
    """How a sweep is run under these options. Raises `InputError`."""
    values = sweep.x.values
    if options.quick and sweep.quick.values is not None:
        values = sweep.quick.values
    if options.points == "admitted":
        values = [x for x in values if x in sweep.guaranteed]
    runs, seconds = sweep.scale(options)
    setting = prepare(sweep)
    return Plan(
        setting=replace(setting, lab=setting.lab.cabled(options.cabling)),
        options=options,
        runs=runs,
        seconds=seconds,
        values=tuple(values),
        senders=options.senders.of(sweep.senders),
        commit=commit(),
    )


def _point_path(out: Path, plan: Plan, x: float) -> Path:
    return point_file(out, plan.sweep.name, x)


def _records_path(out: Path, plan: Plan) -> Path:
    return figure_file(out, plan.sweep.name, ".parquet")


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
    kept = options.out / POINTS
    kept.mkdir(exist_ok=True)
    for part in kept.glob(".*.part"):  # of a replay that was killed
        part.unlink()

    def on_run(job: Job) -> None:
        progress.advance(f"{job.plan.sweep.name} at {job.x:g}")

    with Runners() as runners:
        threads = 1 if options.real_time else options.jobs
        for job, result in carry_out(
            jobs,
            runners.runner,
            parallel=threads,
            on_run=on_run,
        ):
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
    for path in point_files(out, plan.sweep.name):
        path.unlink()


def _result(plan: Plan, points: Mapping[float, PointResult]) -> FigureResult:
    sweep, setting, options = plan.sweep, plan.setting, plan.options
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
    factor = options.capacity_factor
    if factor is None:
        factor = profile.cpu.capacity_factor.value
    return FigureResult(
        figure=sweep.figure,
        paper=sweep.paper,
        title=sweep.title,
        mode=options.mode,
        seed=options.seed,
        x=AxisLabel(name=sweep.x.name, unit=sweep.x.unit),
        series=series,
        guarantee_ms=round(setting.guarantee_ns / 1e6, 6),
        floor_ms=round(setting.floor_ns / 1e6, 6),
        findings=_findings(setting, series),
        guarantees=_guarantees(sweep, series),
        claims=[],
        notes=notes_of(sweep) + _shorter(plan),
        boards=merge_counters([points[x].boards for x in plan.values]),
        provenance=Provenance(
            commit=plan.commit,
            profile=profile.name,
            backend=plan.switched_by,
            builder=options.builder if options.real_time else "",
            framework=options.driven_by,
            host=HostResult.worst([points[x].host for x in plan.values]),
            runs=plan.runs,
            seconds=plan.seconds,
            versions=versions(),
            assumptions={"capacity_factor": factor, **plan.senders.described()},
            machine=machine() if options.real_time else "",
            real_boards={
                name: board for point in points.values() for name, board in point.real_boards.items()
            },
        ),
    )


def _findings(setting: Setting, series: Sequence[Series]) -> dict[str, float]:
    """Named numbers beside the points. A box is what all observed flows sent at one x, as in the paper."""
    found = {"guarantee_ms": setting.guarantee_ns / 1e6, "least_delay_ms": setting.floor_ns / 1e6}
    boxes = [sum(point.packets for point in box) for box in zip(*(one.points for one in series), strict=True)]
    if len(boxes) == len(setting.sweep.planned):
        found["smallest_box_packets"], found["largest_box_packets"] = float(min(boxes)), float(max(boxes))
    return found


def _guarantees(sweep: Sweep, series: Sequence[Series]) -> list[GuaranteeResult]:
    """Loko's at the points where it holds, and what was sent at others, of which nothing is promised.

    Those are not all beyond admission: the paper loses packets of full-rate at m_r = 1 (I21).
    """
    within, beyond = (
        {one.label: [point for point in one.points if point.guaranteed is promised] for one in series}
        for promised in (True, False)
    )
    found = [guarantee(f"Loko, {sweep.allocation}", within, ours=True)]
    if any(beyond.values()):
        system = f"Loko, {sweep.allocation}, outside its guarantee"
        found.append(guarantee(system, beyond, ours=True, promised=False))
    return found


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
