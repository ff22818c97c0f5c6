"""Measures a campaign in virtual time in independent tasks: samples do not depend on who measures a part.

Nothing here replays points (`loko_testbed.reproduce.replay`): the bench has one board and no lab, and its
parts are the tasks (`loko_testbed.tasks.store`). A worker keeps its board from part to part.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from threading import local
from typing import Final, NamedTuple

from loko_testbed.measure.bench import campaign
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.device_choice import DeviceChoice, virtual_device
from loko_testbed.measure.bench.part import Key, MeasurementPart
from loko_testbed.measure.bench.store import PartSamples, SampleStore, part_samples
from loko_testbed.tasks.executor import Executor, Workers

Parts = Callable[[], list[MeasurementPart]]
"""Makes the parts of a campaign. Must be picklable: a function, or a `partial` of one."""

_WORTH_IT: Final = 25
"""Fewer missing parts per process than this are measured faster without starting it."""


class _PartTask(NamedTuple):
    """A part that any worker may measure. Its samples depend on nothing else."""

    form: str
    seed: int
    make_parts: bytes
    """Pickled, so that a worker can tell whether its next task is of the same campaign."""
    key: Key


def run(
    chosen: DeviceChoice,
    make_parts: Parts,
    store: SampleStore,
    *,
    seed: int,
    workers: Workers,
    on_part: Callable[[MeasurementPart], None],
) -> None:
    """Measure the parts that the store lacks, in virtual time on several processes or a cluster.

    `on_part` is called for each complete part, also for those that the store had. Raises `InputError` or
    `RunError`; what is complete by then is kept.
    """
    todo = make_parts()
    missing = len(todo) - len(store.complete_among(part.key for part in todo))
    jobs = min(workers.jobs, missing // _WORTH_IT)
    if chosen.inventory is not None or (jobs < 2 and workers.executor is Executor.PROCESSES):
        with chosen.open(seed) as device:
            campaign.run(device, todo, store, seed=seed, on_part=on_part)
        return
    campaign_parts = pickle.dumps(make_parts)
    tasks = [_PartTask(chosen.form, seed, campaign_parts, part.key) for part in todo]
    with closing(store.parts(_measured, workers=replace(workers, jobs=jobs)).each_done(tasks)) as done:
        for place, _ in done:
            on_part(todo[place])


def _measured(task: _PartTask) -> PartSamples:
    """Measure a part. Raises `InputError` or `RunError`."""
    campaign_of = (task.form, task.seed, task.make_parts)
    if _bench.of != campaign_of:
        _bench.device = virtual_device(task.form, seed=task.seed)
        _bench.parts = {part.key: part for part in pickle.loads(task.make_parts)()}  # noqa: S301
        _bench.of = campaign_of
    return part_samples(_bench.parts[task.key].measured(_bench.device, task.seed))


class _Bench(local):
    """The board and the parts of a campaign that a worker keeps for its next task, one per thread."""

    of: tuple[str, int, bytes] | None = None
    device: BenchDevice
    parts: Mapping[Key, MeasurementPart]


_bench: Final = _Bench()
