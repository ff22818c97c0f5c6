"""Estimates from trains and bursts, on synthetic samples."""

from __future__ import annotations

import numpy as np
import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st

from loko_testbed.measure.bench.cost_model.profile_document import reason
from loko_testbed.measure.bench.procedures.backlog import busy, timers
from loko_testbed.measure.bench.procedures.buffer import explore, rules
from loko_testbed.measure.bench.procedures.idle import idle_pass


@examples(20)
@given(st.integers(0, 2), st.integers(4, 200), st.integers(64, 700))
def test_the_rule_behind_the_buffer_is_found(packets: int, units: int, unit_bytes: int) -> None:
    asked: list[int] = []

    def capacity(length: int) -> int:
        asked.append(length)
        return packets + units // -(-length // unit_bytes)

    left = rules(explore(capacity))
    assert unit_bytes in left.unit_bytes
    assert units in left.units
    assert len(asked) < 30
    # No frame length can tell the remaining rules apart.
    for length in range(64, 1517):
        assert len(set(left.frames(length).tolist())) == 1


def test_24_units_of_128_bytes_are_no_other_rule() -> None:
    left = rules(explore(lambda length: 1 + 24 // -(-length // 128)))
    assert [column.tolist() for column in (left.packets, left.units, left.unit_bytes)] == [[1], [24], [128]]


def test_no_rule_for_a_switch_that_holds_what_none_explains() -> None:
    assert not len(rules({64: 3, 1516: 30}).units)


@pytest.mark.parametrize("noise_ns", [0.0, 700.0])
def test_the_pass_is_found_in_spite_of_noise_and_interruptions(noise_ns: float) -> None:
    random = np.random.default_rng(1)
    loop_ns, count = 4_321.0, 1000
    entered = np.cumsum(1_000_000 + random.integers(0, 100_000, count)).astype(np.float64)
    free = 0.0
    left = []
    for number, at in enumerate(entered):
        if number % 250 == 0:
            free += 100_000.0
        start = free + np.ceil((at - free) / loop_ns) * loop_ns
        free = start + 38_900.0
        left.append(start + 50_000.0)
    noisy = np.array(left) + random.normal(0, noise_ns, count)
    idle = idle_pass(np.concatenate([entered, noisy]).astype(np.int64))
    assert idle.length_ns == pytest.approx(loop_ns, rel=0.003)
    assert abs(idle.length_ns - loop_ns) < 5 * idle.error_ns + 1


def test_timers_are_told_from_other_interruptions() -> None:
    period_ns, count = 1_000_000, 2000
    gaps = np.full(count, period_ns)
    gaps[100::250] += 77_000
    gaps[333] += 30_000
    left = np.cumsum(gaps)
    train = busy(np.concatenate([left - 5 * period_ns, left]))
    assert train is not None
    assert train.period_ns == period_ns
    timer = timers([train])
    assert timer is not None
    assert timer.cost_ns == 77_000
    assert timer.period_ns == pytest.approx(250 * period_ns + 77_000, rel=1e-3)
    assert len(train.interruptions) == timer.runs + 1


def test_frames_that_never_wait_tell_nothing() -> None:
    entered = np.arange(100) * 1_000_000
    assert busy(np.concatenate([entered, entered + 50_000])) is None


def test_every_reason_is_of_the_most_special_name() -> None:
    assert "housing" in reason("ports.count")
    assert "standard" in reason("ports.preamble_bytes")
    assert "native port" in reason("cpu.control.native_frame_ps")
    assert "not been measured" in reason("cpu.base_ps")
