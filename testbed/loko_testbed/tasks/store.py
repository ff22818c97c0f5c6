"""Keep the results of tasks in a folder, so that an interrupted campaign continues at the next task.

A result is found again by everything that it depends on: the commit of this program and the task's inputs. So
a result is never stale; if an input or the program differs, another task is computed. The results of a
campaign lie in ``DIR/.tasks/CAMPAIGN``, one file for each task, which may be deleted at any time.
"""

from __future__ import annotations

import json
import shutil
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cached_property, partial
from hashlib import sha256
from ipaddress import IPv4Address
from itertools import chain
from pathlib import Path, PurePath
from types import FunctionType, NoneType
from typing import Any, Final, Generic, NamedTuple

import numpy as np
from pydantic import BaseModel

from loko.document import InputError
from loko_testbed.tasks.executor import Result, Task, Workers
from loko_testbed.tasks.files import write_atomically
from loko_testbed.tasks.kept_results import DamagedResultError, result_in, stored
from loko_testbed.tasks.progress import Progress
from loko_testbed.tasks.provenance import commit

TASKS: Final = ".tasks"
"""Subfolder of a folder of results for the results of tasks."""
_MOST_SHARED_BYTES: Final = 100_000
"""Larger results are not shared in memory."""


@dataclass(frozen=True, kw_only=True)
class StoredTasks(Generic[Task, Result]):
    """Tasks of one kind whose results are kept.

    `folder` must not be in use by two processes at a time (`loko_testbed.tasks.files.lock_folder`).
    """

    folder: Path
    """The folder of results."""
    campaign: str | Callable[[Task], str]
    """The campaign that tasks belong to: a subfolder that `forget` deletes."""
    function: Callable[[Task], Result]
    """Computes a task. For several processes or a cluster, a function of a module, or a `partial` of one."""
    inputs: Callable[[Task], object] | None = None
    """Returns all that a task's result depends on, apart from the commit and `common`, as values that `plain`
    converts. Default: the name of `function`, and the task itself."""
    common: object = None
    """Inputs that all tasks share, as values that `plain` converts."""
    workers: Workers = field(default_factory=Workers)
    """Where tasks are computed. Tasks in real time have one process, which is this one."""
    on_kept: Callable[[Task], object] = lambda _: None
    """Called with each computed task once its result is kept, to show progress."""
    shared: SharedResults | None = None
    """Results of equal tasks, also of other campaigns. Only for tasks that depend on nothing but `inputs` and
    files that do not change in the meantime: neither on `common` nor on the clock."""

    def each_done(self, tasks: Iterable[Task]) -> Generator[tuple[int, Result]]:
        """Yield (index of the task, result) of every task: the kept result, or else a computed one.

        A result is kept before it is yielded. `tasks` are taken lazily, so they may be infinite; close the
        generator to stop. Raises `InputError` if a result cannot be written, and what `Workers.each_done` and
        `function` raise.
        """
        coming = enumerate(tasks)
        for place, task in coming:
            kept = self._kept(task)
            if kept is None:
                yield from self._computed(chain([(place, task)], coming))
                return
            yield place, kept.result

    def in_order(self, tasks: Iterable[Task]) -> Generator[Result]:
        """Yield the results in the order of the tasks, each as soon as all before it have been yielded.

        Meanwhile later tasks are computed; their results wait on disk. Otherwise like `each_done`.
        """
        drawn: dict[int, Task] = {}

        def drawing() -> Iterator[Task]:
            for place, task in enumerate(tasks):
                drawn[place] = task
                yield task

        following = 0
        there: set[int] = set()
        with closing(self.each_done(drawing())) as done:
            for place, result in done:
                if place != following:
                    there.add(place)
                    continue
                del drawn[place]
                yield result
                following += 1
                while following in there:
                    there.remove(following)
                    yield self._kept_or_computed(drawn.pop(following))
                    following += 1

    def all(self, tasks: Sequence[Task], progress: Progress, unit: str = "parts") -> list[Result]:
        """Return the results of all tasks in order; `progress` begins with those that are not kept yet.

        Otherwise like `each_done`.
        """
        kept = sum(map(self.is_kept, tasks))
        progress.begin(len(tasks) - kept, kept, unit)
        with closing(self.each_done(tasks)) as done:
            results = dict(done)
        return [results[place] for place in range(len(tasks))]

    def is_kept(self, task: Task) -> bool:
        """Return whether the result of a task is kept, or that of an equal task is shared."""
        return self._file(task, self._described(task)).is_file() or self._shared(task) is not None

    def result_of(self, task: Task) -> Result | None:
        """Return the result of a task if it is kept, else None."""
        kept = self._kept(task)
        return None if kept is None else kept.result

    def _computed(self, coming: Iterable[tuple[int, Task]]) -> Generator[tuple[int, Result]]:
        """Do the work of `each_done` from the first missing task on."""
        missing: dict[int, tuple[int, Task]] = {}
        kept: deque[tuple[int, Task]] = deque()

        def lacking() -> Iterator[Task]:
            number = 0
            for place, task in coming:
                if self._kept(task) is None:
                    missing[number] = place, task
                    number += 1
                    yield task
                else:
                    kept.append((place, task))

        def found() -> Iterator[tuple[int, Result]]:
            while kept:
                place, task = kept.popleft()
                yield place, self._kept_or_computed(task)

        with closing(self.workers.each_done(self.function, lacking())) as done:
            for number, result in done:
                place, task = missing.pop(number)
                self._keep(task, result)
                self.on_kept(task)
                yield from found()
                yield place, result
        yield from found()

    def _kept_or_computed(self, task: Task) -> Result:
        kept = self._kept(task)
        return self.function(task) if kept is None else kept.result

    def _kept(self, task: Task) -> _Kept[Result] | None:
        described = self._described(task)
        try:
            inputs, _, data = self._file(task, described).read_bytes().partition(b"\n")
            if inputs == described:
                return _Kept(result_in(data))
        except (OSError, DamagedResultError):
            pass
        shared = self._shared(task)
        return None if shared is None else _Kept(result_in(shared))

    def _keep(self, task: Task, result: Result) -> None:
        described = self._described(task)
        path = self._file(task, described)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path.parent}: cannot be made: {error.strerror}") from None
        data = stored(result)
        write_atomically(path, described + b"\n" + data)
        if self.shared is not None:
            self.shared.add(self._inputs(task), data)

    def _shared(self, task: Task) -> bytes | None:
        return None if self.shared is None else self.shared.get(self._inputs(task))

    def _described(self, task: Task) -> bytes:
        """Return all that a task's result depends on, as one line of JSON."""
        return json.dumps([commit(), self._common, self._inputs(task)]).encode()

    def _inputs(self, task: Task) -> object:
        return plain([_name(self.function), task] if self.inputs is None else self.inputs(task))

    @cached_property
    def _common(self) -> str:
        """A short text that stands for `common`, which may be long."""
        return digest_of(self.common)

    def _file(self, task: Task, described: bytes) -> Path:
        campaign = self.campaign if isinstance(self.campaign, str) else self.campaign(task)
        return _folder_of(self.folder, campaign) / _digest(described)


