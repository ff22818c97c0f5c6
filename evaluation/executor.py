"""Where independent tasks are computed: processes of this machine, or the workers of a Dask cluster.

A task's result depends on the task alone, so where it is computed, and in which order, changes no byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from enum import StrEnum
from importlib import import_module
from multiprocessing import forkserver, get_context
from typing import Any, TypeVar

from loko.document import InputError

Task = TypeVar("Task")
Result = TypeVar("Result")


class Executor(StrEnum):
    """What computes the tasks."""

    PROCESSES = "processes"
    DASK = "dask"


def prepare(module: str) -> None:
    """Start the server that forks this machine's processes, if it does not run yet.

    It imports the module, and what this program began with, while this process goes on.
    """
    get_context("forkserver").set_forkserver_preload(["__main__", module])
    forkserver.ensure_running()


def each_done(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    executor: Executor = Executor.PROCESSES,
    scheduler: str | None = None,
    jobs: int = 1,
) -> Iterator[tuple[int, Result]]:
    """Apply a function of a module to each task; gives (place of the task, result) as they are done.

    `jobs` processes of this machine, or the Dask cluster at `scheduler` (``tcp://HOST:PORT``), whose workers
    need the same version of this project. Raises `InputError` if there is no such cluster.
    """
    if executor is Executor.DASK:
        yield from _by_dask(function, tasks, scheduler)
    elif jobs == 1:
        yield from ((place, function(task)) for place, task in enumerate(tasks))
    else:
        # Not forked from here: the progress bar has a thread.
        prepare(function.__module__)
        pool = ProcessPoolExecutor(jobs, mp_context=get_context("forkserver"))
        try:
            places = {pool.submit(function, task): place for place, task in enumerate(tasks)}
            for future in as_completed(places):
                yield places[future], future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _by_dask(
    function: Callable[[Task], Result], tasks: Sequence[Task], scheduler: str | None
) -> Iterator[tuple[int, Result]]:
    if scheduler is None:
        raise InputError("--executor dask: needs --scheduler ADDRESS, such as tcp://10.0.0.1:8786")
    try:
        # Only who computes on a cluster needs it. It has no types.
        distributed: Any = import_module("distributed")
    except ImportError:
        raise InputError(
            "--executor dask: the package 'distributed' is missing; install the extra: pip install '.[dask]'"
        ) from None
    try:
        client = distributed.Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise InputError(f"--scheduler {scheduler}: no Dask scheduler answers there ({error})") from None
    with client:
        places = {client.submit(function, task, pure=False): place for place, task in enumerate(tasks)}
        for future in distributed.as_completed(list(places)):
            yield places[future], future.result()
