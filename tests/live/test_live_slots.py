"""A source that sends in time slots on real interfaces: what it reports, and that nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from live_harness import needs_namespaces

from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.time_triggered.document import TimeTriggeredCase
from loko_testbed.reproduce.figure_types.time_triggered.trial import SlotTrial
from loko_testbed.reproduce.figure_types.time_triggered.veths import NotHereError, transmit_live

pytestmark = [pytest.mark.live, needs_namespaces]

TABLE2 = experiments()["tssdn/table2"]
FIG4B = experiments()["tssdn/fig4b"].in_real_time()
PACKETS = 100


def case(**values: object) -> TimeTriggeredCase:
    return TimeTriggeredCase.model_validate({"name": "a", "label": "a case", "flows": 2, **values})


@pytest.mark.parametrize("path", ["sockets", "packet-ring"])
def test_frames_leave_in_their_slots_and_arrive(path: str) -> None:
    before = {interface.name for interface in Path("/sys/class/net").iterdir()}
    sent = transmit_live(SlotTrial(TABLE2, case(path=path), PACKETS, 1))
    first, second = np.split(sent.due_ns, 2)
    assert (np.diff(first) == 1_000_000).all()
    assert (second - first == 15_000).all()
    assert (sent.begun_ns >= sent.due_ns).all(), "never early"
    assert (sent.done_ns > sent.begun_ns).all()
    assert sent.came[~sent.stalled].all()
    assert (sent.received_ns > sent.begun_ns)[sent.came].all()
    assert sent.came.mean() > 0.5
    assert {interface.name for interface in Path("/sys/class/net").iterdir()} == before


def test_on_a_cable_with_a_rate_priority_waits_for_one_frame_of_others() -> None:
    frame_us = (FIG4B.frame_bytes - 4) * 8 / FIG4B.live_trunk_mbps
    means_us = {}
    for priority in (True, False):
        crossed = case(flows=1, cross_percent=80, cross_burst_frames=8, priority=priority)
        sent = transmit_live(SlotTrial(FIG4B, crossed, PACKETS, 1))
        assert sent.came[~sent.stalled].all()
        assert sent.cross_percent == pytest.approx(80, abs=20)
        # Frames that wait long are likely to meet a stall, so stalled frames are left out only where none
        # should wait.
        judged = sent.came & ~sent.stalled if priority else sent.came
        assert judged.any(), "the machine held up every frame"
        means_us[priority] = float(np.mean((sent.received_ns - sent.begun_ns)[judged])) / 1e3
    assert means_us[True] < 1.2 * frame_us
    assert means_us[False] > 2 * frame_us


def test_a_kernel_without_etf_is_one_line() -> None:
    said = ""
    try:
        sent = transmit_live(SlotTrial(TABLE2, case(path="timed-sockets", watch_us=800), PACKETS, 1))
        assert (sent.received_ns >= sent.due_ns)[sent.came].all(), "held until the slot"
    except NotHereError as error:
        said = str(error)
    assert not said or "no queue ETF" in said
    assert "\n" not in said
