"""Figures of sliced ports: groups and steps are detected in what is received."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from evaluation.kinds.experiments import experiments
from evaluation.kinds.slices.document import Message, Segmentation, Slices
from evaluation.kinds.slices.groups import group_lengths, longest_gap_ns, step_lengths
from evaluation.kinds.slices.htb_port import difference
from evaluation.kinds.slices.production import compute
from evaluation.live import datapaths
from evaluation.options import Options, Silent
from evaluation.outcome import Outcome
from evaluation.runner import RunError
from loko.document import LABS
from loko.slices.document import HtbPort, HtbQueue, load_slices


def replay(figure: Slices, folder: Path) -> Outcome:
    outcome, rows = compute(figure, Options(mode="virtual", seed=1, out=folder, quick=True), Silent())
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
        Message(name="data", packets=3, holds=["data"]),
        Message(name="command", packets=1, holds=["command"]),
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
        (SHOWN.replace("cburst 18475b", "cburst 2Kb"), "cburst is 2048 bytes instead of 18500"),
    ],
)
def test_what_the_kernel_did_not_take_is_found(shown: str, differs: str | None) -> None:
    queue = load_slices("htb").queues[0]
    assert isinstance(queue, HtbQueue)
    differing = difference(0, queue, shown)
    assert (differing is None) if differs is None else (differing is not None and differs in differing)


def test_a_policer_in_real_time_needs_dpdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datapaths, "missing_for_dpdk", lambda: "a driver")
    document = figure("fig2d").model_copy(update={"modes": ["live"]})
    with pytest.raises(RunError, match="a driver is missing: run 'make dpdk'"):
        compute(document, Options(mode="live", seed=1, out=tmp_path, quick=True), Silent())
