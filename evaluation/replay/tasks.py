"""The tasks of a figure whose packets do not pass through points of a lab, or which sends none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from evaluation.executor import Result, Task
from evaluation.options import Options


def computed(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    options: Options,
    tell: Callable[[Task], None],
) -> list[Result]:
    """The results in the order of the tasks, wherever they are computed; `tell` hears of each as it is done.

    Raises `InputError`, and what the function raises.
    """
    found: dict[int, Result] = {}
    with closing(options.workers.each_done(function, tasks)) as done:
        for place, result in done:
            found[place] = result
            tell(tasks[place])
    return [found[place] for place in range(len(tasks))]
