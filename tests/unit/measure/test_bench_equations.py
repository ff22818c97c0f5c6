"""Equations 1 to 7 against values that the paper prints, and against each other."""

from __future__ import annotations

import pytest

from loko_testbed.measure.bench import equations
from loko_testbed.measure.bench.equations import LinkTiming

WIRE = LinkTiming()


def test_a_frame_s_processing_time_is_what_lies_between_its_end_and_the_next_preamble() -> None:
    # Equation 4: at 100 Mbit/s 306 bytes need 24.48 us and a preamble 0.64 us.
    assert equations.data_time_ns(257_000 + 24_480 + 640, 306, WIRE) == 257_000


def test_a_message_with_reply() -> None:
    assert equations.control_time_ns(92_000 + 66 * 80 + 640, 66, WIRE) == 92_000


def test_a_message_without_reply_is_what_a_barrier_leaves_over() -> None:
    measured_ns = 300_000 + 130 * 80 + 92_000 + 640
    assert equations.silent_control_time_ns(measured_ns, 130, 92_000, WIRE) == 300_000


@pytest.mark.parametrize(("second_ns", "fine"), [(10_000, True), (299_000, False)])
def test_equation_3_refuses_a_barrier_that_came_too_late(second_ns: int, fine: bool) -> None:
    assert equations.barrier_was_in_time(second_ns, 392_640, 66, 92_000, WIRE) is fine


def test_throughput_of_the_evaluation_s_case() -> None:
    # Section 6: 257 us and 306 bytes give 11.85 Mbit/s.
    assert equations.throughput_bps(306, 257_000, WIRE) == pytest.approx(11.85e6, rel=0.001)


def test_equation_5_lies_below_equation_6() -> None:
    assert equations.sequential_throughput_bps(306, 257_000) < equations.throughput_bps(306, 257_000, WIRE)


def test_the_link_to_the_cpu_bounds_large_frames() -> None:
    assert equations.throughput_bps(1516, 260_000, WIRE) == pytest.approx(1516 / 1537 * 100e6)
