"""Where independent tasks are computed: processes of this machine, or the workers of a Dask cluster.

A task's result depends on the task alone, so where it is computed, and in which order, changes no byte.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib import import_module
from itertools import islice
from multiprocessing import forkserver, get_context, parent_process
from threading import Thread
from typing import Any, Final, Protocol, Self, TypeVar

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


class _Pool(Protocol):
    """What computes tasks. When it is lost, all that it was given is lost with it."""

    def submit(self, function: Callable[[Task], Result], task: Task) -> Any:
        """Have a task computed; gives its future."""

    def completed(self) -> Iterable[Any]:
        """The futures as they are done, also of what is submitted meanwhile, until none is left."""


def _in_pools(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    ahead: int,
    opened: Callable[[], AbstractContextManager[_Pool]],
    losses: tuple[type[Exception], ...],
    lost: str,
) -> Generator[tuple[int, Result]]:
    """As `each_done`: `ahead` tasks are given to a pool, and what is left of one that is lost to the next.

    The errors `losses` tell that it is. `lost` is said if that happens again and again.
    """
    coming = enumerate(tasks)
    left = dict(islice(coming, ahead))
    in_vain = 0
    while left:
        with opened() as pool:
            try:
                places = {pool.submit(function, task): place for place, task in left.items()}
                for future in pool.completed():
                    # Once its result is here, nobody need keep it.
                    place = places.pop(future)
                    result = future.result()
                    del left[place]
                    in_vain = 0
                    for following, task in islice(coming, 1):
                        left[following] = task
                        places[pool.submit(function, task)] = following
                    yield place, result
            except losses:
                in_vain += 1
                if in_vain == MOST_IN_VAIN:
                    raise InputError(lost) from None


class _Processes:
    """Of this machine."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        self._waiting: set[Future[Any]] = set()

    @classmethod
    @contextmanager
    def opened(cls, jobs: int) -> Iterator[Self]:
        """So many of them."""
        pool = ProcessPoolExecutor(jobs, mp_context=get_context("forkserver"), initializer=_serve)
        try:
            yield cls(pool)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, function: Callable[[Task], Result], task: Task) -> Future[Result]:
        """As `_Pool.submit`."""
        future = self._pool.submit(function, task)
        self._waiting.add(future)
        return future

    def completed(self) -> Iterator[Future[Any]]:
        """As `_Pool.completed`."""
        while self._waiting:
            done, self._waiting = wait(self._waiting, return_when=FIRST_COMPLETED)
            yield from done


def _by_processes(
    function: Callable[[Task], Result], tasks: Iterable[Task], jobs: int
) -> Generator[tuple[int, Result]]:
    # Not forked from here: the progress bar has a thread.
    prepare(function.__module__)
    yield from _in_pools(
        function,
        tasks,
        ahead=_AHEAD * jobs,
        opened=partial(_Processes.opened, jobs),
        losses=(BrokenProcessPool,),  # the others of the pool go with the one that was killed
        lost=f"--jobs {jobs}: processes were killed {MOST_IN_VAIN} times before any had finished, perhaps"
        " for lack of memory; choose fewer",
    )


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


class _Cluster:
    """The workers of a Dask scheduler, which forgets what a client has given it when that is gone."""

    def __init__(self, distributed: Any, client: Any) -> None:
        self._client = client
        self._completed = distributed.as_completed()

    @classmethod
    @contextmanager
    def opened(cls, distributed: Any, scheduler: str) -> Iterator[Self]:
        """A session with it. Raises `InputError` if nobody answers."""
        try:
            client = distributed.Client(scheduler, timeout=_ANSWER_TIMEOUT)
        except (OSError, ValueError) as error:
            raise InputError(f"--scheduler {scheduler}: no Dask scheduler answers there ({error})") from None
        try:
            yield cls(distributed, client)
        finally:
            with suppress(Exception):  # one that was lost may fail at a connection that it has begun anew
                client.close()
            client.status = "closed"  # else it would try again when it is forgotten

    def submit(self, function: Callable[[Task], Result], task: Task) -> Any:
        """As `_Pool.submit`."""
        future = self._client.submit(function, task, pure=False)
        self._completed.add(future)
        return future

    def completed(self) -> Iterable[Any]:
        """As `_Pool.completed`."""
        completed: Iterable[Any] = self._completed
        return completed


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
    try:
        yield from _in_pools(
            function,
            tasks,
            ahead=_AHEAD_ON_A_CLUSTER,
            opened=partial(_Cluster.opened, distributed, scheduler),
            losses=(CancelledError, distributed.comm.CommClosedError),
            lost=f"--scheduler {scheduler}: the connection was lost {MOST_IN_VAIN} times before any task"
            " was done; see to the scheduler, then repeat the command: what is kept is not computed again",
        )
    except distributed.KilledWorker as error:
        raise InputError(
            f"--scheduler {scheduler}: workers were killed again and again ({error}); give them more memory"
        ) from None
