"""Where independent tasks are computed: processes of this machine, or the workers of a Dask cluster.

A task's result depends on the task alone, so where it is computed, and in which order, changes no byte.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from itertools import islice
from multiprocessing import forkserver, get_context, parent_process
from threading import Thread
from typing import Any, Final, TypeVar

from loko.document import InputError

Task = TypeVar("Task")
Result = TypeVar("Result")
MOST_IN_VAIN: Final = 3
"""So often processes are killed, or a cluster is lost, one time after the other before any task is done."""
_AHEAD: Final = 4
"""Tasks that each process of this machine has been given."""
_AHEAD_ON_A_CLUSTER: Final = 1_000
"""Tasks that all workers of a cluster have been given together."""
_ANSWER_TIMEOUT: Final = "10s"


class Executor(StrEnum):
    """What computes the tasks."""

    PROCESSES = "processes"
    DASK = "dask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Where tasks are computed, as somebody has chosen."""

    jobs: int = 1
    """Processes of this machine."""
    executor: Executor = Executor.PROCESSES
    scheduler: str | None = None
    """Address of the Dask cluster, if that is the executor."""

    def each_done(
        self, function: Callable[[Task], Result], tasks: Iterable[Task]
    ) -> Generator[tuple[int, Result]]:
        """As `each_done`, there."""
        return each_done(function, tasks, executor=self.executor, scheduler=self.scheduler, jobs=self.jobs)

    def refuse_contradiction(self) -> None:
        """Raise `InputError` for a scheduler of which nothing is asked."""
        if self.executor is Executor.PROCESSES and self.scheduler is not None:
            raise InputError("--scheduler: for --executor dask only; leave it out")


def prepare(*modules: str) -> None:
    """Start the server that forks this machine's processes, if it does not run yet.

    It imports the modules, and what this program began with, while this process goes on.
    """
    get_context("forkserver").set_forkserver_preload(["__main__", *modules])
    forkserver.ensure_running()


def each_done(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    executor: Executor = Executor.PROCESSES,
    scheduler: str | None = None,
    jobs: int = 1,
) -> Generator[tuple[int, Result]]:
    """Apply a function of a module to each task; gives (place of the task, result) as they are done.

    `jobs` processes of this machine, or the Dask cluster at `scheduler` (``tcp://HOST:PORT``), whose workers
    need the same version of this project. Tasks are drawn as they are needed, so they may be without end:
    whoever closes the generator ends it. What was being computed is computed again if its process is killed,
    or if the connection with the cluster is lost. Raises `InputError` if there is no such cluster, or if that
    happens again and again.
    """
    if executor is Executor.DASK:
        yield from _by_dask(function, tasks, scheduler)
    elif jobs == 1:
        yield from ((place, function(task)) for place, task in enumerate(tasks))
    else:
        yield from _by_processes(function, tasks, jobs)


def _by_processes(
    function: Callable[[Task], Result], tasks: Iterable[Task], jobs: int
) -> Generator[tuple[int, Result]]:
    # Not forked from here: the progress bar has a thread.
    prepare(function.__module__)
    coming = enumerate(tasks)
    left = dict(islice(coming, _AHEAD * jobs))
    in_vain = 0
    while left:
        pool = ProcessPoolExecutor(jobs, mp_context=get_context("forkserver"), initializer=_serve)
        try:
            places = {pool.submit(function, task): place for place, task in left.items()}
            while places:
                done, _ = wait(places, return_when=FIRST_COMPLETED)
                for future in done:
                    place = places.pop(future)
                    result = future.result()
                    del left[place]
                    in_vain = 0
                    for following, task in islice(coming, 1):
                        left[following] = task
                        places[pool.submit(function, task)] = following
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


def _serve() -> None:
    """Begin a worker. Ctrl-C reaches every process of the terminal: the one that was started ends the others.

    A worker whose starter was killed would wait for its next task for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    starter = parent_process()
    if starter is not None:
        Thread(target=_end_with, args=(starter,), daemon=True).start()


def _end_with(starter: Any) -> None:
    starter.join()
    os._exit(1)


def _by_dask(
    function: Callable[[Task], Result], tasks: Iterable[Task], scheduler: str | None
) -> Generator[tuple[int, Result]]:
    if scheduler is None:
        raise InputError("--executor dask: needs --scheduler ADDRESS, such as tcp://10.0.0.1:8786")
    try:
        # Only who computes on a cluster needs it. It has no types.
        distributed: Any = import_module("distributed")
    except ImportError:
        raise InputError(
            "--executor dask: the package 'distributed' is missing: pip install distributed"
        ) from None
    coming = enumerate(tasks)
    left = dict(islice(coming, _AHEAD_ON_A_CLUSTER))
    in_vain = 0
    while left:
        with _client(distributed, scheduler) as client:
            try:
                places = {client.submit(function, task, pure=False): place for place, task in left.items()}
                completed = distributed.as_completed(list(places))
                for future in completed:
                    # Once it is here, the cluster need not keep it.
                    place = places.pop(future)
                    result = future.result()
                    del left[place]
                    in_vain = 0
                    for following, task in islice(coming, 1):
                        left[following] = task
                        submitted = client.submit(function, task, pure=False)
                        places[submitted] = following
                        completed.add(submitted)
                    yield place, result
            except distributed.KilledWorker as error:
                raise InputError(
                    f"--scheduler {scheduler}: workers were killed again and again ({error}); give them"
                    " more memory"
                ) from None
            except (CancelledError, distributed.comm.CommClosedError):
                # The cluster forgets what a client has given it when that is gone.
                in_vain += 1
                if in_vain == MOST_IN_VAIN:
                    raise InputError(
                        f"--scheduler {scheduler}: the connection was lost {in_vain} times before any task"
                        " was done; see to the scheduler, then repeat the command: what is kept is not"
                        " computed again"
                    ) from None


def _client(distributed: Any, scheduler: str) -> Any:
    """A session with the cluster. Raises `InputError` if nobody answers."""
    try:
        return distributed.Client(scheduler, timeout=_ANSWER_TIMEOUT)
    except (OSError, ValueError) as error:
        raise InputError(f"--scheduler {scheduler}: no Dask scheduler answers there ({error})") from None
