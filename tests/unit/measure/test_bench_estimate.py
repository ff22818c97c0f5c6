"""Least squares on sums of parameters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loko_testbed.measure.bench.cost_model.estimate import CostObservation, solve


@given(st.lists(st.integers(-(10**9), 10**9), min_size=3, max_size=3))
def test_exact_observations_give_the_parameters_back(values: list[int]) -> None:
    truth = dict(zip("abc", values, strict=True))
    sums = [{"a": 1}, {"a": 1, "b": 64}, {"a": 1, "b": 128, "c": 2}, {"a": 2, "c": 5}]
    solution = solve(
        [CostObservation(term, sum(truth[name] * n for name, n in term.items())) for term in sums]
    )
    assert not solution.unidentified
    for name, value in truth.items():
        assert solution.estimates[name].value_ps == pytest.approx(value, abs=1.0)
    assert solution.worst_residual_ps < 1.0


def test_what_only_comes_together_is_named_and_not_guessed() -> None:
    solution = solve([CostObservation({"a": 1, "b": 1, "c": n}, 10 + 3 * n) for n in range(4)])
    assert set(solution.unidentified) == {"a", "b"}
    assert set(solution.estimates) == {"c"}
    assert solution.estimates["c"].value_ps == pytest.approx(3)


def test_surer_observations_weigh_more() -> None:
    observations = [
        CostObservation({"a": 1}, 100.0, error_ps=1.0),
        CostObservation({"a": 1}, 200.0, error_ps=100.0),
    ]
    assert solve(observations).estimates["a"].value_ps == pytest.approx(100, abs=0.1)


def test_an_observation_that_does_not_fit_shows() -> None:
    observations = [CostObservation({"a": n}, 5.0 * n) for n in range(1, 5)] + [
        CostObservation({"a": 1}, 1005.0)
    ]
    assert solve(observations).worst_residual_ps > 500
