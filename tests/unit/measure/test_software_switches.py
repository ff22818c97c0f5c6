"""Software switches in the predictability campaign: the parts that need no network."""

from __future__ import annotations

import errno
import math
import socket
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.os_ken_messages import flow_mod
from loko_testbed.instruments.packet_tap import TappedFrame
from loko_testbed.live import datapaths, state
from loko_testbed.measure.bench.software_switches import ports
from loko_testbed.measure.bench.software_switches.named_switches import (
    NAMES,
    PACE,
    QUICK_SIZE,
    SIZE,
    open_switch,
    outline,
)
from loko_testbed.measure.bench.software_switches.tc_table import TcMatch, by_flower, by_u32, deletes_all
from loko_testbed.measure.predictability import campaign, host, priority_queueing
from loko_testbed.measure.predictability.marks import DimensionVerdict, Mark, thresholds
from loko_testbed.measure.predictability.numbered_entries import MATCHES
from loko_testbed.measure.predictability.priority_queueing import Excesses
from loko_testbed.measure.predictability.processing_time import ScenarioTimes
from loko_testbed.measure.predictability.subject import LOST, FrameStream, StreamTimes
from loko_testbed.measure.predictability.table_iii import frame, like_entry
from loko_testbed.simulation.runner import RunError, Stall


def words(match: str, *, flower: bool = False) -> str | None:
    fields = (by_flower if flower else by_u32)(TcMatch.of_message(like_entry(match, "output", 100)))
    return None if fields is None else " ".join(fields)


def test_entries_are_matches_of_u32() -> None:
    assert words("five-tuple") == (
        "protocol ip u32 match ip protocol 17 0xff match ip sport 5000 0xffff match ip dport 6000 0xffff"
        " match ip src 10.0.0.1/32 match ip dst 10.0.1.2/32"
    )
    assert words("masked-nw-dst") == "protocol ip u32 match ip dst 10.0.1.2/24"
    assert words("dl-dst") == "protocol all u32 match ether dst 02:00:00:00:00:02"
    assert words("port") == "protocol all u32 match u32 0 0"
    assert words("dl-vlan") is words("dl-vlan-pcp") is None, "the kernel has taken the tag off"


def test_entries_are_matches_of_flower_where_the_kernel_has_it() -> None:
    assert words("five-tuple", flower=True) == (
        "protocol ip flower ip_proto udp src_port 5000 dst_port 6000 src_ip 10.0.0.1/32 dst_ip 10.0.1.2/32"
    )
    assert words("dl-vlan-pcp", flower=True) == "protocol 802.1Q flower vlan_id 5 vlan_prio 0"
    assert all(words(match, flower=True) for match in MATCHES)
    odd = TcMatch.of_message(flow_mod(parser.OFPMatch(dl_type=0x800, nw_proto=89), [], priority=1, xid=1))
    assert by_flower(odd) is None


@pytest.mark.parametrize(
    ("command", "match", "out_port", "all_of_them"),
    [
        (of.OFPFC_DELETE, {}, of.OFPP_NONE, True),
        (of.OFPFC_DELETE, {"in_port": 1}, of.OFPP_NONE, False),
        (of.OFPFC_DELETE, {"dl_type": 0x0800, "nw_dst": "10.0.0.1"}, of.OFPP_NONE, False),
        (of.OFPFC_DELETE, {}, 2, False),
        (of.OFPFC_DELETE_STRICT, {}, of.OFPP_NONE, False),
        (of.OFPFC_MODIFY, {}, of.OFPP_NONE, False),
        (of.OFPFC_MODIFY_STRICT, {}, of.OFPP_NONE, False),
    ],
)
def test_only_what_deletes_all_entries_clears_the_filters(command, match, out_port, all_of_them) -> None:
    message = bytearray(flow_mod(parser.OFPMatch(**match), [], command=command, priority=0, xid=1))
    message[68:70] = out_port.to_bytes(2, "big")
    assert deletes_all(bytes(message)) is all_of_them


