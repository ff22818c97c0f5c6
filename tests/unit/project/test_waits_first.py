"""Every worker begins with tests that mostly wait: `tests/harness/waits_first.py`."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st
from waits_first import in_shares


def test_each_worker_begins_with_its_share_of_what_waits() -> None:
    waiting = [["a1", "a2"], ["b1"], ["c1"]]
    computing = [f"u{number}" for number in range(6)]
    assert in_shares(waiting, computing, 2) == [
        *("a1", "a2", "c1", "u0", "u1"),
        *("b1", "u2", "u3", "u4", "u5"),
    ]


@given(sizes=st.lists(st.integers(0, 9)), computing=st.integers(0, 20), workers=st.integers(1, 7))
def test_every_test_runs_once_and_modules_stay_together(
    sizes: list[int], computing: int, workers: int
) -> None:
    waiting = [[(module, number) for number in range(size)] for module, size in enumerate(sizes)]
    others = [(-1, number) for number in range(computing)]
    ordered = in_shares(waiting, others, workers)
    assert sorted(ordered) == sorted([*chain.from_iterable(waiting), *others])
    for module in filter(None, waiting):
        start = ordered.index(module[0])
        assert ordered[start : start + len(module)] == module
    assert [test for test in ordered if test in others] == others
