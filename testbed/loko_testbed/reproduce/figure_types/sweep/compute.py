"""Replay sweeps: plan, carry out missing runs, and combine records and results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from loko.document import InputError
from loko.switch_model.device import deterministic
from loko.topology.lab import cabled
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure import notes_of
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.sweep.document import Sweep
from loko_testbed.reproduce.figure_types.sweep.setting import SweepSetting, prepare, traffic
from loko_testbed.reproduce.folder import figure_file
from loko_testbed.reproduce.guarantees import guarantee
from loko_testbed.reproduce.replay.campaign import PointAccumulator, purge_runs, replay_in_order
from loko_testbed.reproduce.replay.duration import live_s, virtual_s
from loko_testbed.reproduce.replay.point import Point, seed_of
from loko_testbed.reproduce.result import (
    AxisLabel,
    FigureResult,
    GuaranteeResult,
    HostResult,
    NoteResult,
    PointResult,
    Provenance,
    Series,
    merge_counters,
    runs_of,
)
from loko_testbed.simulation.options import Options, Progress
from loko_testbed.simulation.records import RecordWriter, summary
from loko_testbed.simulation.runner import RunError, RunRecords
from loko_testbed.simulation.senders import SenderSettings
from loko_testbed.tasks.files import atomic_replacement
from loko_testbed.tasks.provenance import commit, machine, versions


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSweep:
    """A sweep's setting, with everything that the command line may change."""

    setting: SweepSetting
    """The setting, with real boards in its lab if there are any."""
    options: Options
    runs: int
    seconds: float
    values: tuple[float, ...]
    senders: SenderSettings

    @property
    def sweep(self) -> Sweep:
        """The experiment."""
        return self.setting.sweep

    @property
    def records(self) -> Path:
        """The file of its records."""
        return figure_file(self.options.out, self.sweep.name, ".parquet")

    def point(self, x: float) -> Point:
        """Return the point at x. Every run of every point of every figure has its own seed."""
        sweep, seed = self.sweep, self.options.seed
        senders = traffic(self.setting, x, self.senders)
        return Point(
            figure=sweep.name,
            x=x,
            label=f"{sweep.name} at {x:g}",
            lab=self.setting.lab,
            routed=self.setting.admitted(),
            scheme=sweep.allocation,
            entries=sweep.entries,
            senders=senders,
            seconds=self.seconds,
            seeds=[seed_of(seed, sweep.name, repr(x), run) for run in range(self.runs)],
            guarantees_ns={sender.flow: self.setting.guarantee_ns for sender in senders if sender.observed},
            echoes_per_s=sweep.echoes_per_s(x),
        )

    def fingerprint(self, x: float) -> dict[str, Any]:
        """Return everything that a point's result depends on.

        Equal fingerprints mean equal results in virtual time.
        """
        return {
            **self.point(x).fingerprint(self.options),
            "seed": self.options.seed,
            "runs": self.runs,
            "guaranteed": x in self.sweep.guaranteed,
            "guarantee_ns": self.setting.guarantee_ns,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AccumulatedPoint:
    """The result of one point: a box for each observed flow by its number, and counters of the boards."""

    points: dict[int, PointResult]
    boards: dict[str, dict[str, int]]
    host: HostResult
    real_boards: dict[str, dict[str, str]] = field(default_factory=dict)


_POINT_RESULT = TypeAdapter(AccumulatedPoint)


class ReplayedRun(NamedTuple):
    """A run with its records."""

    point: Point
    number: int
    records: RunRecords


def compute(sweeps: Sequence[Sweep], options: Options, progress: Progress) -> list[FigureResult]:
    """Replay the sweeps, with the points of all of them in parallel, and write their records.

    Runs that exist already with the same parameters are not repeated. Raises `InputError` or `RunError`.
    """
    plans = {sweep.name: plan_of(sweep, options) for sweep in sweeps}
    done = {name: _kept(plan) for name, plan in plans.items()}
    points = [plan.point(x) for name, plan in plans.items() if not done[name] for x in plan.values]
    with closing(replay_in_order(points, options, progress)) as replayed:
        runs = (ReplayedRun(points[place], number, records) for place, number, records in replayed)
        for name, of_figure in groupby(runs, key=lambda run: run.point.figure):
            done[name] = _recorded(plans[name], of_figure)
    return [_result(plans[sweep.name], done[sweep.name]) for sweep in sweeps]


def plan_of(sweep: Sweep, options: Options) -> ChosenSweep:
    """Combine a sweep with the options. Raises `InputError`."""
    values = sweep.x.values
    if options.quick and sweep.quick.values is not None:
        values = sweep.quick.values
    if options.points == "admitted":
        values = [x for x in values if x in sweep.guaranteed]
    runs, seconds = sweep.scale(options)
    setting = prepare(sweep)
    return ChosenSweep(
        setting=replace(setting, lab=cabled(setting.lab, options.cabling)),
        options=options,
        runs=runs,
        seconds=seconds,
        values=tuple(values),
        senders=options.senders.of(sweep.senders),
    )


def _kept(plan: ChosenSweep) -> dict[float, AccumulatedPoint]:
    """Return the results kept in a figure's records if they match the plan; else empty."""
    if not plan.records.exists():
        return {}
    entries = summary(plan.records).get("points")
    if not isinstance(entries, list) or len(entries) != len(plan.values):
        return {}
    points: dict[float, AccumulatedPoint] = {}
    for x, entry in zip(plan.values, entries, strict=True):
        if not isinstance(entry, dict):
            return {}
        if entry.get("fingerprint") != json.loads(json.dumps(plan.fingerprint(x))):
            return {}
        try:
            points[x] = _POINT_RESULT.validate_python(entry.get("result"))
        except ValidationError:
            raise InputError(f"{plan.records}: damaged records; delete the file and run again") from None
    return points


def _recorded(plan: ChosenSweep, runs: Iterable[ReplayedRun]) -> dict[float, AccumulatedPoint]:
    """Count the packets of a figure's runs and write them to its file; return its points.

    The runs come in order, and are no longer kept afterwards.
    """
    accumulated: dict[float, AccumulatedPoint] = {}
    with atomic_replacement(plan.records) as part, RecordWriter(part) as writer:
        for point, of_point in groupby(runs, key=attrgetter("point")):
            accumulator = PointAccumulator(point.guarantees_ns)
            for run in of_point:
                accumulator.add(run.records)
                writer.add(run.records, run=run.number, point=point.x)
            accumulated[point.x] = _judged(plan, point, accumulator)
        described = [
            {
                "fingerprint": plan.fingerprint(x),
                "result": _POINT_RESULT.dump_python(accumulated[x], mode="json"),
            }
            for x in plan.values
        ]
        writer.describe({"points": described})
    purge_runs(plan.sweep.name, plan.options)
    return accumulated


def _judged(plan: ChosenSweep, point: Point, accumulator: PointAccumulator) -> AccumulatedPoint:
    """Return the boxes of a point.

    Raises `RunError` if a flow sent nothing, because its guarantee would be kept trivially.
    """
    guaranteed = point.x in plan.sweep.guaranteed
    points = {flow: box.point(point.x, guaranteed=guaranteed) for flow, box in accumulator.boxes.items()}
    for flow, of_flow in points.items():
        if of_flow.packets == 0:
            raise RunError(
                f"{point.label}: {plan.sweep.flows[flow].label} sent nothing in"
                f" {runs_of(plan.runs, plan.seconds)}; lengthen them with --seconds"
            )
    return AccumulatedPoint(
        points=points, boards=accumulator.boards, host=accumulator.host, real_boards=accumulator.real_boards
    )


def _result(plan: ChosenSweep, points: Mapping[float, AccumulatedPoint]) -> FigureResult:
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
    profile = deterministic(setting.allocation.service.profile)
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
            commit=commit(),
            profile=profile.name,
            backend=options.switched_by(setting.lab),
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


def _findings(setting: SweepSetting, series: Sequence[Series]) -> dict[str, float]:
    """Return findings beside the points. A box has all observed flows at one x, as in the paper."""
    findings = {"guarantee_ms": setting.guarantee_ns / 1e6, "least_delay_ms": setting.floor_ns / 1e6}
    boxes = [
        sum(point.packets for point in box) for box in zip(*(line.points for line in series), strict=True)
    ]
    if len(boxes) == len(setting.sweep.planned):
        findings["smallest_box_packets"], findings["largest_box_packets"] = (
            float(min(boxes)),
            float(max(boxes)),
        )
    return findings


def _guarantees(sweep: Sweep, series: Sequence[Series]) -> list[GuaranteeResult]:
    """Judge Loko's guarantee where it holds; list the other points separately as not promised.

    The other points are not all beyond admission: the paper loses packets of full-rate at m_r = 1 (I21).
    """
    within, beyond = (
        {line.label: [point for point in line.points if point.guaranteed is promised] for line in series}
        for promised in (True, False)
    )
    guarantees = [guarantee(f"Loko, {sweep.allocation}", within, ours=True)]
    if any(beyond.values()):
        system = f"Loko, {sweep.allocation}, outside its guarantee"
        guarantees.append(guarantee(system, beyond, ours=True, promised=False))
    return guarantees


def _shorter(plan: ChosenSweep) -> list[NoteResult]:
    """Return a note if the replay is shorter than the paper's."""
    sweep = plan.sweep
    if plan.runs * plan.seconds >= sweep.runs * sweep.seconds:
        return []
    text = (
        f"This replay has {runs_of(plan.runs, plan.seconds)} a box, the paper {sweep.runs} of"
        f" {sweep.seconds:g} s: it may miss what is rare."
    )
    return [NoteResult(where=fact(sweep.paper, "ev.runs").where, text=text)]


def packets(sweep: Sweep) -> int:
    """Estimate the packets of all flows at the paper's scale, as limited by the shapers."""
    setting = prepare(sweep)
    bits_per_s = sum(
        flow.bucket.rate_bps * min(1.0, sweep.senders.offered_load)
        for x in sweep.x.values
        for flow in traffic(setting, x)
    )
    return int(bits_per_s * sweep.runs * sweep.seconds / (8 * sweep.frame_bytes))


def estimate_s(sweep: Sweep) -> dict[str, float]:
    """Estimate the time in seconds at the paper's scale, by mode."""
    live = live_s(len(sweep.x.values) * sweep.runs, sweep.seconds)
    return {"virtual": virtual_s(packets(sweep)), "live": live, "hardware": live}


FIGURE_TYPE: Final = FigureType(
    documents=(Sweep,),
    compute=compute,
    estimate_s=estimate_s,
)
