"""What hosts send in real time, in a lab of its own: two at once would take the cores from each other."""

from __future__ import annotations

import pytest
from live_harness import needs_root

from evaluation.live.runner import LiveRunner
from evaluation.runner import LOST
from evaluation.traffic import Bucket, Greedy, Sender, flow_of
from loko.lab import load_lab

pytestmark = [pytest.mark.live, pytest.mark.namespaces, needs_root]

SECONDS = 2


def test_two_flows_of_a_host_have_a_bucket_each():
    rates_bps = {"H3": 400_000, "H4": 100_000}
    flows = [
        flow_of(number, "H1", to, rate_bps=rate_bps, burst_bytes=612, frame_bytes=306)
        for number, (to, rate_bps) in enumerate(rates_bps.items())
    ]
    greedy = [
        Sender.of(number, flow, Greedy(bucket=Bucket(rate_bps=flow.rate_bps, burst_bytes=612)))
        for number, flow in enumerate(flows)
    ]
    with LiveRunner(load_lab("two-switch"), flows) as live:
        records = live.run(greedy, seconds=SECONDS, seed=1)
    for number, flow in enumerate(flows):
        mine = records.flow == number
        allowed = flow.rate_bps / 8 * SECONDS + flow.burst_bytes
        assert 0.8 * allowed < records.size[mine].sum() < 1.05 * allowed, flow.id
        assert (records.received_ns[mine] != LOST).mean() > 0.95, flow.id
