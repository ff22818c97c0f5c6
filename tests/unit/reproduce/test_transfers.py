"""Figures of TCP transfers: what is measured, by taps or iperf3, and the comparison with equation 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import switch_emulator
from pydantic import ValidationError

from loko.slicing.document import HtbPort, TrtcmPort, load_slices
from loko.topology.frame import segment_of
from loko.topology.lab import load_lab
from loko.topology.network import RoutedFlow, shortest_path
from loko_testbed.instruments import traffic_control
from loko_testbed.instruments.segment_tap import Segments
from loko_testbed.live import datapaths
from loko_testbed.measure.slices import htb_port, tcp_port
from loko_testbed.measure.slices.injection import InjectionMethod
from loko_testbed.measure.slices.port import TransferResult, transfer_of
from loko_testbed.measure.slices.release import PacketTimes
from loko_testbed.measure.slices.tcp_port import CpuShares, join, reply_of
from loko_testbed.reproduce.claims import judge
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.transfers import beside_iperf3, real_time
from loko_testbed.reproduce.figure_types.transfers.beside_iperf3 import live_of
from loko_testbed.reproduce.figure_types.transfers.by_port import equation_1_ms
from loko_testbed.reproduce.figure_types.transfers.compute import compute
from loko_testbed.reproduce.figure_types.transfers.document import TransfersBesideIperf3, TransfersByPort
from loko_testbed.reproduce.figure_types.transfers.transfers import (
    measure_transfer,
    port_with,
    transfer_task,
    virtual_transfer,
)
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import LOST, RunError
from loko_testbed.simulation.traffic import Sender, Tcp, flow_of
from loko_testbed.simulation.virtual import VirtualRunner
from loko_testbed.tasks.progress import NoProgress


def figure(name: str, rates_mbps: list[int], seconds: float) -> TransfersByPort:
    document = experiments()[f"slicing/{name}"]
    assert isinstance(document, TransfersByPort)
    quick = document.quick.model_copy(update={"seconds": seconds})
    return document.model_copy(update={"queue_rates_mbps": rates_mbps, "quick": quick})


def replay(document: TransfersByPort, folder: Path) -> Outcome:
    return compute(document, Options(mode="virtual", seed=1, out=folder, quick=True), NoProgress())[0]


def test_a_full_queue_of_htb_makes_latency_and_a_policer_makes_retransmissions(tmp_path: Path) -> None:
    findings = replay(figure("fig6a", [200], 0.8), tmp_path).findings
    queue_ms = 1000 * 1514 * 8 / 200e3
    assert queue_ms / 3 < findings["latency_htb_200_ms"] < queue_ms + 1
    assert findings["latency_trtcm_200_ms"] < 1
    assert findings["retransmissions_htb_200_pps"] < findings["retransmissions_trtcm_200_pps"]
    assert findings["window_trtcm_200_packets"] < findings["window_htb_200_packets"]
    assert "equation_1_trtcm_200_ms" not in findings


def test_a_bound_is_kept_and_costs_no_rate(tmp_path: Path) -> None:
    findings = replay(figure("bounded", [200], 1.6), tmp_path).findings
    assert 4 < findings["longest_bounded_200_ms"] < 5.04 < findings["longest_htb_200_ms"]
    assert findings["longest_bounded_ms"] == findings["longest_bounded_200_ms"]
    assert findings["payload_bounded_200_mbps"] > 0.95 * findings["payload_htb_200_mbps"]
    assert findings["latency_codel_200_ms"] < findings["latency_htb_200_ms"]


def test_segments_are_counted_after_the_first_quarter_only() -> None:
    transferred = TransferResult(
        segments=PacketTimes(
            np.array([0, 300_000_000, 500_000_000, 900_000_000]),
            np.array([90_000_000, LOST, 502_000_000, 904_000_000]),
        ),
        retransmitted_ns=np.array([0, 900_000_000]),
        window_at_ns=np.array([0, 100_000_000, 625_000_000]),
        window_segments=np.array([10, 20, 40], dtype=np.uint64),
        delivered_bytes=2 * 1448,
        timeouts=1,
    )
    transfer = measure_transfer(transferred, 1518, 1_000_000_000)
    assert transfer.latency_ms == pytest.approx(3)
    assert transfer.latency_max_ms == pytest.approx(4)
    assert transfer.payload_bps == pytest.approx(2 * 1448 * 8 / 0.75)
    assert transfer.retransmissions_pps == pytest.approx(1 / 0.75)
    assert transfer.window_packets == pytest.approx(30)
    with pytest.raises(RunError, match="make seconds longer"):
        measure_transfer(transferred, 1518, 4_000_000_000)


def reply(
    rate_bps: float, *, delay_ms: float, waited: float = 0.0, busy: float = 0.5
) -> tcp_port.TransferReply:
    """A 4 s transfer in which every tenth segment is lost and sent again; nothing is reported after it."""
    count = round(4.4 * rate_bps / 8 / 1448)
    sent_ns = np.linspace(0, 4.4e9, count).astype(np.int64)
    received_ns = np.where(np.arange(count) % 10 == 9, LOST, sent_ns + round(delay_ms * 1e6))
    cpu = tcp_port.CpuShares(switch=busy, softirq=0.1, machine=1.0 + busy, waited=waited)
    return tcp_port.TransferReply(
        end_s=np.array([1.0, 2.0, 3.0, 4.0]),
        received_bytes=np.full(4, round(rate_bps / 8)),
        received_end_s=np.array([1.0, 2.0, 3.0, 4.0]),
        retransmissions=np.full(4, count // 44),
        window_bytes=np.array([1000, 2000, 3000, 4000]),
        round_trip_us=np.full(4, 100),
        segment_bytes=1000,
        segments=PacketTimes(sent_ns, received_ns),
        refused_by_queue=0,
        idle=cpu,
        busy=cpu,
    )


def test_what_taps_noted_of_a_transfer_is_measured_as_in_virtual_time() -> None:
    transferred = transfer_of(reply(10e6, delay_ms=3), 4 * 10**9)
    assert int(transferred.segments.sent_ns.max()) < 4 * 10**9
    assert transferred.timeouts is None
    steady = measure_transfer(transferred, 1518, 4 * 10**9)
    assert steady.latency_ms == pytest.approx(3)
    assert steady.payload_bps == pytest.approx(0.9 * 10e6, rel=0.05)
    assert steady.window_packets == pytest.approx((2 + 3 + 4) / 3)


def live(name: str) -> TransfersByPort:
    document = experiments()[f"slicing/{name}"]
    assert isinstance(document, TransfersByPort)
    assert document.live is not None
    quick = document.quick.model_copy(update={"seconds": 4})
    return document.model_copy(update={"live": document.live.model_copy(update={"quick": quick})})


def carried_live(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, waited: float = 0.0, busy: float = 0.5
) -> Outcome:
    """Run a figure on a switch that carries 80 Mbit/s; policers delay by 1 ms, HTB by 20 ms.

    `busy`: the switch's share of a core at 50 Mbit/s and above.
    """

    def carry_alone(_carry: object, requests: list[tcp_port.TransferRequest]) -> list[tcp_port.TransferReply]:
        assert all(request.tapped for request in requests)
        replies = []
        for request in requests:
            delay_ms, rate_bps = 1.0, 0
            if isinstance(request.port, HtbPort):
                assert request.port.queues[0].limit_frames == (1000 if name == "fig4a" else 60)
                delay_ms, rate_bps = 20.0, request.port.queues[0].rate_bps
            elif isinstance(request.port, TrtcmPort):
                rate_bps = request.port.queues[0].cir_bps
            share = busy if rate_bps >= 50e6 else 0.1
            carried_bps = min(rate_bps, 80e6) / 0.9
            replies.append(reply(carried_bps, delay_ms=delay_ms, waited=waited, busy=share))
        return replies

    monkeypatch.setattr(real_time, "run_isolated", carry_alone)
    options = Options(mode="live", seed=1, out=folder, quick=True)
    return compute(live(name), options, NoProgress())[0]


def test_live_queues_are_those_that_the_switches_carry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datapaths, "missing_for_dpdk", lambda: None)
    outcome = carried_live("fig5a", tmp_path, monkeypatch)
    assert outcome.findings["carries_trtcm_mbps"] == pytest.approx(80, rel=0.05)
    assert outcome.findings["latency_htb_50_ms"] == pytest.approx(20)
    assert outcome.findings["latency_trtcm_50_ms"] == pytest.approx(1)
    assert "latency_trtcm_100_ms" not in outcome.findings
    assert sum("are left out" in note.text for note in outcome.notes) == 2
    assert sum("The datapath of Open vSwitch is in" in note.text for note in outcome.notes) == 1
    claims = judge(live("fig5a"), findings=outcome.findings)
    assert {claim.holds for claim in claims if "Mbit/s" in claim.claim} == {None}


def test_a_switch_that_waits_for_its_core_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datapaths, "missing_for_dpdk", lambda: None)
    remarks = [note.text for note in carried_live("fig6a", tmp_path, monkeypatch, waited=0.3).notes]
    assert any("disturbed" in remark and "in up to 30 % of one" in remark for remark in remarks)


def test_a_rate_at_which_the_switch_has_no_time_left_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datapaths, "missing_for_dpdk", lambda: None)
    outcome = carried_live("fig5a", tmp_path, monkeypatch, busy=0.97)
    assert "latency_htb_10_ms" in outcome.findings
    assert "latency_htb_50_ms" not in outcome.findings
    assert "latency_trtcm_50_ms" in outcome.findings, "a thread that polls is always busy"
    assert any(
        "HTB" in note.text and "at 50 Mbit/s the switch was busy 97 %" in note.text for note in outcome.notes
    )
    with pytest.raises(RunError, match="carries none of the rates"):
        carried_live("fig4a", tmp_path, monkeypatch, busy=0.97)


def test_without_dpdk_its_port_is_replayed_in_virtual_time_and_a_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datapaths, "missing_for_dpdk", lambda: "ovs-vswitchd-dpdk")
    outcome = carried_live("fig6b", tmp_path, monkeypatch)
    [remark] = [note.text for note in outcome.notes if "virtual" in note.text]
    assert remark.startswith("TRTCM is replayed in virtual time: Open vSwitch with DPDK is not here")
    assert "make dpdk" in remark
    assert "\n" not in remark
    assert outcome.table is not None
    assert {row[0] for row in outcome.table.rows} == {"HTB", "TRTCM, virtual time"}
    assert "carries_trtcm_mbps" not in outcome.findings
    assert outcome.findings["latency_trtcm_50_ms"] < 0.5, "the simulator's"
    assert outcome.findings["latency_htb_50_ms"] == pytest.approx(20)


def test_segments_are_joined_by_packet_so_that_one_sent_again_is_another() -> None:
    sent = Segments(np.array([10, 20, 30]), np.array([1 << 32 | 5, 2 << 32 | 6, 3 << 32 | 5]))
    received = Segments(np.array([31, 40, 50]), np.array([3 << 32 | 5, 2 << 32 | 6, 3 << 32 | 5]))
    assert join(sent, received).received_ns.tolist() == [LOST, 40, 31]
    nothing = Segments(np.array([], np.int64), np.array([], np.int64))
    assert join(sent, nothing).received_ns.tolist() == [LOST] * 3
    with pytest.raises(RunError, match="saw no full segment"):
        join(nothing, received)


def test_hosts_delay_every_frame_in_both_directions() -> None:
    document = figure("fig5a", [500], 0.4)
    took_ms = []
    for delay_us in (0, 107):
        delayed = document.model_copy(update={"host_delay_us": delay_us})
        task = transfer_task(delayed.ports[0], 500, delayed, "reno", seconds=0.4, seed=1)
        took_ms.append(virtual_transfer(task).latency_ms)
    assert took_ms[1] - took_ms[0] == pytest.approx(2 * 0.107, abs=0.002)
    assert took_ms[1] == pytest.approx(fact("slicing", "fig5/at-500").number, rel=0.05)
    assert document.host_delay_us == 107


def test_a_figure_may_have_another_bucket_than_the_port_s_file() -> None:
    htb, trtcm = figure("fig6a", [500], 1).ports
    other = {"bucket_bytes": 24_000}
    assert port_with(trtcm, 500_000_000).queues[0].cbs_bytes == 240_000
    assert port_with(trtcm.model_copy(update=other), 500_000_000).queues[0].cbs_bytes == 24_000
    assert port_with(htb.model_copy(update=other), 500_000_000).queues[0].burst_bytes == 24_000


def test_equation_1_gets_the_queues_rate_and_the_runs_utilisation() -> None:
    port = port_with(figure("fig4a", [500], 1).ports[0], 500_000_000)
    # 16 packets of 1514 bytes per group give 2580 groups per second; section VI's 19.22 ms are for 98 %.
    assert equation_1_ms(port, 500_000_000, 1518, 0.98 * 500e6) == pytest.approx(19.38, abs=0.01)
    assert equation_1_ms(port, 500_000_000, 1518, 500e6) is None
    policer = port_with(figure("fig6a", [500], 1).ports[1], 500_000_000)
    assert equation_1_ms(policer, 500_000_000, 1518, 1e6) is None


def test_what_does_not_fit_is_refused() -> None:
    document = figure("fig4a", [500], 1)
    with pytest.raises(RunError, match="port htb: "):
        port_with(document.ports[0], 2_000_000_000)
    plain = document.model_dump(by_alias=True)
    with pytest.raises(ValidationError, match="do not rise"):
        TransfersByPort.model_validate({**plain, "queue_rates_mbps": [200, 100]})
    with pytest.raises(ValidationError, match="live: give rates and seconds"):
        TransfersByPort.model_validate({**plain, "live": None})
    with pytest.raises(ValidationError, match="name them apart"):
        TransfersByPort.model_validate({**plain, "ports": plain["ports"] * 2})


def test_a_runner_of_labs_refuses_a_transfer() -> None:
    lab = load_lab("two-switch")
    flow = flow_of(0, "H1", "H3", rate_bps=244_800, burst_bytes=612, frame_bytes=306)
    routed = [RoutedFlow(flow, shortest_path(lab, "H1", "H3"))]
    with (
        VirtualRunner(lab, routed, entries=17) as runner,
        pytest.raises(RunError, match=r"--mode virtual cannot send a transfer over TCP"),
    ):
        runner.run([Sender.of(0, flow, Tcp())], seconds=0.1, seed=1)


def test_two_hosts_on_a_cable_use_it() -> None:
    lab = load_lab("slicing")
    flow = flow_of(3, "source", "destination", rate_bps=1, burst_bytes=1518, frame_bytes=1518)
    network = switch_emulator.Network(seed=1)
    for name in ("source", "destination"):
        network.add_host(name)
    network.connect("source", 1, "destination", 1)
    frame = segment_of(lab, flow)
    with pytest.raises(ValueError, match='congestion_control "bbr": give "cubic" or "reno"'):
        network.add_tcp("source", flow=3, frame=frame, destination="destination", congestion_control="bbr")  # type: ignore[arg-type]
    network.add_tcp("source", flow=3, frame=frame, destination="destination", congestion_control="reno")
    result = network.run(duration_ns=100_000_000)
    tcp = result.tcp[3]
    assert tcp.segment_bytes == 1448
    assert tcp.delivered_bytes == 1448 * result.flows[3]["received"] == 1448 * result.sequence.size
    assert tcp.delivered_bytes * 8 == pytest.approx(1448 / 1538 * 1e7, rel=0.02)
    assert tcp.timeouts == tcp.retransmitted_ns.size == 0
    assert tcp.window_segments.tolist() == [10]  # the line is slower than the initial window
    with pytest.raises(ValueError, match="advance"):
        network.advance(10**12)


CPU = CpuShares(switch=0.1, softirq=0.1, machine=1.0)


def interval(end_s: float, **values: int) -> dict[str, Any]:
    return {"streams": [{"end": end_s, **values}]}


def reports() -> tuple[dict[str, Any], dict[str, Any]]:
    sender = {
        "start": {"tcp_mss_default": 1000},
        "intervals": [interval(n, retransmits=n, snd_cwnd=1000 * n, rtt=500 * n) for n in (1, 2, 3, 4)],
    }
    receiver = {"intervals": [interval(n, bytes=125_000 * n) for n in (1, 2, 3, 4, 5)]}
    return sender, receiver


def test_the_first_quarter_and_what_comes_after_the_end_are_left_out() -> None:
    live = live_of(reply_of(*reports(), idle=CPU, busy=CPU, refused=0), 4)
    assert live.payload_bps == pytest.approx(1e6 * (2 + 3 + 4) / 3)
    assert live.retransmissions_pps == pytest.approx((2 + 3 + 4) / 3)
    assert live.window_packets == pytest.approx(3)
    assert live.round_trip_ms == pytest.approx(1.5)
    with pytest.raises(RunError, match="make seconds longer"):
        live_of(reply_of(*reports(), idle=CPU, busy=CPU, refused=0), 40)


def test_what_iperf3_complains_of_is_one_line() -> None:
    sender, receiver = reports()
    with pytest.raises(RunError, match=r"^iperf3: unable to connect$"):
        reply_of({"error": "unable to connect"}, receiver, idle=CPU, busy=CPU, refused=0)
    del sender["intervals"][0]["streams"][0]["rtt"]
    with pytest.raises(RunError, match=r"use iperf3 3\.9 or newer"):
        reply_of(sender, receiver, idle=CPU, busy=CPU, refused=0)


def test_what_the_switch_does_not_carry_is_not_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With 4 intervals of 1 to 4 Mbit/s, the switch carries 3 Mbit/s, however fast its queue."""
    document = experiments()["slicing/iperf3"]
    assert isinstance(document, TransfersBesideIperf3)
    figure = document.model_copy(
        update={
            "queue_rates_mbps": [1, 10],
            "congestion_controls": ["reno"],
            "quick": document.quick.model_copy(update={"seconds": 4}),
        }
    )
    asked = []

    def carry_alone(_carry: object, requests: list[tcp_port.TransferRequest]) -> list[tcp_port.TransferReply]:
        asked.extend(request.port.queues[0].rate_bps for request in requests)
        return [reply_of(*reports(), idle=CPU, busy=CPU, refused=0) for _ in requests]

    monkeypatch.setattr(beside_iperf3, "run_isolated", carry_alone)
    options = Options(mode="live", seed=1, out=tmp_path, quick=True)
    findings = compute(figure, options, NoProgress())[0].findings
    assert asked == [1_000_000_000, 1_000_000, 10_000_000]
    assert findings["switch_carries_mbps"] == pytest.approx(3)
    assert "virtual_to_iperf3_reno_1_percent" in findings
    assert "virtual_to_iperf3_reno_10_percent" not in findings
    (result,) = judge(
        figure.model_copy(
            update={"claims": [claim for claim in figure.claims if "10 Mbit/s" in claim.claim][:1]}
        ),
        findings=findings,
    )
    assert result.holds is None
    assert "it and not the queue limits the transfer" in result.because


