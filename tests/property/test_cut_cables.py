"""Random plans that survive failures: a cut at the worst instant costs no more than the plan states."""

from __future__ import annotations

from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st

from loko_testbed.simulation.failures.trial import failure_trial


@examples(3)
@given(seed=st.integers(0, 10**9))
def test_no_cut_costs_more_than_stated(seed: int) -> None:
    trial = failure_trial(seed, packets=2_000)
    for verdict in trial.verdicts:
        assert not verdict.broken
        assert not verdict.events


@examples(4)
@given(seed=st.integers(0, 10**9), classes=st.integers(2, 3), beside_boards=st.booleans())
def test_no_cut_makes_a_frame_of_any_class_late(seed: int, classes: int, beside_boards: bool) -> None:
    trial = failure_trial(seed, packets=2_000, classes=classes, beside_boards=beside_boards)
    for verdict in trial.verdicts:
        assert not verdict.broken
        assert not verdict.events
