"""Compute the tasks of figures that have no points in a lab."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from typing import Any, Final

from loko_testbed.reproduce.folder import campaign_of
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.executor import Result, Task
from loko_testbed.tasks.store import StoredTasks

_FIGURE: Final[ContextVar[tuple[str, Mapping[str, Any]]]] = ContextVar("figure", default=("", {}))


@contextmanager
def tasks_of(figure: str, fingerprint: Mapping[str, Any]) -> Iterator[None]:
    """Have `compute_tasks` keep results for this figure, all of which depend on `fingerprint`."""
    token = _FIGURE.set((campaign_of(figure), fingerprint))
    try:
        yield
    finally:
        _FIGURE.reset(token)


def compute_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    options: Options,
    tell: Callable[[Task], None],
) -> list[Result]:
    """Compute all tasks where `options` say; return the results in order.

    Results that are kept from an earlier replay are not computed again. Calls `tell` for each task as its
    result is there. Raises `InputError`, and whatever the function raises.
    """
    campaign, fingerprint = _FIGURE.get()
    stored = StoredTasks(
        folder=options.out,
        campaign=campaign,
        function=function,
        common=fingerprint,
        workers=options.workers,
    )
    results: dict[int, Result] = {}
    with closing(stored.each_done(tasks)) as done:
        for place, result in done:
            results[place] = result
            tell(tasks[place])
    return [results[place] for place in range(len(tasks))]
