"""Excess of priority queueing beside traffic of low priority, from times alone and beside it."""

from __future__ import annotations

import numpy as np
import pytest

from loko_testbed.measure.predictability.priority_queueing import (
    InterferenceDelays,
    InterferingTraffic,
    between_percent,
    measure_beside,
)
from loko_testbed.measure.predictability.subject import switch_under_test


def test_the_excess_is_what_one_frame_on_the_wire_does_not_explain() -> None:
    delays = InterferenceDelays(alone_us=np.array([3.0, 4.0]), beside_us=np.array([5.0, 20.0]))
    assert delays.excess_us(8_000) == 20 - 4 - 8


@pytest.mark.parametrize(
    ("beside", "percent"), [([4.0, 4.5, 19.5, 20.0], 0), ([4.0, 8.0, 12.0, 20.0], 50), ([12.0, 20.0], 50)]
)
def test_times_near_both_extremes_are_not_between_them(beside: list[float], percent: float) -> None:
    assert between_percent(np.array([3.0, 4.0]), np.array(beside)) == percent


@pytest.mark.parametrize(
    "interference",
    [
        InterferingTraffic(high_bytes=500),
        InterferingTraffic(low_flows=3),
        InterferingTraffic(low_bytes=1516, low_percent=50),
    ],
)
def test_an_ideal_switch_adds_nothing_whatever_interferes(interference: InterferingTraffic) -> None:
    subject = switch_under_test("ideal-1g")
    delays = measure_beside(subject, interference, bursts=200, seed=1)
    assert delays.excess_us(subject.slot_ns(interference.low_bytes)) <= 0.2
    assert len(delays.beside_us) == len(delays.alone_us) == 1_000