def test_a_live_campaign_has_the_parts_of_a_board_and_one_for_the_machine() -> None:
    for name in NAMES:
        todo = campaign.parts(name, SIZE, 1, subject=outline(name))
        names = list(todo)
        assert names[0] == "host"
        assert len(names) == len(set(todo.values())) == 77, "each is measured, and no result serves two"
        assert {f"FM-sizes-{match}" for match in MATCHES} < set(names)
        assert not any(name.startswith("PT-rate") for name in names), "more than a CPU can do is TP's"
        assert "FM-runs-120-s-apart" not in names
    assert len(campaign.parts(NAMES[0], QUICK_SIZE, 1, subject=outline(NAMES[0]))) == 55


def verdict(mark: Mark) -> DimensionVerdict:
    return DimensionVerdict(mark=mark, reasons=("so it is",), numbers={"spread_us": 3.0})


def test_what_the_machine_decides_is_not_judged() -> None:
    strict = {"PT": verdict(Mark.UNFIT), "PQ": verdict(Mark.UNFIT), "BM": verdict(Mark.FIT)}
    tolerant = strict | {"PQ": verdict(Mark.FIT)}
    judged = host.reliable_verdicts(strict, tolerant, unseen_us=50, disturbed_percent=1)
    assert judged["PT"] == strict["PT"]
    assert judged["BM"] == strict["BM"]
    assert judged["PQ"].mark is Mark.NOT_JUDGED
    assert judged["PQ"].reasons[0] == "this machine decides between unfit and fit, with pauses of up to 50 us"
    assert judged["PQ"].numbers == {"spread_us": 3.0}, "what was measured is told"
    busy = host.reliable_verdicts(strict, strict, unseen_us=50, disturbed_percent=60)
    assert busy["PT"].mark is Mark.NOT_JUDGED
    assert busy["BM"].mark is Mark.FIT


def test_unseen_pauses_raise_the_thresholds_of_times_and_no_others() -> None:
    raised = host.raise_thresholds(thresholds(), unseen_us=50, median_us=25, repeats_us=3)
    assert raised.spread_us.value == thresholds().spread_us.value + 50
    assert raised.cpu_spread_percent.value == thresholds().cpu_spread_percent.value + 200
    assert raised.influence_us.value == thresholds().influence_us.value + 3
    assert raised.only_listed_entries == thresholds().only_listed_entries
    late = Excesses(refused=False, forwards=True, lost=0, by_length_us={"1000": 40, "500": 10, "100": 5})
    assert priority_queueing.judge(late, thresholds()).mark is Mark.UNFIT
    assert priority_queueing.judge(late, raised).mark is Mark.FIT
    took_us = {"PT-entries-100": 50.0, "PT-match-five-tuple": 53.5, "PT-entries-500": 90.0}
    times = {name: ScenarioTimes(sent=10, lost=0, median_us=of) for name, of in took_us.items()}
    assert host.repeats_us(times) == 3.5
    nothing = {"PT-x": ScenarioTimes(sent=10, lost=6, disturbed=4)}
    assert host.shortest_median_us(nothing) == math.inf
    assert host.disturbed_percent(nothing) == 40


def test_frames_that_met_a_stall_count_neither_as_lost_nor_as_late() -> None:
    subject = replace(outline("linux-bridge"), pace=PACE)
    wire_ns = subject.wire_ns(306)
    sent = StreamTimes(
        np.array([0, 0, 0, 0]),
        np.array([wire_ns + 5, LOST, wire_ns + 9_000, LOST]),
        np.array([False, False, True, True]),
    )
    assert sent.lost == 1
    assert sent.processing_ns(subject, 306).tolist() == [5]


