"""Compute the tasks of figures that have no points in a lab."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from loko_testbed.reproduce.folder import campaign_of
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.executor import Result, Task
from loko_testbed.tasks.progress import Progress
from loko_testbed.tasks.store import SharedResults, StoredTasks

Key = TypeVar("Key")
_FIGURE: Final[ContextVar[tuple[str, Mapping[str, Any]] | None]] = ContextVar("figure", default=None)
"""The full name of the figure whose tasks are kept, and what all of them depend on."""
_SHARED: Final[ContextVar[SharedResults | None]] = ContextVar("shared", default=None)


@contextmanager
def equal_tasks_once() -> Iterator[None]:
    """Have all figures in the ``with`` block that contain equal tasks in virtual time share their results.

    Only small results are shared (`SharedResults`).
    """
    token = _SHARED.set(SharedResults())
    try:
        yield
    finally:
        _SHARED.reset(token)


@contextmanager
def tasks_of(figure: str, fingerprint: Mapping[str, Any]) -> Iterator[None]:
    """Have `compute_tasks` keep results for this figure, all of which depend on `fingerprint`."""
    token = _FIGURE.set((figure, fingerprint))
    try:
        yield
    finally:
        _FIGURE.reset(token)


def compute_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    options: Options,
    progress: Progress,
    describe: Callable[[Task], object] = str,
    *,
    unit: str = "parts",
) -> list[Result]:
    """Compute all tasks where `options` say; return the results in order.

    Within `tasks_of`, results are kept, and those of an earlier replay are not computed again. `progress`
    counts the others in `unit`, each with the text that `describe` returns of it. Raises `InputError`, and
    whatever the function raises.
    """
    kept_for = _FIGURE.get()
    if kept_for is None:
        computed = dict(options.workers.each_done(function, tasks))
        return [computed[place] for place in range(len(tasks))]
    figure, fingerprint = kept_for
    stored = StoredTasks(
        folder=options.out,
        campaign=campaign_of(figure),
        function=function,
        common=fingerprint,
        workers=options.workers,
        on_kept=lambda task: progress.advance(f"{figure}: {describe(task)}"),
        shared=None if options.real_time else _SHARED.get(),
    )
    return stored.all(tasks, progress, unit)


def compute_each(
    function: Callable[[Task], Result], tasks: Mapping[Key, Task], options: Options, progress: Progress
) -> dict[Key, Result]:
    """Do the work of `compute_tasks` for tasks by keys. Tasks that are equal are computed once."""
    different = list(dict.fromkeys(tasks.values()))
    results = dict(zip(different, compute_tasks(function, different, options, progress), strict=True))
    return {key: results[task] for key, task in tasks.items()}
