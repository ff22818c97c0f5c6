"""Replay figures at further seeds, for claims whose verdict depends on chance.

A figure at a seed is one task: its result is small, so it stays in the folder's store, and claims are judged
by all seeds again without a replay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from loko_testbed.reproduce.figure import Figure
from loko_testbed.reproduce.figure_types import figure_type_named
from loko_testbed.reproduce.folder import campaign_of
from loko_testbed.reproduce.outcome import ONLY_WORDS, OneByOne, plugged_in
from loko_testbed.reproduce.result import Replication, TrafficResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.executor import Executor
from loko_testbed.tasks.progress import NoProgress, Progress
from loko_testbed.tasks.store import StoredTasks, forget


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationTask:
    """The part of a figure that its claims need, at one seed."""

    part: Figure
    options: Options
    """With the seed."""

    def inputs(self) -> object:
        """Return all that the result depends on."""
        document = self.part.model_dump(mode="json", exclude=ONLY_WORDS)
        return [document, self.options.chosen(), plugged_in(self.part)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replications:
    """A figure at further seeds."""

    results: list[Replication]
    computed: int
    """Seeds that were replayed now; the others were kept."""


def replicate(figure: Figure, options: Options, progress: Progress) -> Replications:
    """Replay a figure at the seeds after `options.seed` that its claims need.

    Only in virtual time and at the paper's scale: elsewhere such claims are judged at one seed, or not at
    all. Raises `InputError` or `RunError`.
    """
    campaign = f"{campaign_of(figure.name)}.seeds"
    tasks = _tasks_of(figure, options)
    if not tasks:
        return Replications(results=[], computed=0)
    stored = StoredTasks(
        folder=options.out,
        campaign=campaign,
        function=replicated,
        inputs=ReplicationTask.inputs,
        workers=options.workers,
        on_kept=lambda task: progress.advance(f"{figure.name}: seed {task.options.seed}"),
    )
    missing = sum(not stored.is_kept(task) for task in tasks)
    if missing == len(tasks):
        forget(options.out, campaign)  # of another commit, or with other options
    return Replications(results=stored.all(tasks, progress, "seeds"), computed=missing)


def _tasks_of(figure: Figure, options: Options) -> list[ReplicationTask]:
    part = figure.for_replication()
    if part is None or options.real_time or options.points != "all" or figure.shorter(options):
        return []
    alone = replace(options, jobs=1, executor=Executor.PROCESSES, scheduler=None, captures=None)
    return [
        ReplicationTask(part=part, options=replace(alone, seed=options.seed + further))
        for further in range(1, max(claim.seeds for claim in part.claims))
    ]


def replicated(task: ReplicationTask) -> Replication:
    """Replay the part of a figure at a seed. Raises `InputError` or `RunError`."""
    compute = figure_type_named(task.part.kind).compute
    with TemporaryDirectory(prefix="loko-") as folder:
        options = replace(task.options, out=Path(folder))
        if isinstance(compute, OneByOne):
            outcome = compute.unrecorded(task.part, options, NoProgress())
            return Replication(seed=options.seed, findings=outcome.findings)
        (result,) = compute([task.part], options, NoProgress())
    series = result.series if isinstance(result, TrafficResult) else []
    return Replication(seed=options.seed, findings=result.findings, series=series)
