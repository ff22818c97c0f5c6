"""Property of traffic classes where boards stand between chips: no frame of any class is late or lost.

A board has one queue for all classes, so a lower class may delay a higher one there.
"""

from __future__ import annotations

from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st

from loko_testbed.simulation.worst_case.port_trial import mixed_trial


@examples(10)
@given(seed=st.integers(0, 10**9), classes=st.integers(2, 4), is_changing=st.booleans())
def test_no_frame_of_any_class_is_late(seed: int, classes: int, is_changing: bool) -> None:
    trial = mixed_trial(seed, packets=1500, is_changing=is_changing, classes=classes)
    assert trial.flows
    assert not trial.verdict.broken
    assert not trial.verdict.events
