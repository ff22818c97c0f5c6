"""The lab in virtual time, with the emulated boards."""

from __future__ import annotations

import re
from pathlib import Path

import dpkt
import numpy as np
import pytest

from loko.document import LABS, InputError
from loko.switch_model.scenario import OpenFlow
from loko.topology.frame import frame_of
from loko.topology.lab import Backend, Lab, load_lab
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.traffic.document import Sweep
from loko_testbed.reproduce.figure_types.traffic.setting import SweepSetting, prepare, traffic
from loko_testbed.simulation.runner import LOST, RunError, RunRecords
from loko_testbed.simulation.senders import SIMPLE
from loko_testbed.simulation.virtual import VirtualRunner

FIGURES = experiments()


def setting(name: str) -> SweepSetting:
    sweep = FIGURES[f"loko/{name}"]
    assert isinstance(sweep, Sweep)
    return prepare(sweep)


def run(name: str, x: float, *, seed: int = 1, capacity_factor: float | None = None) -> RunRecords:
    chosen = setting(name)
    runner = VirtualRunner(
        chosen.lab, chosen.admitted(), entries=chosen.sweep.entries, capacity_factor=capacity_factor
    )
    with runner:
        return runner.run(traffic(chosen, x, SIMPLE), seconds=0.5, seed=seed)


def test_the_frame_has_the_flow_s_addresses_and_size() -> None:
    flow = traffic(setting("fig17a"), 1)[0]
    frame = frame_of(load_lab("two-switch"), flow)
    assert len(frame) == 306 - 4
    ethernet = dpkt.ethernet.Ethernet(frame)
    assert (ethernet.src.hex(), ethernet.dst.hex()) == ("020000000001", "020000000003")
    assert (ethernet.data.src, ethernet.data.dst) == (bytes([10, 0, 0, 1]), bytes([10, 0, 0, 3]))
    assert (ethernet.data.data.sport, ethernet.data.data.dport) == (5000, 6000)
    assert ethernet.data.data.ulen == 306 - 4 - 34
    assert dpkt.in_cksum(frame[14:34]) == 0


def test_admitted_traffic_arrives_between_floor_and_guarantee() -> None:
    chosen = setting("fig17a")
    records = run("fig17a", 1)
    assert set(records.flow) == {0, 1}
    assert (records.received_ns != LOST).all()
    delays = records.received_ns - records.sent_ns
    assert delays.max() <= chosen.guarantee_ns
    # The phase of the main loop, within one pass of 4.9 us, decides whether a lone frame is slightly early.
    assert abs(delays.min() - chosen.floor_ns) < 2 * 4_900
    assert records.boards["s1"]["received"] == records.boards["s1"]["forwarded"]
    assert not records.host.stalls


def test_sequence_numbers_count_the_packets_of_each_flow() -> None:
    records = run("fig17a", 1)
    for flow in (0, 1):
        mine = records.flow == flow
        assert records.sequence[mine].tolist() == list(range(int(mine.sum())))
        assert (np.diff(records.sent_ns[mine]) > 0).all()


def test_the_sent_rate_follows_the_multiplier() -> None:
    single, triple = len(run("fig17a", 1)), len(run("fig17a", 3))
    assert 2.5 < triple / single < 3.5


def test_without_a_first_share_only_the_second_flows_send() -> None:
    assert set(run("fig18a", 0.95).flow) == {2, 3}


def test_too_much_rate_is_lost() -> None:
    records = run("fig17a", 11)
    assert np.count_nonzero(records.received_ns == LOST) > len(records) / 3


def test_less_capacity_loses_more() -> None:
    whole, reduced = run("fig17a", 6), run("fig17a", 6, capacity_factor=0.94)
    lost = [np.count_nonzero(records.received_ns == LOST) / len(records) for records in (whole, reduced)]
    assert lost[1] > lost[0] + 0.02


def test_a_capacity_that_the_paper_rules_out_is_refused() -> None:
    with pytest.raises(InputError, match=r"allows 0\.94 to 1\.06"):
        run("fig17a", 6, capacity_factor=0.9)


def test_the_seed_decides_everything() -> None:
    first, again, other = run("fig17a", 5), run("fig17a", 5), run("fig17a", 5, seed=2)
    for column in ("flow", "sequence", "sent_ns", "received_ns", "size"):
        assert np.array_equal(getattr(first, column), getattr(again, column))
    assert not np.array_equal(first.sent_ns[:50], other.sent_ns[:50])


