"""Property of traffic classes on switch chips: whatever is sent in each class, no frame is late or lost."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st

from loko.admission.port_queues import PortAdmission
from loko.switch_model.scenario import loko_scenario
from loko_testbed.simulation.worst_case.delivery import judge_delivery, timed_senders, transmit
from loko_testbed.simulation.worst_case.port_changes import ENTRIES, LongLine, plan_changes
from loko_testbed.simulation.worst_case.port_trial import port_trial


@examples(12)
@given(seed=st.integers(0, 10**9), classes=st.integers(2, 4))
def test_no_frame_of_any_class_is_late(seed: int, classes: int) -> None:
    trial = port_trial(seed, packets=1500, classes=classes)
    assert trial.flows
    assert not trial.verdict.broken
    assert not trial.verdict.events


@examples(6)
@given(seed=st.integers(0, 10**9), classes=st.integers(2, 3))
def test_no_change_makes_a_frame_of_any_class_late(seed: int, classes: int) -> None:
    """Flows of all classes come and go on long lines, as theorem 2 allows with longer busy periods."""
    rng = Random(seed)
    drawn = LongLine.drawn(rng, ("ideal-1g",), (306, 1518))
    line = replace(drawn, target_ns=rng.uniform(1.5e5, 1e6), classes=classes)
    lab = line.lab()
    assert line.target_ns is not None
    admission = PortAdmission(
        lab,
        loko_scenario(entries=ENTRIES, packet_sizes_bytes=(line.frame_bytes,)),
        target_ns=line.target_ns,
        classes=classes,
        class_targets_ns={each: each * line.target_ns for each in range(2, classes + 1)},
    )
    changed = plan_changes(line, admission, lab, rng)
    records = transmit(
        changed.case,
        timed_senders(changed.case, changed.history.offers()),
        seed=1,
        duration_ns=changed.until_ns,
    )
    verdict = judge_delivery(changed.case, records)
    assert verdict.packets
    assert not verdict.broken
    assert not verdict.events
