"""The search for the maximum throughput, on a switch whose maximum is known."""

from __future__ import annotations

import pytest
from queueing_device import QueueingDevice

from loko.switch_model.scenario import ActionType, MatchType
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.procedures.throughput import (
    FINE_PRECISION,
    PAPER_PRECISION_BPS,
    finer_maximum,
    maximum_bps,
)

TABLE = TableCase(entries=1, match=MatchType.PORT, action=ActionType.OUTPUT)
SIZE = 64


@pytest.mark.parametrize("mbps", [0.3, 1.9, 9.25, 60.0])
def test_the_finer_search_finds_low_rates_as_well_as_high_ones(mbps: float) -> None:
    service_ns = round(SIZE * 8000 / mbps)
    true_bps = SIZE * 8e9 / service_ns
    maximum = finer_maximum(QueueingDevice(service_ns), TABLE, SIZE)
    assert maximum.bps == pytest.approx(true_bps, rel=FINE_PRECISION)
    assert maximum.by_paper_bps == pytest.approx(true_bps, abs=PAPER_PRECISION_BPS / 2)


def test_the_paper_s_resolution_is_far_from_a_low_rate() -> None:
    device = QueueingDevice(round(SIZE * 8000 / 0.45))
    coarse = maximum_bps(device, TABLE, SIZE)
    maximum = finer_maximum(device, TABLE, SIZE)
    assert abs(maximum.bps / 0.45e6 - 1) < FINE_PRECISION
    assert maximum.by_paper_bps == pytest.approx(coarse, rel=0.001)
    assert abs(coarse / 0.45e6 - 1) > 0.3


def test_a_switch_at_line_rate_needs_two_trials() -> None:
    device = QueueingDevice(1000)
    line_bps = SIZE * 8e9 / device.wire.time_ns(8 + SIZE + 12)
    maximum = finer_maximum(device, TABLE, SIZE)
    assert (maximum.bps, maximum.by_paper_bps) == (line_bps, line_bps)
    assert device.trials == 2
