"""Compute the tasks of figures that have no points in a lab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from loko_testbed.simulation.options import Options
from loko_testbed.tasks.executor import Result, Task


def compute_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    options: Options,
    tell: Callable[[Task], None],
) -> list[Result]:
    """Compute all tasks where `options` say; return the results in order. Calls `tell` as each task finishes.

    Raises `InputError`, and whatever the function raises.
    """
    results: dict[int, Result] = {}
    with closing(options.workers.each_done(function, tasks)) as done:
        for place, result in done:
            results[place] = result
            tell(tasks[place])
    return [results[place] for place in range(len(tasks))]
