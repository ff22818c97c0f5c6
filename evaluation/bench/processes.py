"""A campaign in virtual time on several processes: what each part draws does not depend on who measures it.

A worker has a board of its own and hands back whole parts; only this process writes to the store, at once.
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
from evaluation.bench.campaign import Measured, Part
from evaluation.bench.choice import Choice
from evaluation.bench.store import SampleStore
from evaluation.bench.virtual import VirtualDevice

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
    there = store.parts()
    missing = [part for part in todo if part.key not in there]
    workers = min(jobs, len(missing) // _WORTH_IT) if chosen.entry is None else 1
    if workers < 2:
        with chosen.opened(seed) as device:
            campaign.run(device, todo, store, seed=seed, on_part=on_part)
        return
    for part in todo:
        if part.key in there:
            on_part(part)
    by_key = {part.key: part for part in missing}
    with _workers(workers, chosen.form, make_parts, seed) as ends:
        for key, measured in _measured(ends, list(by_key)):
            store.keep(key, measured)
            on_part(by_key[key])


def _measured(ends: Sequence[Connection], keys: Sequence[str]) -> Iterator[tuple[str, Measured]]:
    """Hand the parts out, one at a time to each worker; yield what comes back, or raise what they raised."""
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
            if waiting:
                end.send(waiting.pop())
            else:
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
    device = VirtualDevice(form, seed=seed)
    try:
        while True:
            key = end.recv()
            try:
                found: Measured | Exception = parts[key].measured(device, seed)
            except Exception as error:  # noqa: BLE001 - raised again by the process that asks
                found = error
            end.send((key, found))
    except (EOFError, ConnectionError):
        return
