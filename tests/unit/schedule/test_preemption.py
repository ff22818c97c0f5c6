"""Waiting for one frame of other traffic, with and without frame preemption."""

from __future__ import annotations

import pytest

from loko.schedule.preemption import LONGEST_UNDIVIDED_BYTES, longest_wait_ns

GIGABIT_BPS = 1_000_000_000


def test_a_whole_frame_is_waited_for_without_preemption() -> None:
    assert longest_wait_ns(1518, 10 * GIGABIT_BPS, preempted=False) == 1_231  # 1538 bytes: TSSDN's 1.23 us


def test_preemption_leaves_what_cannot_be_divided() -> None:
    assert longest_wait_ns(1518, GIGABIT_BPS, preempted=True) == (123 + 20) * 8


@pytest.mark.parametrize("frame_bytes", [64, LONGEST_UNDIVIDED_BYTES])
def test_a_frame_too_short_to_divide_gains_nothing(frame_bytes: int) -> None:
    waits = {longest_wait_ns(frame_bytes, GIGABIT_BPS, preempted=preempted) for preempted in (True, False)}
    assert len(waits) == 1
