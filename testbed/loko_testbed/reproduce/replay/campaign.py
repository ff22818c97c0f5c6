"""Carry out the runs of points and keep the records of each, so that none is carried out twice."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from types import TracebackType
from typing import Self

from loko_testbed.reproduce.analysis import DelayStats, host_of
from loko_testbed.reproduce.folder import campaign_of
from loko_testbed.reproduce.replay.point import Point
from loko_testbed.reproduce.result import Counters, HostResult, merge_counters
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.records import packed, unpacked
from loko_testbed.simulation.runner import HostReport, Runner, RunRecords, refuse_others
from loko_testbed.simulation.virtual import VirtualRunner
from loko_testbed.tasks.progress import Progress
from loko_testbed.tasks.store import StoredTasks, digest_of, forget


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRun:
    """One run of a point. Its result depends on nothing else."""

    point: Point
    number: int
    capacity_factor: float | None
    fingerprint: Mapping[str, str | int]
    """Token of all that its result depends on: a digest of the point's inputs, and the seed."""

    def by(self, runner: Runner) -> KeptRun:
        """Carry out the run with this runner. Raises `RunError`."""
        records = run_once(self.point, self.number, runner)
        return KeptRun(
            packets=packed(records),
            host=records.host,
            boards=records.boards,
            real_boards=records.real_boards,
            flows=records.flows,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """The records of a run in the form in which they are kept."""

    packets: bytes
    """The packets' file (`loko_testbed.simulation.records.packed`)."""
    host: HostReport
    boards: Mapping[str, Mapping[str, int]]
    real_boards: dict[str, dict[str, str]]
    flows: Mapping[int, Mapping[str, int]]

    def records(self) -> RunRecords:
        """Return the records."""
        return replace(
            unpacked(self.packets),
            host=self.host,
            boards=self.boards,
            real_boards=self.real_boards,
            flows=self.flows,
        )


def replay_in_order(
    points: Sequence[Point], options: Options, progress: Progress
) -> Generator[tuple[int, int, RunRecords]]:
    """Carry out all runs that are not kept from an earlier replay.

    Yield (index of the point, number of the run, its records) in this order, each run as soon as those before
    it have been, while later ones are still being carried out. Raises `InputError` or `RunError`; runs that
    are complete by then are kept.
    """
    by_point = [_runs(point, options) for point in points]
    with _stored(options, lambda run: progress.advance(run.point.label)) as stored:
        missing = [[run for run in runs if not stored.is_kept(run)] for runs in by_point]
        progress.begin(sum(map(len, missing)), sum(not runs for runs in missing))
        for run in chain.from_iterable(missing if options.real_time else ()):
            _refuse_others(run.point, options)  # early, before any lab is built
        runs = [(place, run) for place, each in enumerate(by_point) for run in each]
        with closing(stored.in_order(run for _, run in runs)) as replayed:
            for (place, run), kept in zip(runs, replayed, strict=True):
                yield place, run.number, kept.records()


def purge_runs(figure: str, options: Options) -> None:
    """Delete the kept runs of a figure, whose records must be complete."""
    forget(options.out, campaign_of(figure))


class PointAccumulator:
    """Accumulates the runs of a point."""

    def __init__(self, guarantees_ns: Mapping[int, float]) -> None:
        """Begin empty. `guarantees_ns` has the guarantees of the flows whose packets are counted."""
        self.boxes = {flow: DelayStats(flow=flow, guarantee_ns=each) for flow, each in guarantees_ns.items()}
        self.real_boards: dict[str, dict[str, str]] = {}
        """Self-description of each real board."""
        self.accepted: int | None = 0
        """Packets that found room before the shapers of the counted flows, whether they left within their run
        or still waited at its end. None in real time, where nobody counts those that wait."""
        self._boards: list[Counters] = []
        self._hosts: list[HostResult] = []

    def add(self, records: RunRecords) -> None:
        """Add one run."""
        for box in self.boxes.values():
            box.add(records)
        counters = [records.flows.get(flow, {}) for flow in self.boxes]
        if self.accepted is None or not all(counters):
            self.accepted = None
        else:
            self.accepted += sum(each["sent"] + each["unsent"] for each in counters)
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


def _runs(point: Point, options: Options) -> list[PointRun]:
    fingerprint = digest_of(point.fingerprint(options))  # once, not for each run
    carried = point if options.real_time else point.with_backend(options.backend)
    return [
        PointRun(
            point=carried,
            number=number,
            capacity_factor=options.capacity_factor,
            fingerprint={"point": fingerprint, "seed": seed},
        )
        for number, seed in enumerate(point.seeds)
    ]


@contextmanager
def _stored(
    options: Options, on_kept: Callable[[PointRun], None]
) -> Iterator[StoredTasks[PointRun, KeptRun]]:
    """Yield the store of all figures' runs."""
    with ExitStack() as stack:
        yield StoredTasks(
            folder=options.out,
            campaign=lambda run: campaign_of(run.point.figure),
            function=stack.enter_context(_LiveLabs(options)) if options.real_time else in_virtual_time,
            inputs=lambda run: run.fingerprint,
            workers=options.workers,
            on_kept=on_kept,
        )


def in_virtual_time(run: PointRun) -> KeptRun:
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


def _refuse_others(point: Point, options: Options) -> None:
    from loko_testbed.live.runner import LiveRunner  # noqa: PLC0415 - Linux only, needs root

    refuse_others(point.senders, LiveRunner.carries, options.mode)


class _LiveLabs:
    """Carries out runs in real time. A lab serves all successive runs that need the same one."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lab = ExitStack()
        self._built: object = None
        self._runner: Runner

    def __call__(self, run: PointRun) -> KeptRun:
        from loko_testbed.live.runner import LiveRunner  # noqa: PLC0415 - Linux only, needs root

        point = run.point
        needed = (point.lab.path, tuple(point.routed), point.scheme, point.entries)
        if self._built != needed:
            self._lab.close()
            self._runner = self._lab.enter_context(
                LiveRunner.of(
                    point.lab, point.routed, self._options, allocation=point.scheme, entries=point.entries
                )
            )
            self._built = needed
        return run.by(self._runner)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the lab."""
        self._lab.__exit__(kind, error, trace)
