"""Compute independent tasks in processes of this machine or on the workers of a Dask cluster.

A task's result depends on the task alone, so place and order of the computation change no byte of it.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib import import_module
from itertools import islice
from multiprocessing import forkserver, get_context, parent_process
from threading import Thread
from typing import Any, Final, Protocol, Self, TypeVar

from loko.document import InputError
from loko.extras import missing_package

Task = TypeVar("Task")
Result = TypeVar("Result")
MOST_IN_VAIN: Final = 3
"""Give up once the pool was lost this many times in a row without any task having been finished."""
_AHEAD: Final = 4
"""Tasks submitted ahead for each process of this machine."""
_AHEAD_ON_A_CLUSTER: Final = 1_000
"""Tasks submitted ahead for all workers of a cluster together."""
_ANSWER_TIMEOUT: Final = "10s"
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_MAX: Final = -4
"""Parameters of mallopt(3)."""
_KEPT_BYTES: Final = 1 << 28
"""Freed memory that a process keeps: more than nearly any run takes."""


class Executor(StrEnum):
    """Kinds of executors."""

    PROCESSES = "processes"
    DASK = "dask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The choice of where tasks are computed."""

    jobs: int = 1
    """Number of processes on this machine."""
    executor: Executor = Executor.PROCESSES
    scheduler: str | None = None
    """Address of the Dask scheduler, if that is the executor."""

    def each_done(
        self, function: Callable[[Task], Result], tasks: Iterable[Task]
    ) -> Generator[tuple[int, Result]]:
        """Call `each_done` with this choice."""
        return each_done(function, tasks, executor=self.executor, scheduler=self.scheduler, jobs=self.jobs)

    def refuse_contradiction(self) -> None:
        """Raise `InputError` if a scheduler is named but the executor does not use it."""
        if self.executor is Executor.PROCESSES and self.scheduler is not None:
            raise InputError("--scheduler: for --executor dask only; leave it out")


def prepare(*modules: str) -> None:
    """Start the server that forks this machine's processes, if it does not run yet.

    The server imports these modules and the main module in the background, while this process goes on.
    """
    get_context("forkserver").set_forkserver_preload(["__main__", *modules])
    forkserver.ensure_running()


@contextmanager
def shared_processes(jobs: int) -> Iterator[None]:
    """Have all calls of `each_done` in the ``with`` block share one pool of `jobs` processes of this machine.

    Each process imports a figure's code once, not once a call. The pool is opened by the first call that
    needs it; a call for more processes opens its own.
    """
    pool = _PoolOfProcesses(jobs)
    token = _SHARED.set(pool)
    try:
        yield
    finally:
        _SHARED.reset(token)
        pool.close()


def each_done(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    executor: Executor = Executor.PROCESSES,
    scheduler: str | None = None,
    jobs: int = 1,
) -> Generator[tuple[int, Result]]:
    """Apply a module-level function to each task; yield (index of the task, result) as tasks finish.

    Computes in `jobs` processes of this machine, or on the Dask cluster at `scheduler` (``tcp://HOST:PORT``),
    whose workers need the same version of this project. Tasks are taken lazily, so `tasks` may be infinite;
    close the generator to stop. If a process is killed, or the connection to the cluster is lost, unfinished
    tasks are computed again. Raises `InputError` if there is no such cluster, or if that happens
    `MOST_IN_VAIN` times in a row without progress.
    """
    if executor is Executor.DASK:
        yield from _by_dask(function, tasks, scheduler)
    elif jobs == 1:
        yield from ((place, function(task)) for place, task in enumerate(tasks))
    else:
        yield from _by_processes(function, tasks, jobs)


class _Pool(Protocol):
    """Computes tasks. If a pool is lost, so are all tasks that were submitted to it and have not finished."""

    def submit(self, function: Callable[[Task], Result], task: Task) -> Any:
        """Submit a task and return its future."""

    def completed(self) -> Iterable[Any]:
        """Yield futures as they finish, including those submitted meanwhile, until none is left."""


