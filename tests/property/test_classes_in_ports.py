"""Property of traffic classes on switch chips: whatever is sent in each class, no frame is late or lost."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from loko_testbed.simulation.worst_case.port_trial import port_trial


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**9), classes=st.integers(2, 4))
def test_no_frame_of_any_class_is_late(seed: int, classes: int) -> None:
    trial = port_trial(seed, packets=1500, classes=classes)
    assert trial.flows
    assert not trial.verdict.broken
    assert not trial.verdict.events
