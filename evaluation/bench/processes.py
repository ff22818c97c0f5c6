"""A campaign in virtual time in independent tasks: what a part draws does not depend on who measures it.

No replay of points (`evaluation.replay`): on the bench there is one board and no lab, and samples are kept by
part. Parts are tasks of `evaluation.executor` all the same: on processes of this machine, or on a cluster.
A worker keeps its board from part to part. Only the process that asks writes samples, each part's at once.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from threading import local
from typing import Final, NamedTuple

from evaluation.bench import campaign
from evaluation.bench.choice import Choice, virtual_device
from evaluation.bench.device import Device
from evaluation.bench.part import Combination, Key, Part
from evaluation.bench.store import SampleStore
from evaluation.executor import Executor, Workers

Parts = Callable[[], list[Part]]
"""Makes the parts of a campaign. It can be sent to another process: a function or a `partial` of one."""

_WORTH_IT: Final = 25
"""So many parts take longer than starting another process does."""


class _Task(NamedTuple):
    """A part that is measured wherever there is room. Its samples depend on nothing else."""

    form: str
    seed: int
    make_parts: bytes
    """Pickled, so that a worker sees that its next task is of the same campaign."""
    key: Key


def run(
    chosen: Choice,
    make_parts: Parts,
    store: SampleStore,
    *,
    seed: int,
    workers: Workers,
    on_part: Callable[[Part], None],
) -> None:
    """Measure the parts that the store does not hold, in virtual time on so many processes or a cluster.

    `on_part` hears of each part that is complete, also of those that were there. Raises `InputError` or
    `RunError`; what is complete by then is kept.
    """
    todo = make_parts()
    there = store.complete_among(part.key for part in todo)
    missing = [part for part in todo if part.key not in there]
    jobs = min(workers.jobs, len(missing) // _WORTH_IT)
    if chosen.inventory is not None or (jobs < 2 and workers.executor is Executor.PROCESSES):
        with chosen.opened(seed) as device:
            campaign.run(device, todo, store, seed=seed, on_part=on_part)
        return
    for part in todo:
        if part.key in there:
            on_part(part)
    campaign_parts = pickle.dumps(make_parts)
    tasks = [_Task(chosen.form, seed, campaign_parts, part.key) for part in missing]
    with closing(replace(workers, jobs=jobs).each_done(_measured, tasks)) as done:
        for place, found in done:
            part = missing[place]
            for size, (times, left_out) in found:
                store.keep(part.key, size, times, left_out)
            store.complete(part.key)
            on_part(part)


def _measured(task: _Task) -> list[Combination]:
    """All combinations of a part. Raises `InputError` or `RunError`."""
    campaign_of = (task.form, task.seed, task.make_parts)
    if _bench.of != campaign_of:
        _bench.device = virtual_device(task.form, seed=task.seed)
        _bench.parts = {part.key: part for part in pickle.loads(task.make_parts)()}  # noqa: S301
        _bench.of = campaign_of
    return list(_bench.parts[task.key].measured(_bench.device, task.seed))


class _Bench(local):
    """The board and the parts of a campaign, which a worker keeps for its next task: each thread its own."""

    of: tuple[str, int, bytes] | None = None
    device: Device
    parts: Mapping[Key, Part]


_bench: Final = _Bench()
