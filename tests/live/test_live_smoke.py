"""The two-switch lab in real time: admitted traffic, with every packet accounted for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from live_harness import admitted, needs_namespaces

from loko.topology.lab import load_lab
from loko_testbed.live.runner import LiveRunner
from loko_testbed.reproduce.analysis import count_stalled
from loko_testbed.simulation.runner import LOST
from loko_testbed.simulation.traffic import Greedy, Sender

pytestmark = [pytest.mark.live, pytest.mark.namespaces, needs_namespaces]

SETTING, TRAFFIC = admitted()
SECONDS = 2.0
EARLY_NS = 20_000
"""Frames may leave this much too early: the emulator's send lead plus the spread of the taps."""


@pytest.fixture(scope="module", params=["session", "network"])
def runner(request, tmp_path_factory):
    """The lab; the emulator keeps the boards' connections, or they are frames on the control ports."""
    path = tmp_path_factory.mktemp("lab") / "lab.yml"
    path.write_text(SETTING.lab.path.read_text().replace("control: session", f"control: {request.param}"))
    lab = load_lab(path).as_printed()
    assert (lab.controller is not None) == (request.param == "network")
    with LiveRunner(lab, SETTING.admitted()) as live:
        yield live


def test_admitted_packets_arrive_in_time_or_the_host_explains_it(runner):
    records = runner.run(TRAFFIC, seconds=SECONDS, seed=1)
    observed = [flow for flow in TRAFFIC if flow.observed]
    assert set(records.flow.tolist()) == {flow.flow for flow in observed}
    for flow in observed:
        mine = records.flow == flow.flow
        sent, received = records.sent_ns[mine], records.received_ns[mine]
        assert np.all(np.diff(records.sequence[mine]) > 0)
        assert np.all((sent >= 0) & (sent < SECONDS * 1e9))
        allowed = flow.bucket.rate_bps / 8 * SECONDS + flow.bucket.burst_bytes
        bytes_sent = records.size[mine].sum()
        assert 0.3 * allowed < bytes_sent < 1.05 * allowed, "the token bucket holds"
        arrived = received != LOST
        delays = received[arrived] - sent[arrived]
        assert delays.min() >= SETTING.floor_ns - EARLY_NS, "no frame beats an idle network"
        until = np.where(arrived, received, sent + int(SETTING.guarantee_ns))
        missed = ~arrived | (received - sent > SETTING.guarantee_ns)
        explained = count_stalled(sent[missed], until[missed], records.host.stalls) if missed.any() else 0
        assert explained == np.count_nonzero(missed), f"{flow.label}: {np.count_nonzero(missed)} missed"
    for counters in records.boards.values():
        assert counters["forwarded"] <= counters["received"]


def slowed(flow: Sender) -> Sender:
    bucket = replace(flow.bucket, rate_bps=flow.bucket.rate_bps // 2)
    return replace(flow, sends=Greedy(bucket=bucket))


@pytest.mark.parametrize("runner", ["session"], indirect=True)
def test_one_lab_carries_many_runs_and_a_greedy_sender_fills_the_bucket_of_each(runner):
    flow = next(flow for flow in TRAFFIC if flow.observed)
    for greedy in (replace(flow, sends=Greedy(bucket=flow.bucket)), slowed(flow)):
        records = runner.run([greedy], seconds=1, seed=1)
        allowed = greedy.bucket.rate_bps / 8 + greedy.bucket.burst_bytes
        assert 0.9 * allowed < records.size.sum() < 1.05 * allowed
