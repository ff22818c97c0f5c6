"""Which deviations break a check is found in few runs."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import partial
from itertools import combinations

import pytest

from loko_testbed.measure.controllers.bisection import Bisection, bisect
from loko_testbed.simulation.quirks import Quirks

NAMES = [f"n{number}" for number in range(22)]
PAIRS = [frozenset(pair) for pair in combinations(NAMES, 2)]


def found_by(passes: Callable[[Set[str]], bool]) -> tuple[Bisection, int]:
    """Search with a check that passes if these are absent. Return what was found, and the number of runs."""
    runs = []

    def run(quirks: Quirks) -> bool:
        runs.append(quirks)
        match quirks:
            case {"without": list(absent)}:
                return passes(set(absent))
        return passes(set(NAMES) if quirks == "spec" else set())

    found = Bisection()
    bisect(NAMES, run, found)
    assert found.is_complete
    assert sorted(found.tried) == sorted(NAMES)
    return found, len(runs)


@pytest.mark.parametrize("name", NAMES)
def test_a_deviation_that_breaks_a_check_is_found_in_half_as_many_runs(name: str) -> None:
    found, runs = found_by(lambda absent: name in absent)
    assert (found.alone, found.together) == ([name], [])
    assert runs <= len(NAMES) / 2


def test_all_that_break_it_alone_are_found() -> None:
    for pair in PAIRS:
        found, _ = found_by(partial(_lacks_one, pair))
        assert set(found.alone) == pair
        assert found.together == []


def _lacks_one(pair: Set[str], absent: Set[str]) -> bool:
    return bool(pair & absent)


def test_two_that_break_it_together_are_found() -> None:
    for pair in PAIRS:
        found, _ = found_by(pair.issubset)
        assert found.alone == []
        assert [set(names) for names in found.together] == [pair]


@pytest.mark.parametrize("needed", NAMES[1:])
def test_one_is_found_although_another_must_stay(needed: str) -> None:
    """Where the check fails without either half, no half is left out."""
    found, _ = found_by(
        lambda absent: len(absent) == len(NAMES) or (NAMES[0] in absent and needed not in absent)
    )
    assert found.alone == [NAMES[0]]
