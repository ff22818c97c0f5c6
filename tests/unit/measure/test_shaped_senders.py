"""Numbers derived from the frames of a real sender."""

from __future__ import annotations

import numpy as np
import pytest

from loko_testbed.measure.bench.live.shaped_senders import CASES, SenderMeasurement, train_length

FRAME_NS = 450_000.0


def seen(**changes: object) -> SenderMeasurement:
    values = {
        "name": "45 Mbit/s",
        "shaped": True,
        "token_us": 54.4,
        "offered_pps": 27_000.0,
        "accepted_pps": 22_000.0,
        "sent_pps": 17_000.0,
        "frame_us": 58.4,
        "gap_us": None,
        "burst_frames": None,
    }
    return SenderMeasurement(**{**values, **changes})  # type: ignore[arg-type]


def test_what_is_more_than_the_tokens_is_the_latency_of_a_busy_shaper() -> None:
    assert seen().latency_us == pytest.approx(4.0)


@pytest.mark.parametrize("changes", [{"accepted_pps": 17_000.0}, {"shaped": False}])
def test_a_shaper_that_is_not_busy_tells_nothing(changes: dict) -> None:
    assert seen(**changes).latency_us is None


def test_a_train_is_what_leaves_between_two_pauses() -> None:
    trains = [
        np.arange(count) * FRAME_NS + begin for count, begin in ((7, 0), (190, 1e9), (170, 2e9), (3, 3e9))
    ]
    assert train_length(np.concatenate(trains).astype(np.int64), frame_ns=FRAME_NS) == 180
    assert train_length(trains[0].astype(np.int64), frame_ns=FRAME_NS) is None


def test_the_cases_are_the_paper_s_senders() -> None:
    rates = {case.rate_bps for case in CASES if case.shaped}
    assert {45_000_000, 450_000_000} <= rates
    assert all(case.flow.bucket.burst_bytes == case.flow.frame_bytes == 306 for case in CASES)
    assert any(case.senders.burst_frames > 300 for case in CASES)
