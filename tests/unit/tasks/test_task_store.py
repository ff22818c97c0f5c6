"""Results of tasks are kept by what they depend on, and an interrupted campaign continues."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from ipaddress import IPv4Address
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from pydantic import BaseModel

from loko.document import InputError
from loko_testbed.simulation.runner import HostReport, Stall
from loko_testbed.tasks import store as store_module
from loko_testbed.tasks.executor import Workers
from loko_testbed.tasks.kept_results import DamagedResultError, result_in, stored
from loko_testbed.tasks.progress import NoProgress
from loko_testbed.tasks.store import TASKS, SharedResults, StoredTasks, forget, plain


class Counted:
    """Squares numbers, and counts how often."""

    def __init__(self, *, fails_at: int | None = None) -> None:
        self.computed: list[int] = []
        self._fails_at = fails_at

    def __call__(self, number: int) -> int:
        if number == self._fails_at:
            raise KeyboardInterrupt
        self.computed.append(number)
        return number**2


class CountedProgress(NoProgress):
    """Remembers how much is to be done."""

    begun: tuple[float, int] = (0, 0)

    def begin(self, steps: float, kept: int, unit: str = "runs") -> None:
        self.begun = steps, kept


def kept_in(folder: Path, function: Callable[[int], Any], **options: Any) -> StoredTasks[int, Any]:
    return StoredTasks(
        folder=folder, campaign="squares", function=function, inputs=lambda number: number, **options
    )


def square(number: int) -> int:
    return number**2


def test_an_interrupted_campaign_continues_at_the_next_task(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        list(kept_in(tmp_path, Counted(fails_at=3)).each_done(range(5)))
    told: list[int] = []
    again = Counted()
    assert list(kept_in(tmp_path, again, on_kept=told.append).each_done(range(5))) == [
        (number, number**2) for number in range(5)
    ]
    assert again.computed == told == [3, 4]
    assert list(kept_in(tmp_path, nothing).in_order(range(5))) == [0, 1, 4, 9, 16]


def nothing(number: int) -> int:
    raise AssertionError(f"{number} was computed again")


def test_what_several_processes_computed_is_kept(tmp_path: Path) -> None:
    two = kept_in(tmp_path, square, workers=Workers(jobs=2))
    with closing(two.each_done(count())) as done:
        some = dict(islice(done, 3))
    assert all(result == number**2 for number, result in some.items())
    kept = {number for number in range(20) if two.is_kept(number)}
    assert kept >= set(some)
    rest = Counted()
    assert dict(kept_in(tmp_path, rest).each_done(range(20))) == {number: number**2 for number in range(20)}
    assert set(rest.computed) == set(range(20)) - kept


def test_results_come_in_order_as_soon_as_all_before_them_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished: list[int] = []

    def shuffled(
        _: Workers, function: Callable[[int], int], tasks: Iterator[int]
    ) -> Iterator[tuple[int, int]]:
        drawn = list(tasks)
        for place in (2, 0, 4, 1, 3):
            finished.append(drawn[place])
            yield place, function(drawn[place])

    list(kept_in(tmp_path, square).each_done([12]))
    monkeypatch.setattr(Workers, "each_done", shuffled)
    seen = [(result, len(finished)) for result in kept_in(tmp_path, square).in_order(range(10, 16))]
    assert seen == [(100, 2), (121, 4), (144, 4), (169, 4), (196, 5), (225, 5)]


@pytest.mark.parametrize("change", ["commit", "common", "inputs"])
def test_a_result_is_found_by_everything_that_it_depends_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    list(kept_in(tmp_path, square, common={"seed": 1}).each_done([1, 2]))
    if change == "commit":
        monkeypatch.setattr(store_module, "commit", lambda: "another")
    seed = 2 if change == "common" else 1
    tasks = [1, 3] if change == "inputs" else [1, 2]
    again = Counted()
    list(kept_in(tmp_path, again, common={"seed": seed}).each_done(tasks))
    assert again.computed == ([3] if change == "inputs" else [1, 2])


def test_equal_tasks_of_two_campaigns_are_computed_once_if_they_share_results(tmp_path: Path) -> None:
    shared = SharedResults()
    list(kept_in(tmp_path, Counted(), common="a figure", shared=shared).each_done(range(3)))
    progress, another = CountedProgress(), Counted()
    of_another = kept_in(tmp_path, another, common="another figure", shared=shared)
    assert of_another.all(range(1, 5), progress) == [1, 4, 9, 16]
    assert another.computed == [3, 4]
    assert progress.begun == (2, 2)
    alone = Counted()
    kept_in(tmp_path, alone, common="a third figure").all([2], NoProgress())
    assert alone.computed == [2]


def test_large_results_are_not_shared(tmp_path: Path) -> None:
    shared = SharedResults()
    tasks = kept_in(tmp_path, np.zeros, common="a figure", shared=shared)
    another = kept_in(tmp_path, np.zeros, common="another figure", shared=shared)
    list(tasks.each_done([10, 100_000]))
    assert [another.is_kept(size) for size in (10, 100_000)] == [True, False]


def test_another_function_of_the_same_task_is_another_result(tmp_path: Path) -> None:
    def results(function: Callable[[int], int]) -> list[int]:
        return list(StoredTasks(folder=tmp_path, campaign="", function=function).in_order([-3]))

    assert (results(abs), results(square), results(partial(pow, 2))) == ([3], [9], [0.125])


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"[]\n"])
def test_a_damaged_result_is_computed_again(tmp_path: Path, damage: bytes) -> None:
    list(kept_in(tmp_path, square).each_done([7]))
    (path,) = (tmp_path / TASKS / "squares").iterdir()
    path.write_bytes(damage)
    again = Counted()
    assert list(kept_in(tmp_path, again).in_order([7])) == [49]
    assert again.computed == [7]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / TASKS).touch()
    with pytest.raises(InputError, match=r"\.tasks/squares: cannot be made: Not a directory$"):
        list(kept_in(tmp_path, square).each_done([7]))


def test_only_the_forgotten_campaign_is_deleted(tmp_path: Path) -> None:
    for campaign in ("a", "b"):
        list(StoredTasks(folder=tmp_path, campaign=campaign, function=square).each_done([1]))
    forget(tmp_path, "a")
    assert [path.name for path in (tmp_path / TASKS).iterdir()] == ["b"]
    forget(tmp_path, "b")
    assert not (tmp_path / TASKS).exists()


class Colour(StrEnum):
    RED = "red"


class Point(NamedTuple):
    x: float


class Document(BaseModel):
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Inputs:
    value: object


def test_inputs_are_plain_whatever_their_order() -> None:
    first, second = (
        Inputs({"a": 1, Colour.RED: values, ("b", 2): Document(values=values)})
        for values in (frozenset("xyz"), frozenset("zyx"))
    )
    assert plain(first) == plain(second)
    assert plain(Inputs([Point(1.5), np.array([1, 2]), np.int64(3), Path("a"), IPv4Address("10.0.0.1")])) == [
        "Inputs",
        [[1.5], [1, 2], 3, "a", "10.0.0.1"],
    ]
    assert plain(partial(square, 2)) == [f"{__name__}.square", [2], []]
    with pytest.raises(TypeError, match="contain a object; give `inputs` without it"):
        plain(Inputs(object()))


def test_a_result_is_restored_as_it_was() -> None:
    host = HostReport(stalls=(Stall(start_ns=1, duration_ns=2),), lateness_ns={"p50": 3})
    result = [host, {1.5: None}, {"a", "b"}, (np.int64(1), b"\0")]
    assert result_in(stored(result)) == result
    array = result_in(stored(np.array([[1, 2], [3, 4]], dtype=np.int32)))
    assert (array.dtype, array.tolist()) == (np.int32, [[1, 2], [3, 4]])


class Harmful:
    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return self._call


def test_a_folder_of_results_runs_no_code(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    for call in (Harmful(Path.touch, trap), Harmful(forget, tmp_path, "")):
        with pytest.raises(DamagedResultError):
            result_in(pickle.dumps(call))
    assert not trap.exists()
    with pytest.raises(DamagedResultError):
        result_in(b"cloko_testbed.tasks.store\nshutil.rmtree\n.")
