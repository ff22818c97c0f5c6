"""Figures of transfers over TCP: what is measured of them, and what equation 1 says beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import switch_emulator
from pydantic import ValidationError

from evaluation.kinds.experiments import experiments
from evaluation.kinds.slice_transfers.document import SliceTransfers
from evaluation.kinds.slice_transfers.production import compute, equation_1_ms, measured, port_with
from evaluation.kinds.slices.port import Transferred
from evaluation.kinds.slices.release import Sent
from evaluation.options import Options, Silent
from evaluation.outcome import Outcome
from evaluation.runner import LOST, RunError
from evaluation.traffic import Sender, Tcp, flow_of
from evaluation.virtual import VirtualRunner
from loko.frame import segment_of
from loko.lab import load_lab
from loko.network import RoutedFlow, shortest_path


def figure(name: str, rates_mbps: list[int], seconds: float) -> SliceTransfers:
    document = experiments()[f"slicing/{name}"]
    assert isinstance(document, SliceTransfers)
    quick = document.quick.model_copy(update={"seconds": seconds})
    return document.model_copy(update={"queue_rates_mbps": rates_mbps, "quick": quick})


def replay(document: SliceTransfers, folder: Path) -> Outcome:
    return compute(document, Options(mode="virtual", seed=1, out=folder, quick=True), Silent())[0]


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
    transferred = Transferred(
        segments=Sent(
            np.array([0, 300_000_000, 500_000_000, 900_000_000]),
            np.array([90_000_000, LOST, 502_000_000, 904_000_000]),
        ),
        retransmitted_ns=np.array([0, 900_000_000]),
        window_at_ns=np.array([0, 100_000_000, 625_000_000]),
        window_segments=np.array([10, 20, 40], dtype=np.uint64),
        delivered_bytes=2 * 1448,
        timeouts=1,
    )
    transfer = measured(transferred, 1518, 1_000_000_000)
    assert transfer.latency_ms == pytest.approx(3)
    assert transfer.latency_max_ms == pytest.approx(4)
    assert transfer.payload_bps == pytest.approx(2 * 1448 * 8 / 0.75)
    assert transfer.retransmissions_pps == pytest.approx(1 / 0.75)
    assert transfer.window_packets == pytest.approx(30)
    with pytest.raises(RunError, match="make seconds longer"):
        measured(transferred, 1518, 4_000_000_000)


def test_equation_1_gets_the_queues_rate_and_the_runs_utilisation() -> None:
    port = port_with(figure("fig4a", [500], 1).ports[0], 500_000_000)
    # 16 packets of 1514 bytes a group: 2580 groups a second; section VI's 19.22 ms belong to 98 %.
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
        SliceTransfers.model_validate({**plain, "queue_rates_mbps": [200, 100]})
    with pytest.raises(ValidationError, match="name them apart"):
        SliceTransfers.model_validate({**plain, "ports": plain["ports"] * 2})


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
    assert tcp.window_segments.tolist() == [10]  # the line is slower than the first window
    with pytest.raises(ValueError, match="advance"):
        network.advance(10**12)