def test_frames_are_told_apart_by_their_numbers_wherever_they_pass() -> None:
    there, back = (
        FrameStream(enters=a, leaves=b, frame=frame(306), instants_ns=np.array(at))
        for a, b, at in ((1, 8, [0, 100]), (8, 1, [50]))
    )
    frames = ports._NumberedFrames.of([there, back], 7)
    assert list(frames.in_order()) == [(0, 0), (50, 2), (50, 1)]
    for port, at_ns, outgoing, number in (
        (1, 1_000, False, 0),
        (8, 9_000, True, 0),
        (1, 5_000, True, 0),  # it passes port 1 again, outgoing
        (8, 2_000, False, 2),
        (1, 3_000, True, 2),
        (1, 4_000, False, 1),
    ):
        assert frames.note(port, TappedFrame(at_ns, outgoing, frames.numbered(number)))
    assert not frames.note(1, TappedFrame(1, False, bytes(60)))
    for of_another_run in (ports._NumberedFrames.of([there], 4), ports._NumberedFrames.of([there], 10)):
        assert not frames.note(8, TappedFrame(1, True, of_another_run.numbered(1)))
    [(port, nudge)] = ports._nudges([there, there])
    assert port == 1
    assert not frames.note(8, TappedFrame(1, True, nudge))
    assert not frames.all_left
    subject = outline("linux-bridge")
    first, second = frames.sent(subject, [Stall(start_ns=2_500, duration_ns=100)])
    assert first.processing_ns(subject, 306).size == 0, "a stall met the only one that came"
    assert first.received_ns.tolist() == [9_000, LOST]
    assert second.kept.tolist() == [False]


def test_a_frame_that_the_machine_has_no_room_for_is_none_that_the_switch_lost() -> None:
    class Sender:
        def __init__(self, number: int) -> None:
            self.number = number

        def send(self, data: bytes) -> int:
            raise OSError(self.number, "")

        def getsockname(self) -> tuple[str]:
            return ("host3",)

    ports._offering(cast(socket.socket, Sender(errno.ENOBUFS)))(b"1")
    with pytest.raises(RunError, match=r"^host3: cannot send \(network is down\)$"):
        ports._offering(cast(socket.socket, Sender(errno.ENETDOWN)))(b"1")


def test_a_wait_for_the_core_is_noted_from_its_beginning() -> None:
    waited_ns = iter([0, 10_000, 5_000_000, 5_000_000])
    waits = ports._Waits(lambda: next(waited_ns))
    sent: list[bytes] = []
    waits.before(sent.append)(b"1")
    assert not waits.stalls
    waits.look()
    waits.look()
    [stall] = waits.stalls
    assert stall.duration_ns >= 4_990_000, "the kernel counts a wait when it ends"
    assert sent == [b"1"]


def test_dpdk_that_is_not_here_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(datapaths, "DPDK_PROGRAM", tmp_path / "ovs-vswitchd-dpdk")
    with pytest.raises(RunError, match=r"ovs-vswitchd-dpdk is missing: run 'make dpdk'$"):
        datapaths.dpdk(polling_core=1, other_core=0)


def test_dpdk_polls_on_a_core_of_its_own_without_huge_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datapaths, "missing_for_dpdk", lambda: None)
    datapath = datapaths.dpdk(polling_core=5, other_core=1)
    assert datapath.settings["pmd-cpu-mask"] == "0x20"
    assert datapath.settings["dpdk-lcore-mask"] == "0x2"
    assert "--no-huge --legacy-mem" in datapath.settings["dpdk-extra"]
    assert datapath.interface("port3") == [
        "type=dpdk",
        "options:dpdk-devargs=net_af_packet_port3,iface=port3,qdisc_bypass=0,framecnt=512",
    ]
    assert datapaths.USER_SPACE.interface("port3") == ["type=system"]


def test_a_kernel_without_the_datapath_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datapaths, "kernel_has_datapath", lambda: False)
    with pytest.raises(RunError, match="module openvswitch"):
        datapaths.kernel()
    monkeypatch.setattr(datapaths, "kernel_has_datapath", lambda: True)
    assert (datapaths.kernel().kind, datapaths.kernel().options) == ("system", ())


def test_a_kernel_without_generic_netlink_has_no_datapath(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(refusal, "refused")

    monkeypatch.setattr(socket, "socket", refuse)
    refusal = errno.EPROTONOSUPPORT
    assert not datapaths.kernel_has_datapath()
    refusal = errno.EMFILE
    with pytest.raises(OSError, match="refused"):
        datapaths.kernel_has_datapath()


def test_without_root_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state.os, "geteuid", lambda: 1000)
    with pytest.raises(RunError, match="needs root: run it with sudo"), open_switch("open-vswitch"):
        pass
