"""The packets of a burst arrive in the simulator when `loko model order` says."""

from __future__ import annotations

import numpy as np
import pytest
from gate_examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from loko.slicing.document import HtbPort, Port, TrtcmPort
from loko.slicing.order import arrivals_ns
from loko_testbed.measure.slices.port import SENDERS, Release, SliceTrial, transmit

LINK_BPS = 1_000_000_000
LATENCY_US = 20


def measured_ns(port: Port, frame_bytes: int, count: int) -> list[int | None]:
    instants = np.full(count, 1_000_000, dtype=np.int64)
    release = Release(queue=0, host=SENDERS[0], frame_bytes=frame_bytes, instants_ns=instants)
    sent = transmit(SliceTrial(port, "open-vswitch-1g", {0: release}, 1))[0]
    return [int(at - sent.sent_ns[0]) if at >= 0 else None for at in sent.received_ns]


def agrees(port: Port, frame_bytes: int, count: int) -> None:
    predicted = arrivals_ns(port, port.queues[0], frame_bytes, count)
    measured = measured_ns(port, frame_bytes, count)
    assert [arrival is None for arrival in predicted] == [arrival is None for arrival in measured]
    for expected_ns, arrived_ns in zip(predicted, measured, strict=True):
        if expected_ns is not None and arrived_ns is not None:
            assert expected_ns == pytest.approx(arrived_ns, abs=200)  # ns, rounded at each step


@examples(60)
@given(
    rate_mbps=st.integers(5, 600),
    burst=st.integers(1_600, 60_000),
    group=st.sampled_from([1, 4, 16]),
    timer_us=st.sampled_from([0, 60]),
    frame=st.sampled_from([64, 256, 777, 1518]),
    count=st.integers(1, 120),
)
def test_a_burst_through_a_class_arrives_as_predicted(
    rate_mbps: int, burst: int, group: int, timer_us: int, frame: int, count: int
) -> None:
    queue = {"name": "own", "rate_bps": rate_mbps * 1_000_000, "burst_bytes": burst}
    values = {
        "scheduler": "htb",
        "link_rate_bps": LINK_BPS,
        "latency_us": LATENCY_US,
        "dequeue": {"group_frames": group, "timer_us": timer_us},
        "queues": [queue],
    }
    agrees(HtbPort.model_validate(values), frame, count)


@examples(60)
@given(
    rate_mbps=st.integers(5, 600),
    cbs=st.integers(1_500, 60_000),
    group=st.sampled_from([1, 8, 32]),
    poll_us=st.sampled_from([1, 24, 100]),
    frame=st.sampled_from([64, 256, 777, 1518]),
    count=st.integers(1, 120),
)
@example(rate_mbps=100, cbs=1500, group=8, poll_us=1, frame=256, count=120)  # a level of exactly a packet
@example(rate_mbps=600, cbs=1850, group=1, poll_us=1, frame=256, count=120)
def test_a_burst_through_a_policer_arrives_as_predicted(
    rate_mbps: int, cbs: int, group: int, poll_us: int, frame: int, count: int
) -> None:
    queue = {"name": "own", "cir_bps": rate_mbps * 1_000_000, "cbs_bytes": cbs}
    values = {
        "scheduler": "trtcm",
        "link_rate_bps": LINK_BPS,
        "latency_us": LATENCY_US,
        "dequeue": {"group_frames": group, "poll_us": poll_us},
        "queues": [queue],
    }
    agrees(TrtcmPort.model_validate(values), frame, count)