class SharedResults:
    """Small results in memory, so that equal tasks of several campaigns are computed once."""

    def __init__(self) -> None:
        self._results: dict[str, bytes] = {}

    def add(self, inputs: object, result: bytes) -> None:
        """Share a result (`loko_testbed.tasks.kept_results.stored`) unless it is large."""
        if len(result) <= _MOST_SHARED_BYTES:
            self._results[digest_of(inputs)] = result

    def get(self, inputs: object) -> bytes | None:
        """Return the result of a task with equal inputs, or None."""
        return self._results.get(digest_of(inputs))


class _Kept(NamedTuple, Generic[Result]):
    """A kept result, which may be None."""

    result: Result


def digest_of(inputs: object) -> str:
    """Return a short text that stands for inputs, which may be long; equal ones have the same."""
    return _digest(json.dumps(plain(inputs)).encode())


def forget(folder: Path, campaign: str) -> None:
    """Delete the kept results of a campaign, such as a figure that is complete."""
    shutil.rmtree(_folder_of(folder, campaign), ignore_errors=True)
    with suppress(OSError):  # other campaigns may have results
        (folder / TASKS).rmdir()


def plain(value: object) -> object:
    """Convert the inputs of a task to JSON values. Equal values, in any process, convert to equal ones.

    Raises `TypeError` for objects of which it is not known what they depend on.
    """
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value)
    if is_dataclass(value):
        return [type(value).__name__, *(plain(getattr(value, each.name)) for each in fields(value))]
    raise TypeError(f"the inputs of a task contain a {type(value).__name__}; give `inputs` without it")


def _name(function: Callable[..., Any]) -> str:
    while isinstance(function, partial):
        function = function.func
    return f"{function.__module__}.{function.__qualname__}"


_CONVERSIONS: Final[tuple[tuple[Any, Callable[[Any], object]], ...]] = (
    ((NoneType, str, int, float), lambda value: value),
    (Enum, lambda value: plain(value.value)),
    ((np.ndarray, np.generic), lambda value: value.tolist()),
    (BaseModel, lambda value: [type(value).__name__, plain(dict(value))]),
    (
        Mapping,
        lambda value: sorted(([plain(key), plain(each)] for key, each in value.items()), key=json.dumps),
    ),
    ((set, frozenset), lambda value: sorted(map(plain, value), key=json.dumps)),
    (bytes, bytes.hex),
    (Sequence, lambda value: list(map(plain, value))),
    ((PurePath, IPv4Address), str),
    (FunctionType, _name),
    (partial, lambda value: [_name(value), plain(value.args), plain(value.keywords)]),
)
"""Types of inputs, and how they are converted; the first that fits counts."""


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()[:32]


def _folder_of(folder: Path, campaign: str) -> Path:
    return folder / TASKS / campaign
