"""Which deviations break a check: one at a time, then in the smallest sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.fleet.bisection import Bisection, bisect
from evaluation.quirks import Quirks

NAMES = tuple("abcdefghij")


def absent(quirks: Quirks) -> frozenset[str]:
    if isinstance(quirks, dict):
        return frozenset(quirks["without"])
    return frozenset(NAMES if quirks == "spec" else ())


def passing(*sets: Iterable[str], runs: list[Quirks] | None = None) -> Callable[[Quirks], bool]:
    """Return a check that passes if all of one of these sets are absent."""

    def passes(quirks: Quirks) -> bool:
        if runs is not None:
            runs.append(quirks)
        return any(absent(quirks) >= set(names) for names in sets)

    return passes


def bisected(passes: Callable[[Quirks], bool]) -> Bisection:
    found = Bisection()
    bisect(NAMES, passes, found)
    return found


def test_a_check_that_passes_with_all_needs_one_run():
    runs: list[Quirks] = []
    found = bisected(passing((), runs=runs))
    assert (runs, found.passes_with_all, found.is_broken, found.is_complete) == (
        ["firmware"],
        True,
        False,
        True,
    )


def test_a_check_that_fails_anyway_needs_two():
    runs: list[Quirks] = []
    found = bisected(passing(runs=runs))
    assert (runs, found.passes_with_none, found.is_broken) == (["firmware", "spec"], False, False)


def test_each_that_breaks_it_alone_is_named():
    found = bisected(passing("c", "h"))
    assert (found.alone, found.together) == (["c", "h"], [])
    assert found.tried == list(NAMES)


def test_sets_are_named_if_none_breaks_it_alone():
    found = bisected(passing("bg", "cdj"))
    assert found.alone == []
    assert sorted(map(sorted, found.together)) == [["b", "g"], ["c", "d", "j"]]


@given(st.sets(st.sampled_from(NAMES), min_size=2))
def test_a_set_of_any_size_is_found(names: set[str]) -> None:
    assert [set(found) for found in bisected(passing(names)).together] == [names]


@given(st.lists(st.frozensets(st.sampled_from(NAMES), min_size=2), min_size=1, max_size=4))
def test_a_found_set_suffices_and_has_no_name_too_many(sets: list[frozenset[str]]) -> None:
    passes = passing(*sets)
    found = bisected(passes)
    assert found.together
    for names in found.together:
        assert passes({"without": names})
        for fewer in combinations(names, len(names) - 1):
            assert not passes({"without": list(fewer)})


def test_no_setting_is_run_twice():
    runs: list[Quirks] = []
    bisected(passing("bg", "cdj", runs=runs))
    assert len({absent(quirks) for quirks in runs}) == len(runs)


def test_an_interrupted_search_keeps_what_it_has_found():
    found = Bisection()

    def passes(quirks: Quirks) -> bool:
        if quirks == {"without": ["d"]}:
            raise KeyboardInterrupt
        return passing("b")(quirks)

    with pytest.raises(KeyboardInterrupt):
        bisect(NAMES, passes, found)
    assert (found.alone, found.tried, found.is_complete) == (["b"], ["a", "b", "c"], False)
