"""A campaign in virtual time on several processes: what each part draws does not depend on who measures it.

A worker has a board of its own and hands back each combination; only this process writes it, at once.
When this process ends, however it ends, its workers meet the end of their pipes and end, too.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection, wait
from typing import Final

from evaluation.bench import campaign
from evaluation.bench.choice import Choice, virtual_device
from evaluation.bench.part import Combination, Key, Part
from evaluation.bench.store import SampleStore
from evaluation.runner import RunError
from loko.document import InputError

Parts = Callable[[], list[Part]]
"""Makes the parts of a campaign. It can be sent to another process: a function or a `partial` of one."""

_WORTH_IT: Final = 25
"""So many parts take longer than starting another process does."""
_PATIENCE_S: Final = 10.0


def run(
    chosen: Choice,
    make_parts: Parts,
    store: SampleStore,
    *,
    seed: int,
    jobs: int,
    on_part: Callable[[Part], None],
) -> None:
    """Measure the parts that the store does not hold, in virtual time on up to so many processes.

    `on_part` hears of each part that is complete, also of those that were there. Raises `InputError` or
    `RunError`; what is complete by then is kept.
    """
    todo = make_parts()
    there = store.complete_among(part.key for part in todo)
    missing = [part for part in todo if part.key not in there]
    workers = min(jobs, len(missing) // _WORTH_IT) if chosen.inventory is None else 1
    if workers < 2:
        with chosen.opened(seed) as device:
            campaign.run(device, todo, store, seed=seed, on_part=on_part)
        return
    for part in todo:
        if part.key in there:
            on_part(part)
    by_key = {part.key: part for part in missing}
    with _workers(workers, chosen.form, make_parts, seed) as ends:
        for key, found in _measured(ends, list(by_key)):
            if found is None:
                store.complete(key)
                on_part(by_key[key])
            else:
                size, (times, left_out) = found
                store.keep(key, size, times, left_out)


def _measured(ends: Sequence[Connection], keys: Sequence[Key]) -> Iterator[tuple[Key, Combination | None]]:
    """Hand the parts out, one at a time to each worker, and yield what comes back.

    None follows the last combination of a part. Raises what a worker raised.
    """
    waiting = list(reversed(keys))
    for end in ends:
        end.send(waiting.pop())
    busy = list(ends)
    while busy:
        ready = wait(busy)
        for end in [end for end in busy if end in ready]:
            key, found = end.recv()
            if isinstance(found, Exception):
                raise found
            if found is None and waiting:
                end.send(waiting.pop())
            elif found is None:
                busy.remove(end)
            yield key, found


@contextmanager
def _workers(count: int, form: str, make_parts: Parts, seed: int) -> Iterator[list[Connection]]:
    """Start the workers; end them afterwards."""
    # Not forked: a child would have copies of this process's locks and of the other workers' pipes.
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        ends = []
        for _ in range(count):
            mine, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, form, make_parts, seed), daemon=True)
            process.start()
            theirs.close()
            stack.callback(process.join, _PATIENCE_S)
            stack.callback(mine.close)
            ends.append(mine)
        yield ends


def _work(end: Connection, form: str, make_parts: Parts, seed: int) -> None:
    """What a worker does: measure the parts that it is told, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is meant for the process that asks
    parts = {part.key: part for part in make_parts()}
    device = virtual_device(form, seed=seed)
    try:
        while True:
            key = end.recv()
            try:
                for found in parts[key].measured(device, seed):
                    end.send((key, found))
                end.send((key, None))
            except (InputError, RunError) as error:
                end.send((key, error))
    except (EOFError, ConnectionError):
        return
