"""Where independent tasks are computed: processes of this machine, or the workers of a Dask cluster.

A task's result depends on the task alone, so where it is computed, and in which order, changes no byte.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from enum import StrEnum
from importlib import import_module
from multiprocessing import forkserver, get_context
from typing import Any, Final, TypeVar

from loko.document import InputError

Task = TypeVar("Task")
Result = TypeVar("Result")
MOST_IN_VAIN: Final = 3
"""So often processes are killed one after the other before any of them has done anything."""


class Executor(StrEnum):
    """What computes the tasks."""

    PROCESSES = "processes"
    DASK = "dask"


def prepare(*modules: str) -> None:
    """Start the server that forks this machine's processes, if it does not run yet.

    It imports the modules, and what this program began with, while this process goes on.
    """
    get_context("forkserver").set_forkserver_preload(["__main__", *modules])
    forkserver.ensure_running()


def each_done(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    executor: Executor = Executor.PROCESSES,
    scheduler: str | None = None,
    jobs: int = 1,
) -> Generator[tuple[int, Result]]:
    """Apply a function of a module to each task; gives (place of the task, result) as they are done.

    `jobs` processes of this machine, or the Dask cluster at `scheduler` (``tcp://HOST:PORT``), whose workers
    need the same version of this project. What a process computed that was killed is computed again. Raises
    `InputError` if there is no such cluster, or if processes are killed again and again.
    """
    if executor is Executor.DASK:
        yield from _by_dask(function, tasks, scheduler)
    elif jobs == 1:
        yield from ((place, function(task)) for place, task in enumerate(tasks))
    else:
        yield from _by_processes(function, tasks, jobs)


def _by_processes(
    function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int
) -> Generator[tuple[int, Result]]:
    # Not forked from here: the progress bar has a thread.
    prepare(function.__module__)
    left = dict(enumerate(tasks))
    in_vain = 0
    while left:
        pool = ProcessPoolExecutor(
            min(jobs, len(left)), mp_context=get_context("forkserver"), initializer=_leave_interrupts
        )
        try:
            places = {pool.submit(function, task): place for place, task in left.items()}
            for future in as_completed(tuple(places)):
                place = places.pop(future)
                result = future.result()
                del left[place]
                in_vain = 0
                yield place, result
        except BrokenProcessPool:  # the others of the pool go with the one that was killed
            in_vain += 1
            if in_vain == MOST_IN_VAIN:
                raise InputError(
                    f"--jobs {jobs}: processes were killed {in_vain} times before any had finished, perhaps"
                    " for lack of memory; choose fewer"
                ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _leave_interrupts() -> None:
    """Ctrl-C reaches every process of the terminal; the one that was started ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _by_dask(
    function: Callable[[Task], Result], tasks: Sequence[Task], scheduler: str | None
) -> Generator[tuple[int, Result]]:
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
        try:
            for future in distributed.as_completed(list(places)):
                # Once it is here, the cluster need not keep it.
                place = places.pop(future)
                yield place, future.result()
        except distributed.KilledWorker as error:
            raise InputError(
                f"--scheduler {scheduler}: workers were killed again and again ({error}); give them"
                " more memory"
            ) from None