def test_a_table_that_cannot_hold_the_flows_is_refused() -> None:
    chosen = setting("fig17a")
    with pytest.raises(InputError, match="4 flows pass, 3 entries"):
        VirtualRunner(chosen.lab, chosen.admitted(), entries=3)


def test_a_board_that_takes_no_table_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = {OpenFlow.V1_0: (lambda _: [bytes.fromhex("0100000800000001")], 19)}
    monkeypatch.setattr("loko_testbed.simulation.virtual._SESSIONS", sessions)
    chosen = setting("fig17a")
    with (
        VirtualRunner(chosen.lab, chosen.admitted(), entries=17) as runner,
        pytest.raises(RunError, match="s1: the board refused its table of 17 entries"),
    ):
        runner.run(traffic(chosen, 1, SIMPLE), seconds=0.1, seed=1)


def test_open_vswitch_does_not_exist_in_virtual_time() -> None:
    chosen = setting("fig17a")
    lab = chosen.lab.with_backend(Backend.OVS)
    with pytest.raises(
        InputError, match=r"lab\.yml: s1: backend ovs exists in live runs only: use --mode live"
    ):
        VirtualRunner(lab, chosen.admitted(), entries=chosen.sweep.entries)


def banana_lab(folder: Path) -> Lab:
    """The two-switch lab with other switches and nothing else changed."""
    text = (LABS / "two-switch" / "lab.yml").read_text(encoding="utf-8")
    text = text.replace("profile: zodiac-fx", "profile: banana-pi-r1").replace(", ofchecks: false", "")
    text = re.sub(r", ip_address: [\d.]+", "", text)
    path = folder / "lab.yml"
    path.write_text(text, encoding="utf-8")
    return load_lab(path)


def test_switches_of_another_kind_take_the_same_tables_and_traffic(tmp_path: Path) -> None:
    """Two Banana Pi R1 carry what two Zodiac FX carry, and are faster, but with varying delays."""
    chosen = setting("fig17a")
    runner = VirtualRunner(banana_lab(tmp_path), chosen.admitted(), entries=17)
    with runner:
        records = runner.run(traffic(chosen, 1, SIMPLE), seconds=0.5, seed=1)
        again = runner.run(traffic(chosen, 1, SIMPLE), seconds=0.5, seed=1)
    assert set(records.flow) == {0, 1}
    assert (records.received_ns != LOST).all()
    assert (records.received_ns == again.received_ns).all()
    delays = records.received_ns - records.sent_ns
    assert len(np.unique(delays)) > 10
    idle_ns = 2 * (8 + 306) * 8 + 2 * 29_967
    assert idle_ns - 2 * 10_000 <= delays.min() <= idle_ns
    board = records.boards["s1"]
    assert board["received"] == board["forwarded"] == board["processed"]


def test_boards_reach_their_controller_by_frames(tmp_path: Path) -> None:
    """The guarantee still holds, although the boards' own frames share the CPUs with the flows' frames."""
    path = tmp_path / "lab.yml"
    text = (LABS / "two-switch" / "lab.yml").read_text(encoding="utf-8")
    path.write_text(text.replace("control: session", "control: network"), encoding="utf-8")
    chosen = setting("fig17a")
    lab = load_lab(path)
    assert lab.controller is not None
    with VirtualRunner(lab, chosen.admitted(), entries=17) as runner:
        records = runner.run(traffic(chosen, 1, SIMPLE), seconds=4.0, seed=1)
    assert (records.received_ns != LOST).all()
    assert (records.received_ns - records.sent_ns).max() < 4_130_000
    for board in records.boards.values():
        assert board["native_received"] > 0
        assert board["native_sent"] > 0


def test_a_switch_without_a_worst_case_carries_no_admitted_figure(tmp_path: Path) -> None:
    path = banana_lab(tmp_path).path
    sweep = FIGURES["loko/fig17a"]
    assert isinstance(sweep, Sweep)
    with pytest.raises(InputError, match="profile 'banana-pi-r1': this device gives no worst case"):
        prepare(sweep.model_copy(update={"lab": str(path)}))


def test_a_switch_without_capacity_factor_refuses_another(tmp_path: Path) -> None:
    runner = VirtualRunner(
        banana_lab(tmp_path), setting("fig17a").admitted(), entries=17, capacity_factor=1.0
    )
    with pytest.raises(InputError, match="'banana-pi-r1': has no capacity_factor"), runner:
        pass
