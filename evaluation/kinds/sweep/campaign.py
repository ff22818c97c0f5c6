"""Carries out the points of the chosen figures and keeps what each one gave, so that nothing runs twice."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from evaluation.analysis import Box, host_of
from evaluation.files import replacing
from evaluation.kinds.sweep.document import Sweep
from evaluation.kinds.sweep.setting import Setting, traffic
from evaluation.options import Options
from evaluation.records import RecordWriter, summary
from evaluation.result import Counters, HostResult, Point, merge_counters, runs_of
from evaluation.runner import RunError, Runner
from evaluation.senders import Senders
from evaluation.traffic import FlowTraffic
from loko.document import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a sweep is run: its setting with everything that the command line may change."""

    setting: Setting
    """With the real boards, if there are some."""
    options: Options
    runs: int
    seconds: float
    values: tuple[float, ...]
    senders: Senders
    commit: str

    @property
    def switched_by(self) -> str:
        """What forwards the frames in real time; empty in virtual time."""
        return self.options.switched_by(self.setting.lab)

    @property
    def sweep(self) -> Sweep:
        """The experiment."""
        return self.setting.sweep

    def traffic(self, x: float) -> tuple[FlowTraffic, ...]:
        """The senders at x."""
        return traffic(self.setting, x, self.senders)

    def fingerprint(self, x: float) -> dict[str, Any]:
        """All that a point's result depends on. Equal fingerprints mean equal results in virtual time."""
        return {
            "figure": self.sweep.name,
            "x": x,
            "guaranteed": x in self.sweep.guaranteed,
            "mode": self.options.mode,
            "backend": self.switched_by,
            "builder": self.options.builder,
            "framework": self.options.driven_by,
            "real_boards": self.options.real_boards(),
            "seed": self.options.seed,
            "runs": self.runs,
            "seconds": self.seconds,
            "profile": self.setting.allocation.service.profile.name,
            "capacity_factor": self.options.capacity_factor,
            "guarantee_ns": self.setting.guarantee_ns,
            "commit": self.commit,
            "traffic": [asdict(flow) for flow in self.traffic(x)],
            "echoes_per_s": self.sweep.echoes_per_s(x),
        }

    def run_seed(self, x: float, run: int) -> int:
        """The seed of one run: every run of every point of every figure has its own."""
        text = f"{self.options.seed} {self.sweep.name} {x!r} {run}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointResult:
    """What one point gave: a box for each observed flow by its number, and the counters of the boards."""

    points: dict[int, Point]
    boards: dict[str, dict[str, int]]
    host: HostResult
    real_boards: dict[str, dict[str, str]] = field(default_factory=dict)


_POINT_RESULT = TypeAdapter(PointResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One point to be run, and the file that keeps it."""

    plan: Plan
    x: float
    path: Path

    def kept(self) -> PointResult | None:
        """What an earlier run with the same fingerprint kept. Raises `InputError` if the file is damaged."""
        if not self.path.exists():
            return None
        return kept_result(summary(self.path), self.plan.fingerprint(self.x), self.path)


def point_result_values(fingerprint: Mapping[str, Any], result: PointResult) -> dict[str, Any]:
    """A point's result with its fingerprint as plain values, to be kept with the records."""
    return {"fingerprint": dict(fingerprint), "result": _POINT_RESULT.dump_python(result, mode="json")}


def kept_result(found: Any, fingerprint: Mapping[str, Any], path: Path) -> PointResult | None:
    """The result among kept values if they have this fingerprint. Raises `InputError` if they are damaged."""
    if not isinstance(found, dict) or found.get("fingerprint") != json.loads(json.dumps(fingerprint)):
        return None
    try:
        return _POINT_RESULT.validate_python(found.get("result"))
    except ValidationError:
        raise InputError(f"{path}: damaged records; delete the file and run again") from None


def carry_out(
    jobs: Sequence[Job],
    runner_of: Callable[[Plan], Runner],
    *,
    parallel: int,
    on_run: Callable[[Job], None],
) -> Iterator[tuple[Job, PointResult]]:
    """Run the jobs on so many threads; yields each as it is done. What was begun is dropped on an error.

    The simulator and the writing of records leave the interpreter's lock, so threads are enough.
    """
    stop = threading.Event()

    def work(job: Job) -> PointResult:
        return run_point(job, runner_of(job.plan), on_run=on_run, stop=stop)

    if parallel == 1:
        for job in jobs:
            yield job, work(job)
        return
    pool = ThreadPoolExecutor(max_workers=parallel)
    try:
        futures: dict[Future[PointResult], Job] = {pool.submit(work, job): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


class StoppedError(Exception):
    """The campaign ended before this point was complete."""


def run_point(
    job: Job, runner: Runner, *, on_run: Callable[[Job], None], stop: threading.Event
) -> PointResult:
    """Run one point as often as planned, write its records and its result to its file."""
    plan = job.plan
    senders = plan.traffic(job.x)
    boxes = {
        flow.flow: Box(flow=flow.flow, guarantee_ns=plan.setting.guarantee_ns)
        for flow in senders
        if flow.observed
    }
    boards: list[Counters] = []
    hosts: list[HostResult] = []
    real_boards: dict[str, dict[str, str]] = {}
    with replacing(job.path) as part, RecordWriter(part) as writer:
        for run in range(plan.runs):
            if stop.is_set():
                raise StoppedError
            records = runner.run(
                senders,
                seconds=plan.seconds,
                seed=plan.run_seed(job.x, run),
                echoes_per_s=plan.sweep.echoes_per_s(job.x),
            )
            writer.add(records, run=run, point=job.x)
            for box in boxes.values():
                box.add(records)
            boards.append(records.boards)
            hosts.append(host_of(records.host))
            real_boards |= records.real_boards
            on_run(job)
        guaranteed = job.x in plan.sweep.guaranteed
        points = {flow: box.point(job.x, guaranteed=guaranteed) for flow, box in boxes.items()}
        _refuse_silence(job, points)
        result = PointResult(
            points=points,
            boards=merge_counters(boards),
            host=HostResult.worst(hosts),
            real_boards=real_boards,
        )
        writer.describe(point_result_values(plan.fingerprint(job.x), result))
    return result


def _refuse_silence(job: Job, points: Mapping[int, Point]) -> None:
    """A flow that sends nothing would keep every guarantee. Raises `RunError`."""
    for flow, point in points.items():
        if point.packets == 0:
            label = job.plan.sweep.flows[flow].label
            raise RunError(
                f"{job.plan.sweep.name} at {job.x:g}: {label} sent nothing in"
                f" {runs_of(job.plan.runs, job.plan.seconds)}; lengthen them with --seconds"
            )