def _in_pools(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    ahead: int,
    opened: Callable[[], AbstractContextManager[_Pool]],
    losses: tuple[type[Exception], ...],
    lost: str,
) -> Generator[tuple[int, Result]]:
    """Do the work of `each_done`: keep `ahead` tasks in a pool; if it is lost, go on with a new one.

    The exceptions `losses` mean that a pool was lost. `lost` is the message if that keeps happening.
    """
    coming = enumerate(tasks)
    left = dict(islice(coming, ahead))
    in_vain = 0
    while left:
        try:
            with opened() as pool:
                places = {pool.submit(function, task): place for place, task in left.items()}
                for future in pool.completed():
                    # Drop our reference, so that the future can be freed once its result is here.
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
    """The tasks of one call in a pool of processes on this machine."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        self._waiting: set[Future[Any]] = set()

    @classmethod
    @contextmanager
    def opened(cls, jobs: int) -> Iterator[Self]:
        """Use the shared pool, or one of `jobs` processes for this call alone.

        At the end, tasks that have not begun are dropped, and those that have are awaited.
        """
        shared = _SHARED.get()
        with ExitStack() as stack:
            if shared is None or jobs > shared.jobs:
                shared = stack.enter_context(closing(_PoolOfProcesses(jobs)))
            tasks = cls(stack.enter_context(shared.opened()))
            stack.callback(tasks.drop)
            yield tasks

    def submit(self, function: Callable[[Task], Result], task: Task) -> Future[Result]:
        """See `_Pool.submit`."""
        future = self._pool.submit(function, task)
        self._waiting.add(future)
        return future

    def completed(self) -> Iterator[Future[Any]]:
        """See `_Pool.completed`."""
        while self._waiting:
            done, self._waiting = wait(self._waiting, return_when=FIRST_COMPLETED)
            yield from done

    def drop(self) -> None:
        """Drop the tasks that have not begun; wait for those that have."""
        wait([future for future in self._waiting if not future.cancel()])


class _PoolOfProcesses:
    """A pool of processes for one call, or for several that share it."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    @contextmanager
    def opened(self) -> Iterator[ProcessPoolExecutor]:
        """Lend the pool, and open it if need be. If a process was killed, the next call gets a new pool."""
        if self._pool is None:
            context = get_context("forkserver")
            self._pool = ProcessPoolExecutor(self.jobs, mp_context=context, initializer=_serve)
        try:
            yield self._pool
        except BrokenProcessPool:
            self.close()
            raise

    def close(self) -> None:
        """End the processes.

        Python 3.11 waits for ever for tasks that were cancelled before, unless it also cancels the others.
        """
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


_SHARED: Final[ContextVar[_PoolOfProcesses | None]] = ContextVar("shared", default=None)


def _by_processes(
    function: Callable[[Task], Result], tasks: Iterable[Task], jobs: int
) -> Generator[tuple[int, Result]]:
    # Not forked from this process: it has a thread, that of the progress bar.
    prepare(function.__module__)
    yield from _in_pools(
        function,
        tasks,
        ahead=_AHEAD * jobs,
        opened=partial(_Processes.opened, jobs),
        losses=(BrokenProcessPool,),  # if one process is killed, the whole pool is broken
        lost=f"--jobs {jobs}: processes were killed {MOST_IN_VAIN} times before any had finished, perhaps"
        " for lack of memory; choose fewer",
    )


def _serve() -> None:
    """Initialise a worker: ignore Ctrl-C, which reaches all processes; the parent handles it.

    A thread ends the worker with its parent; else it would wait for its next task forever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _keep_freed_memory()
    starter = parent_process()
    if starter is not None:
        Thread(target=_end_with, args=(starter,), daemon=True).start()


def _keep_freed_memory() -> None:
    """Keep up to `_KEPT_BYTES` of memory that tasks free in this process, for those that follow.

    A run takes and frees megabytes for its packets. By default most of them go back to the kernel, which has
    to clear pages again for the next run. Other C libraries than glibc stay as they are.
    """
    with suppress(AttributeError):  # other C libraries have no mallopt
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def _end_with(starter: Any) -> None:
    starter.join()
    os._exit(1)


class _Cluster:
    """The workers of a Dask scheduler. The scheduler drops a client's tasks when the client is gone."""

    def __init__(self, distributed: Any, client: Any) -> None:
        self._client = client
        self._completed = distributed.as_completed()

    @classmethod
    @contextmanager
    def opened(cls, distributed: Any, scheduler: str) -> Iterator[Self]:
        """Open a session with the scheduler. Raises `InputError` if none answers at that address."""
        try:
            client = distributed.Client(scheduler, timeout=_ANSWER_TIMEOUT)
        except (OSError, ValueError) as error:
            raise InputError(f"--scheduler {scheduler}: no Dask scheduler answers there ({error})") from None
        try:
            yield cls(distributed, client)
        finally:
            with suppress(Exception):  # a lost session may fail to close while it tries to reconnect
                client.close()
            client.status = "closed"  # else it would try to close again when it is garbage-collected

    def submit(self, function: Callable[[Task], Result], task: Task) -> Any:
        """See `_Pool.submit`."""
        future = self._client.submit(function, task, pure=False)
        self._completed.add(future)
        return future

    def completed(self) -> Iterable[Any]:
        """See `_Pool.completed`."""
        completed: Iterable[Any] = self._completed
        return completed


def _by_dask(
    function: Callable[[Task], Result], tasks: Iterable[Task], scheduler: str | None
) -> Generator[tuple[int, Result]]:
    if scheduler is None:
        raise InputError("--executor dask: needs --scheduler ADDRESS, such as tcp://10.0.0.1:8786")
    try:
        # Imported here because only runs on a cluster need it; Any because it has no type hints.
        distributed: Any = import_module("distributed")
    except ImportError:
        raise InputError(f"--executor dask: {missing_package('distributed')}") from None
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