@pytest.mark.parametrize(
    ("injection", "found"), [(InjectionMethod.KERNEL, 10.0), (InjectionMethod.TAP, None)]
)
def test_only_the_kernels_datapath_is_judged_by_what_the_paper_says_of_it(
    injection: InjectionMethod, found: float | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document = experiments()["slicing/cpu"]
    assert isinstance(document, TransfersBesideIperf3)
    figure = document.model_copy(update={"quick": document.quick.model_copy(update={"seconds": 4})})
    monkeypatch.setattr(beside_iperf3, "best_injection_method", lambda: injection)
    monkeypatch.setattr(beside_iperf3, "missing_for_dpdk", lambda: "a driver")
    replies = [reply_of(*reports(), idle=CPU, busy=CPU, refused=0)]
    monkeypatch.setattr(beside_iperf3, "run_isolated", lambda _carry, requests: replies * len(requests))
    outcome, _ = compute(figure, Options(mode="live", seed=1, out=tmp_path, quick=True), NoProgress())
    assert outcome.findings.get("kernel_datapath_cpu_percent") == found
    assert [note.text for note in outcome.notes] == [injection.remark]
    (claim,) = [claim for claim in judge(figure, findings=outcome.findings) if "below" in claim.paper]
    assert claim.holds is (None if found is None else False)


def test_rates_and_controls_are_named_once() -> None:
    document = experiments()["slicing/iperf3"]
    plain = document.model_dump(by_alias=True)
    with pytest.raises(ValidationError, match="do not rise"):
        TransfersBesideIperf3.model_validate({**plain, "queue_rates_mbps": [20, 10]})
    with pytest.raises(ValidationError, match="named twice"):
        TransfersBesideIperf3.model_validate({**plain, "congestion_controls": ["reno", "reno"]})


@pytest.mark.parametrize("kind", ["htb", "pfifo"])
def test_a_missing_discipline_is_one_line_and_nothing_stays(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = []

    def run(arguments: list[str], *, what: str, prefix: object = ()) -> str:
        if arguments[:3] == ["tc", "qdisc", "replace"] and kind in arguments:
            raise RunError(f"{what}: 'tc' failed: Error: Specified qdisc kind is unknown.")
        return ""

    def remove(command: list[str], **_options: object) -> None:
        deleted.append(command[1:])

    for module in (htb_port, traffic_control):
        monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr("subprocess.run", remove)
    monkeypatch.setattr(htb_port, "require", lambda program: program)
    port = load_slices("iperf3")
    assert isinstance(port, HtbPort)
    with pytest.raises(RunError) as refused:
        htb_port.slice_port(port)
    assert f"no queueing discipline '{kind}' (module sch_{kind})" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert deleted == [["qdisc", "del", "dev", "s1-port2", "root"]]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"root_rate_bps": 50_000_000}, "may send 100000000 bit/s, its port only 50000000"),
        ({"root_rate_bps": 2_000_000_000}, "is above the link's"),
    ],
)
def test_a_queue_above_its_parent_is_refused_before_anything_is_built(
    changed: dict[str, int], says: str
) -> None:
    plain = load_slices("iperf3").model_dump()
    with pytest.raises(ValidationError, match=says):
        HtbPort.model_validate({**plain, **changed})


def test_rates_that_do_not_add_up_are_refused() -> None:
    plain = load_slices("two").model_dump()
    plain["root_rate_bps"] = 510_000_000
    with pytest.raises(ValidationError, match="assured 520000000 bit/s together, their port has 510000000"):
        HtbPort.model_validate(plain)
