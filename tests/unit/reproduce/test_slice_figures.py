"""Figures of sliced ports: groups and steps are detected in what is received."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from loko.document import LABS
from loko.slicing.document import HtbPort, HtbQueue, Port, load_slices
from loko_testbed.live import datapaths
from loko_testbed.measure.slices.groups import (
    gap_seen_ns,
    group_lengths,
    longest_gap_ns,
    max_pause_ns,
    step_lengths,
)
from loko_testbed.measure.slices.htb_port import difference
from loko_testbed.measure.slices.port import transmit_live
from loko_testbed.measure.slices.release import PacketTimes, Release
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.slices import compute as slices
from loko_testbed.reproduce.figure_types.slices.compute import compute
from loko_testbed.reproduce.figure_types.slices.document import Segmentation, SegmentedMessage, Slices
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import LOST, RunError
from loko_testbed.tasks.progress import NoProgress


def replay(figure: Slices, folder: Path) -> Outcome:
    outcome, rows = compute(figure, Options(mode="virtual", seed=1, out=folder, quick=True), NoProgress())
    assert rows.num_rows > 0
    return outcome


def figure(name: str) -> Slices:
    document = experiments()[f"slicing/{name}"]
    assert isinstance(document, Slices)
    return document


def test_groups_end_where_the_wire_pauses() -> None:
    received = np.array([0, 10, 20, 100, 110, 500])
    assert group_lengths(received, 20) == [3, 2, 1]
    assert group_lengths(received, 5) == [1] * 6
    assert longest_gap_ns(load_slices("htb"), 1518) == pytest.approx(1514 * 8 / 0.2 / 2)
    assert longest_gap_ns(load_slices("two"), 64) == pytest.approx(60 * 8 / 0.02 / 2)
    assert longest_gap_ns(load_slices("trtcm"), 1518) == pytest.approx(2 * 1538 * 0.8)


def test_steps_end_where_a_packet_costs_most() -> None:
    stairs = np.array([0, 1, 2, 100, 101, 102, 200, 201.0])
    assert step_lengths(stairs, 1.0) == [3, 3]
    ramp = np.arange(6) * 50.0
    assert step_lengths(ramp, 1.0) == [1] * 5
    assert step_lengths(np.arange(6) * 1.0, 1.0) == []


@pytest.mark.parametrize(("name", "group"), [("htb", 16), ("htb", 5), ("htb", 1)])
def test_the_groups_that_come_out_are_those_of_the_port(tmp_path: Path, name: str, group: int) -> None:
    port = load_slices(name)
    assert isinstance(port, HtbPort)
    file = tmp_path / "port.yml"
    text = (LABS / "slicing/slices/htb.yml").read_text()
    assert "group_frames: 16" in text
    file.write_text(text.replace("group_frames: 16", f"group_frames: {group}"))
    document = figure("fig2b").model_copy(update={"slices": str(file)})
    assert replay(document, tmp_path).findings["group_packets"] == group


def test_stairs_have_the_ports_steps(tmp_path: Path) -> None:
    assert replay(figure("fig2a"), tmp_path).findings["step_packets"] == 16
    findings = replay(figure("fig2c"), tmp_path).findings
    assert findings["step_packets"] == 8
    assert findings["lost_packets"] == 0


def test_data_first_are_there_first_and_the_last_packet_is_never_earlier(tmp_path: Path) -> None:
    findings = replay(figure("fig3"), tmp_path).findings
    assert findings["data_c_us"] < findings["data_a_us"] == findings["data_b_us"]
    assert findings["command_b_us"] < findings["data_b_us"]
    last = {max(findings[f"data_{case}_us"], findings[f"command_{case}_us"]) for case in "abc"}
    assert len(last) == 1


def test_a_pause_too_short_is_said(tmp_path: Path) -> None:
    short = figure("fig2b").model_copy(update={"pause_ms": 0.5})
    with pytest.raises(RunError, match="lengthen pause_ms"):
        replay(short, tmp_path)


def test_messages_take_turns_or_follow_each_other() -> None:
    messages = [
        SegmentedMessage(name="data", packets=3, holds=["data"]),
        SegmentedMessage(name="command", packets=1, holds=["command"]),
    ]
    assert Segmentation(name="a", messages=messages).order() == [0, 0, 0, 1]
    assert Segmentation(name="b", messages=messages, interleaved=True).order() == [0, 1, 0, 0]
    with pytest.raises(ValidationError, match="no command"):
        Segmentation(name="c", messages=messages[:1])


SHOWN = """class htb 1:10 parent 1:1 leaf 10: prio 0 rate 200Mbit ceil 200Mbit burst 18475b cburst 18475b
class htb 1:1 root rate 1Gbit ceil 1Gbit burst 15000b cburst 15000b
"""


@pytest.mark.parametrize(
    ("shown", "differs"),
    [
        (SHOWN, None),
        (SHOWN.replace("1:10 parent", "1:11 parent"), "the class is not there"),
        (SHOWN.replace("rate 200Mbit", "rate 100Mbit"), "rate is 100000000 bit/s instead of 200000000"),
        (SHOWN.replace("ceil 200Mbit", "ceil 1Gbit"), "ceil is 1000000000 bit/s"),
        (SHOWN.replace(" burst 18475b", " burst 1600b"), "burst is 1600 bytes instead of 18500"),
        (SHOWN.replace("18475b", "18450b"), None),
        (SHOWN.replace("cburst 18475b", "cburst 2Kb"), "cburst is 2048 bytes instead of 18500"),
    ],
)
def test_what_the_kernel_did_not_take_is_found(shown: str, differs: str | None) -> None:
    queue = load_slices("htb").queues[0]
    assert isinstance(queue, HtbQueue)
    differing = difference(0, queue, shown)
    assert (differing is None) if differs is None else (differing is not None and differs in differing)


def replay_live(name: str, folder: Path) -> Outcome:
    outcome, _ = compute(figure(name), Options(mode="live", seed=1, out=folder, quick=True), NoProgress())
    return outcome


def test_without_dpdk_policers_are_replayed_in_virtual_time_and_a_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datapaths, "missing_for_dpdk", lambda: "a driver")
    outcome = replay_live("fig2d", tmp_path)
    assert [note.text for note in outcome.notes] == [
        "This figure is replayed in virtual time: Open vSwitch with DPDK is not here (a driver is missing;"
        " 'make dpdk' installs it)."
    ]
    assert outcome.chart is not None
    assert outcome.chart.caption.endswith("sent as one in virtual time")
    assert (outcome.profile, outcome.findings["group_packets"]) == ("open-vswitch-10g", 8)
    with pytest.raises(RunError, match="a driver is missing: run 'make dpdk'"):
        transmit_live(load_slices("trtcm"), {})


SLOT_NS = 12_304


def arrivals(monkeypatch: pytest.MonkeyPatch, *, torn: int = 0, lost: int = 0) -> None:
    """Let a switch delay what is sent in real time by 1 ms; tear the first bursts apart, lose the next ones.

    Every burst has 20 packets.
    """

    def carried(
        _port: Port, releases: dict[int, Release], **_how: object
    ) -> tuple[dict[int, PacketTimes], float]:
        [starts_ns] = [np.unique(release.instants_ns) for release in releases.values()]
        sent_ns = starts_ns[:, None] + np.arange(20) * SLOT_NS
        sent_ns[:torn, 10:] += 100_000
        received_ns = sent_ns + 1_000_000
        received_ns[torn : torn + lost, -1] = LOST
        return {0: PacketTimes(sent_ns.ravel(), received_ns.ravel())}, 0.5

    monkeypatch.setattr(slices, "transmit_live", carried)


def test_messages_in_real_time_are_those_that_were_sent_as_one_and_came_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrivals(monkeypatch, torn=2, lost=1)
    outcome = replay_live("fig3", tmp_path)
    assert outcome.findings["uneven_bursts"] == 2
    assert outcome.findings["lost_packets"] == 1
    assert outcome.findings["data_a_us"] == pytest.approx(1000 + 19 * SLOT_NS / 1000, abs=0.01)
    assert outcome.findings["data_c_us"] == pytest.approx(1000 + 14 * SLOT_NS / 1000, abs=0.01)
    assert outcome.chart is not None
    assert outcome.chart.caption == "12 of 15 bursts, sent as one"
    assert outcome.profile == ""
    assert outcome.notes[0].text.startswith("The datapath of Open vSwitch is in ")


def test_a_case_that_never_was_sent_as_one_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrivals(monkeypatch, torn=5)
    with pytest.raises(RunError, match="no burst was sent as one and arrived whole"):
        replay_live("fig3", tmp_path)


def test_groups_of_a_real_policer_are_found_at_any_pace_of_the_machine() -> None:
    for pace_ns in (200, 2_000, 20_000):
        gaps_ns = np.array([1, 1, 1, 1, 3, 1, 1, 1, 1, 1, 4, 1]) * pace_ns
        received_ns = np.concatenate([[0], np.cumsum(gaps_ns)])
        assert gap_seen_ns([received_ns]) == 2 * pace_ns
        assert group_lengths(received_ns, gap_seen_ns([received_ns])) == [5, 6, 2]
    assert gap_seen_ns([np.array([5])]) == 0
    assert max_pause_ns(load_slices("trtcm"), 1518) == 24_000
    assert max_pause_ns(load_slices("htb"), 1518) == 2 * longest_gap_ns(load_slices("htb"), 1518)
