"""Carry out the runs of points and keep the records of each, so that none is carried out twice."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from loko_testbed.reproduce.analysis import DelayStats, host_of
from loko_testbed.reproduce.folder import POINTS, run_file, run_files
from loko_testbed.reproduce.replay.point import Point
from loko_testbed.reproduce.result import Counters, HostResult, merge_counters
from loko_testbed.simulation.options import Options, Progress
from loko_testbed.simulation.records import kept_run, records_in, summary
from loko_testbed.simulation.runner import HostReport, Runner, RunRecords, Stall, refuse_others
from loko_testbed.simulation.virtual import VirtualRunner
from loko_testbed.tasks.files import write_atomically


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRun:
    """One run of a point. Its result depends on nothing else."""

    point: Point
    number: int
    capacity_factor: float | None
    fingerprint: Mapping[str, Any]

    def by(self, runner: Runner) -> bytes:
        """Carry out the run with this runner; return a file of its records. Raises `RunError`."""
        point = self.point
        records = run_once(point, self.number, runner)
        return kept_run(
            records,
            {
                "fingerprint": self.fingerprint,
                "boards": records.boards,
                "host": asdict(records.host),
                "real_boards": records.real_boards,
            },
        )


def replay_in_order(
    points: Sequence[Point], options: Options, progress: Progress
) -> Generator[tuple[int, int, RunRecords]]:
    """Carry out all runs that are not kept from an earlier replay.

    Yield (index of the point, number of the run, its records) in this order, each run as soon as those before
    it have been, while later ones are still being carried out. Raises `InputError` or `RunError`; runs that
    are complete by then are kept.
    """
    awaited = deque(
        (place, number) for place, point in enumerate(points) for number in range(len(point.seeds))
    )
    there: set[tuple[int, int]] = set()
    with closing(_kept(points, options, progress)) as kept:
        for run in kept:
            there.add(run)
            while awaited and awaited[0] in there:
                place, number = awaited.popleft()
                yield place, number, _records(points[place], number, options)


def _kept(points: Sequence[Point], options: Options, progress: Progress) -> Generator[tuple[int, int]]:
    """Carry out the runs that are missing; yield (index of the point, number of the run) as runs are kept.

    Those that are kept from an earlier replay come first, in order.
    """
    folder = options.out / POINTS
    for part in folder.glob(".*.part"):  # left by a replay that was killed
        part.unlink()
    missing = [_missing(point, options) for point in points]
    runs = [(place, run) for place, each in enumerate(missing) for run in each]
    progress.begin(len(runs), sum(not each for each in missing))
    todo = {(place, run.number) for place, run in runs}
    for place, point in enumerate(points):
        for number in range(len(point.seeds)):
            if (place, number) not in todo:
                yield place, number
    with closing(_finished_runs([run for _, run in runs], options)) as carried:
        for at, records in carried:
            place, run = runs[at]
            folder.mkdir(parents=True, exist_ok=True)  # `purge_runs` deletes it when it is empty
            write_atomically(run_file(options.out, run.point.figure, run.point.x, run.number), records)
            progress.advance(run.point.label)
            yield place, run.number


def _records(point: Point, number: int, options: Options) -> RunRecords:
    """Return the records of a run that is kept."""
    path = run_file(options.out, point.figure, point.x, number)
    told = summary(path)
    host = told["host"]
    return replace(
        records_in(path),
        host=HostReport(
            stalls=tuple(Stall(**stall) for stall in host["stalls"]), lateness_ns=host["lateness_ns"]
        ),
        boards=told["boards"],
        real_boards=told["real_boards"],
    )


def purge_runs(figure: str, options: Options) -> None:
    """Delete the kept runs of a figure, whose records must be complete."""
    for path in run_files(options.out, figure):
        path.unlink()
    if (options.out / POINTS).is_dir() and not any((options.out / POINTS).iterdir()):
        (options.out / POINTS).rmdir()


class PointAccumulator:
    """Accumulates the runs of a point."""

    def __init__(self, guarantees_ns: Mapping[int, float]) -> None:
        """Begin empty. `guarantees_ns` has the guarantees of the flows whose packets are counted."""
        self.boxes = {flow: DelayStats(flow=flow, guarantee_ns=each) for flow, each in guarantees_ns.items()}
        self.real_boards: dict[str, dict[str, str]] = {}
        """Self-description of each real board."""
        self._boards: list[Counters] = []
        self._hosts: list[HostResult] = []

    def add(self, records: RunRecords) -> None:
        """Add one run."""
        for box in self.boxes.values():
            box.add(records)
        self._boards.append(records.boards)
        self._hosts.append(host_of(records.host))
        self.real_boards |= records.real_boards

    @property
    def boards(self) -> dict[str, dict[str, int]]:
        """The combined counters of the switches."""
        return merge_counters(self._boards)

    @property
    def host(self) -> HostResult:
        """How well the machine kept time, combined over the runs."""
        return HostResult.worst(self._hosts)


def _missing(point: Point, options: Options) -> list[PointRun]:
    """Return the runs that are not kept with the same parameters. Raises `InputError` for damaged files."""
    missing = []
    same = json.loads(json.dumps(point.fingerprint(options)))
    for number, seed in enumerate(point.seeds):
        path = run_file(options.out, point.figure, point.x, number)
        fingerprint = {**same, "seed": seed}
        if not path.exists() or summary(path).get("fingerprint") != fingerprint:
            missing.append(
                PointRun(
                    point=point,
                    number=number,
                    capacity_factor=options.capacity_factor,
                    fingerprint=fingerprint,
                )
            )
    return missing


def _finished_runs(runs: Sequence[PointRun], options: Options) -> Generator[tuple[int, bytes]]:
    """Yield (index of the run, file of its records) as runs finish."""
    if options.real_time:
        yield from _in_real_time(runs, options)
        return
    here = [replace(run, point=run.point.with_backend(options.backend)) for run in runs]
    yield from options.workers.each_done(in_virtual_time, here)


def in_virtual_time(run: PointRun) -> bytes:
    """Carry out a run in the simulator. Raises `InputError` or `RunError`."""
    with virtual_runner(run.point, run.capacity_factor) as runner:
        return run.by(runner)


def virtual_runner(point: Point, capacity_factor: float | None) -> VirtualRunner:
    """Return a runner of a point's lab in virtual time. Raises `InputError`."""
    return VirtualRunner(
        point.lab,
        point.routed,
        entries=point.entries,
        capacity_factor=capacity_factor,
        openflow=point.openflow,
    )


def run_once(point: Point, number: int, runner: Runner) -> RunRecords:
    """Carry out one run of a point. Raises `RunError`."""
    return runner.run(
        point.senders, seconds=point.seconds, seed=point.seeds[number], echoes_per_s=point.echoes_per_s
    )


def _in_real_time(runs: Sequence[PointRun], options: Options) -> Generator[tuple[int, bytes]]:
    """Carry out runs one after the other: parallel live labs would compete for processors.

    A lab serves all successive runs that need the same one.
    """
    from loko_testbed.live.runner import LiveRunner  # noqa: PLC0415 - Linux only, needs root

    for run in runs:  # refuse early, before any lab is built
        refuse_others(run.point.senders, LiveRunner.carries, options.mode)
    built: object = None
    with ExitStack() as stack:
        for place, run in enumerate(runs):
            point = run.point
            needed = (point.lab.path, tuple(point.routed), point.scheme, point.entries)
            if built != needed:
                stack.close()
                runner = stack.enter_context(
                    LiveRunner.of(
                        point.lab, point.routed, options, allocation=point.scheme, entries=point.entries
                    )
                )
                built = needed
            yield place, run.by(runner)
