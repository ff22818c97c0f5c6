"""A lab with a real and an emulated board. An emulator outside the lab, behind veths, plays the real one."""

from __future__ import annotations

import threading

import pytest
import yaml
from cabled_board import CARDS, board, power_off
from live_harness import Machine, admitted, needs_namespaces, wait_until

from loko.topology.lab import load_lab
from loko_testbed.live.runner import LiveRunner
from loko_testbed.simulation.runner import LOST, RunError
from loko_testbed.simulation.traffic import Bucket, Greedy, Sender, flow_of

pytestmark = [pytest.mark.namespaces, pytest.mark.waits, needs_namespaces]

SETTING, TRAFFIC = admitted()


def mixed(folder, lab="two-switch"):
    """The two-switch lab, with s1 as a real board."""
    path = folder / "cabling.yml"
    path.write_text(yaml.safe_dump({"switches": {"s1": CARDS}}))
    return load_lab(lab, path).as_printed()


def test_frames_pass_a_real_and_an_emulated_board_and_the_cards_are_given_back(relaxed, tmp_path):
    before = Machine.now()
    with board(tmp_path), LiveRunner(mixed(tmp_path), SETTING.admitted(), cores=relaxed) as runner:
        status = runner.status()
        assert (status.connected, status.switches) == (2, 2)
        assert "real boards: s1" in status.scheduling
        records = runner.run(TRAFFIC, seconds=1, seed=1)
    assert status.real_boards == {
        "s1": {
            "mac": "70:b3:d5:6c:00:01",
            "hardware": "Zodiac-FX Rev.A",
            "firmware": "0.84",
            "serial": "none",
        }
    }
    assert records.real_boards == status.real_boards
    assert set(records.flow.tolist()) == {sender.flow for sender in TRAFFIC if sender.observed}
    # Other tests run in parallel, and a board without a core drops frames, so most packets are enough.
    for flow in set(records.flow.tolist()):
        arrived = (records.received_ns[records.flow == flow] != LOST).mean()
        assert arrived > 0.5, f"only {arrived:.0%} of the packets of flow {flow} came through"
    wait_until(lambda: Machine.now() == before, "the machine is as before")


def test_a_host_has_a_card_at_the_real_board_and_another_interface_at_the_emulated_one(relaxed, tmp_path):
    ends = [("server:eth1", "H3"), ("server:eth2", "H1"), ("H1", "server:eth2")]
    flows = [
        flow_of(number, *pair, rate_bps=200_000, burst_bytes=306, frame_bytes=306)
        for number, pair in enumerate(ends)
    ]
    bucket = Bucket(rate_bps=200_000, burst_bytes=306)
    traffic = [Sender.of(number, flow, Greedy(bucket=bucket)) for number, flow in enumerate(flows)]
    lab = mixed(tmp_path, "two-switch/server.yml")
    with board(tmp_path), LiveRunner(lab, flows, cores=relaxed) as runner:
        records = runner.run(traffic, seconds=1, seed=1)
    for flow in range(len(flows)):
        assert (records.received_ns[records.flow == flow] != LOST).mean() > 0.5


def test_a_board_that_loses_its_power_in_a_run_is_told_and_not_blamed(relaxed, tmp_path, monkeypatch):
    monkeypatch.setenv("LOKO_PATIENCE", "0.4")
    with board(tmp_path), LiveRunner(mixed(tmp_path), SETTING.admitted(), cores=relaxed) as runner:
        off = threading.Timer(1.0, power_off)
        off.start()
        with pytest.raises(RunError, match="card4: no link within 4 s: is the board powered"):
            runner.run(TRAFFIC, seconds=2, seed=1)
        off.join()


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ({"ports": {1: 2, 2: 1, 3: 3, 4: 4}}, "port 1 and card1: the cable of card1 is in port 2"),
        ({"ports": {1: 1, 2: 2, 4: 4}}, "port 3 and card3: exchange nothing: check their cable"),
        ({"ports": {1: 1, 2: 2, 4: 3}}, "s1: no connection to the controller at 10.0.1.8:6633 within"),
        ({"powered": False}, "card1: no link within .* is the board powered"),
    ],
    ids=["swapped", "cut", "no controller", "no power"],
)
def test_a_board_that_is_cabled_wrongly_or_silent_is_told_before_anything_runs(
    how, complaint, relaxed, tmp_path, monkeypatch
):
    monkeypatch.setenv("LOKO_PATIENCE", "0.25")
    with board(tmp_path, **how), pytest.raises(RunError, match=complaint) as caught:
        LiveRunner(mixed(tmp_path), SETTING.admitted(), cores=relaxed).__enter__()
    assert "\n" not in str(caught.value)


def test_a_card_that_is_not_there_is_named(relaxed, tmp_path):
    with pytest.raises(RunError, match="s1: port 1: this machine has no network card card1"):
        LiveRunner(mixed(tmp_path), SETTING.admitted(), cores=relaxed).__enter__()
