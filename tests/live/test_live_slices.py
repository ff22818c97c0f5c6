"""A sliced port in real time: each class keeps its rate, and nothing is left behind."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import cast

import numpy as np
import psutil
import pytest
from live_harness import needs_namespaces
from measured_slices import measured_rows

from loko.slicing.document import HtbPort, TrtcmPort, load_slices
from loko_testbed.instruments.programs import locate, run
from loko_testbed.live.datapaths import LEAST_NICE, missing_for_dpdk
from loko_testbed.live.departure_times import departures
from loko_testbed.live.isolated_request import run_isolated
from loko_testbed.live.one_board import Namespace
from loko_testbed.live.openvswitch import SCHEMA, OpenVSwitch, prefer
from loko_testbed.measure.slices import htb_port, measurements, tcp_port
from loko_testbed.measure.slices.injection import InjectionMethod
from loko_testbed.measure.slices.judgement import SliceVerdict
from loko_testbed.measure.slices.policed_port import Policer
from loko_testbed.measure.slices.port import SENDERS, transmit_live
from loko_testbed.measure.slices.release import Release
from loko_testbed.reproduce.figure_types.transfers.document import SlicedPort
from loko_testbed.reproduce.figure_types.transfers.transfers import port_with
from loko_testbed.simulation.runner import LOST, RunError

pytestmark = [
    pytest.mark.live,
    needs_namespaces,
    pytest.mark.skipif(not SCHEMA.is_file(), reason="Open vSwitch is not installed"),
]

needs_dpdk = pytest.mark.skipif(
    missing_for_dpdk() is not None, reason="needs Open vSwitch with DPDK: make dpdk"
)
BURST = 60
PAUSE_NS = 40_000_000


def release(bursts: int) -> Release:
    instants = np.repeat(np.arange(1, bursts + 1) * PAUSE_NS, BURST)
    return Release(queue=0, host=SENDERS[0], frame_bytes=1518, instants_ns=instants)


def names() -> set[str]:
    """Return the network interfaces of this machine, or of the test's own."""
    return {name for _, name in socket.if_nameindex()}


def test_a_class_keeps_its_rate_and_nothing_stays_behind() -> None:
    port = load_slices("htb")
    assert isinstance(port, HtbPort)
    before = names()
    carried, share = transmit_live(port, {0: release(10)})
    sent = carried[0]
    assert (sent.received_ns > sent.sent_ns).all()
    queue = port.queues[0]
    for received in np.split(sent.received_ns, 10):
        assert (np.diff(received) > 0).all()
        # A token bucket passes at most its burst plus its rate times the span, except for one frame on
        # credit.
        span_ns = int(received[-1] - received[0])
        allowed = queue.burst_bytes + 1514 + queue.rate_bps * span_ns / 8e9 + 1
        assert allowed >= (BURST - 1) * 1514
    assert 0 < share < 2
    assert names() == before
    assert not [
        process for process in psutil.process_iter() if process.name() == "ovs-vswitchd" and _ours(process)
    ]


def test_the_bench_finds_what_was_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "TURNS", 1)
    monkeypatch.setattr(measurements, "FRAMES_BYTES", (1518,))
    before = names()
    rows = {row.what: row for row in measured_rows("open-vswitch", tmp_path, seed=1)}
    assert rows["rate"].verdict is SliceVerdict.AS_CONFIGURED
    assert rows["group"].verdict is not SliceVerdict.NOT_MEASURED
    if locate("iperf3") is not None:
        # A busy machine carries less, and the bench says so.
        assert rows["TCP payload"].verdict in {SliceVerdict.AS_CONFIGURED, SliceVerdict.FOLLOWS}
    assert names() == before


@pytest.mark.parametrize("injection", [InjectionMethod.TAP, InjectionMethod.SOCKET])
def test_what_waits_in_a_queue_is_limited_by_the_queue_unless_a_socket_has_less_room(
    injection: InjectionMethod,
) -> None:
    """A burst leaves as much as its queue holds, or some 90 frames if a socket's buffer holds them."""
    port = load_slices("htb")
    assert isinstance(port, HtbPort)
    changes = {"rate_bps": 10_000_000, "burst_bytes": 3_036, "limit_frames": 400, "flow": None}
    port = HtbPort.model_validate(port.model_dump() | {"queues": [port.queues[0].model_dump() | changes]})
    # So slowly that a busy machine loses none before the queue, which sends a tenth of it meanwhile.
    burst = Release(
        queue=0, host=SENDERS[0], frame_bytes=1518, instants_ns=10_000_000 + 100_000 * np.arange(500)
    )
    carried, _ = transmit_live(port, {0: burst}, injection=injection)
    sent_ns, received_ns = carried[0].sent_ns, carried[0].received_ns
    came_ns = received_ns[received_ns != LOST]
    # How many leave while the burst comes depends on the kernel's timers: 43 if none is late.
    waiting = int((came_ns > sent_ns.max()).sum())
    if injection is InjectionMethod.TAP:
        assert 399 <= waiting <= 401
    else:
        assert 60 <= waiting <= 130


def test_a_slice_keeps_what_it_is_assured_beside_another_that_borrows() -> None:
    """Both want more than the port carries: the first gets at least its rate, and together they fill it."""
    port = load_slices("borrowing")
    assert isinstance(port, HtbPort)
    before = names()
    wanted = (1.5 * port.queues[0].rate_bps, float(port.link_rate_bps))
    releases = {
        number: Release(
            queue=number, host=host, frame_bytes=1518, instants_ns=np.arange(0, 500e6, 1514 * 8e9 / bps)
        )
        for number, (host, bps) in enumerate(zip(SENDERS, wanted, strict=True))
    }
    carried, _ = transmit_live(port, releases)
    came = {number: measurements.steady(sent) for number, sent in carried.items()}
    rates_bps = {number: 1514 * 8e9 * count / span_ns for number, (count, span_ns, *_) in came.items()}
    assert rates_bps[0] > 0.9 * port.queues[0].rate_bps
    assert rates_bps[1] > port.queues[1].rate_bps, "it borrows what the first leaves"
    assert sum(rates_bps.values()) < 1.02 * port.link_rate_bps
    assert names() == before


@needs_dpdk
@pytest.mark.parametrize(("policer", "name"), [(Policer.TRTCM, "dpdk"), (Policer.EGRESS, "policer")])
def test_a_policer_of_dpdk_lets_no_more_through_than_its_bucket(policer: Policer, name: str) -> None:
    """Less may come through, as the machine may have other work and the rings are short."""
    port = load_slices(name)
    assert isinstance(port, TrtcmPort)
    before = names()
    for number, queue in enumerate(port.queues):
        pps = 2 * (queue.cir_bps + queue.eir_bps) / 8 / 1500
        instants_ns = (np.arange(1, 1000) * 1e9 / pps).astype(np.int64)
        sends = Release(queue=number, host=SENDERS[0], frame_bytes=1518, instants_ns=instants_ns)
        carried, share = transmit_live(port, {0: sends}, policer=policer)
        sent = carried[0]
        came_ns = sent.received_ns[sent.received_ns != LOST]
        assert came_ns.size
        # The switch saw each frame between these two time stamps.
        span_s = (int(came_ns.max()) - int(sent.sent_ns[0])) / 1e9
        allowed = queue.cbs_bytes + queue.ebs_bytes + (queue.cir_bps + queue.eir_bps) * span_s / 8
        assert came_ns.size * 1500 <= allowed + 1
        assert came_ns.size < len(instants_ns), "half of it is above the rates"
        assert share > 0
    assert names() == before
    assert not [
        process
        for process in psutil.process_iter()
        if process.name().startswith("ovs-vswitchd") and _ours(process)
    ]


def test_a_thread_that_polls_is_preferred_also_to_other_sessions() -> None:
    class Switch:
        def __init__(self, pid: int) -> None:
            self.pid = self.forwarding_thread = pid

    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        try:
            prefer(cast(OpenVSwitch, Switch(process.pid)))
            assert os.getpriority(os.PRIO_PROCESS, process.pid) == LEAST_NICE
            session = Path(f"/proc/{process.pid}/autogroup")
            if session.exists():
                assert session.read_text().endswith(f" nice {LEAST_NICE}\n")
        finally:
            process.kill()


@needs_dpdk
def test_each_of_two_policers_gives_its_rate_beside_the_other() -> None:
    """The second queue has a higher rate than the first, so the first queue's meter cannot limit both.

    The first queue is sent a full link's traffic, which leaves the sender no time to read its taps.
    """
    port = load_slices("dpdk")
    assert isinstance(port, TrtcmPort)
    first, second = port.queues
    duration_ns = 3e9
    releases = {
        number: Release(
            queue=number,
            host=host,
            frame_bytes=1518,
            instants_ns=np.arange(1e6, duration_ns, gap_ns).astype(np.int64),
        )
        for number, (host, gap_ns) in enumerate(zip(SENDERS, (25_000, 200_000), strict=True))
    }
    carried, _ = transmit_live(port, releases)
    for number, queue in enumerate((first, second)):
        received_ns = carried[number].received_ns
        came = int((received_ns != LOST).sum())
        most_bps = queue.cir_bps + queue.eir_bps
        buckets = queue.cbs_bytes + queue.ebs_bytes
        span_s = (int(received_ns.max()) - int(carried[number].sent_ns[0])) / 1e9
        assert 0.8 * queue.cir_bps * duration_ns / 8e9 < came * 1500 <= buckets + most_bps / 8 * span_s + 1


@needs_dpdk
def test_the_bench_measures_both_policers_of_a_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "TURNS", 1)
    monkeypatch.setattr(measurements, "FRAMES_BYTES", (1518,))
    before = names()
    rows = measured_rows("open-vswitch-dpdk", tmp_path, seed=1)
    assert {row.slice for row in rows} == {"control", "rest"}
    assert {row.what for row in rows if row.verdict is not SliceVerdict.NOT_MEASURED} >= {"burst", "latency"}
    assert names() == before


def test_what_the_kernel_refuses_is_one_line() -> None:
    port = load_slices("htb")
    assert isinstance(port, HtbPort)
    queue = port.queues[0].model_copy(update={"rate_bps": 8_000, "burst_bytes": 10**9})
    with pytest.raises(RunError) as refused:
        transmit_live(port.model_copy(update={"queues": [queue]}), {0: release(1)})
    assert "htb on the port" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.namespaces
def test_a_discipline_that_the_kernel_lacks_is_one_line_and_nothing_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = load_slices("htb")
    assert isinstance(port, HtbPort)
    with Namespace([("destination", "s1-port2")]) as namespace, namespace.entered():
        missing = next((kind for kind in LEAVES if is_missing(kind)), None)
        if missing is None:
            pytest.skip("this kernel has every discipline that could hold a class's frames")
        monkeypatch.setattr(htb_port, "_LEAF", missing)
        with pytest.raises(RunError) as refused:
            htb_port.slice_port(port)
        left = run(["tc", "qdisc", "show", "dev", "s1-port2"], what="what is left")
    assert f"no queueing discipline '{missing}' (module sch_{missing})" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "htb" not in left


@pytest.mark.namespaces
def test_departure_times_without_fq_are_one_line(tmp_path: Path) -> None:
    with Namespace([("destination", "s1-port2")]) as namespace, namespace.entered():
        if not is_missing("fq"):
            pytest.skip("this kernel has fq")
        times = departures("s1-port2", tmp_path / "bpf", rate_bps=10**7, burst_bytes=3000, after_ns=10**6)
        with pytest.raises(RunError, match=r"no queueing discipline 'fq' \(module sch_fq\): load it"), times:
            raise AssertionError("there are no departure times")
    assert not (tmp_path / "bpf").exists()


LEAVES = ("fq", "codel", "pie", "choke", "sfq", "netem")
"""Queueing disciplines that have a limit and that tc knows."""


def is_missing(kind: str) -> bool:
    """Return whether this kernel lacks the discipline; else it is now in use until the port replaces it."""
    add = ["tc", "qdisc", "replace", "dev", "s1-port2", "root", kind, "limit", "9"]
    done = subprocess.run(add, capture_output=True, text=True, check=False)
    return "qdisc kind is unknown" in done.stderr


@pytest.mark.namespaces
@pytest.mark.waits
@pytest.mark.usefixtures("apart")
@pytest.mark.skipif(locate("iperf3") is None, reason="iperf3 is not installed")
def test_transfers_of_iperf3_keep_the_queues_rate_one_after_the_other() -> None:
    port = load_slices("iperf3")
    assert isinstance(port, HtbPort)
    queue = port.queues[0].model_copy(update={"rate_bps": 10_000_000})
    slow = port.model_copy(update={"queues": [queue]})
    before = names()
    requests = [
        tcp_port.TransferRequest(port=slow, congestion_control=control, seconds=1)
        for control in ("reno", "cubic")
    ]
    for reply in run_isolated(tcp_port.transmit_all, requests):
        received_bps = reply.received_bytes.sum() * 8 / reply.received_end_s[-1]
        assert 0 < received_bps < 10_000_000 * 1.05 + 8 * queue.burst_bytes
        assert reply.segment_bytes == 1448
        assert (reply.window_bytes > 0).all()
        assert 0 < reply.busy.switch <= reply.busy.machine + 0.1
    assert names() == before


@pytest.mark.skipif(locate("iperf3") is None, reason="iperf3 is not installed")
@pytest.mark.parametrize(
    "name",
    ["iperf3", pytest.param("trtcm", marks=needs_dpdk)],
)
def test_taps_note_the_segments_of_a_transfer(name: str) -> None:
    sliced = SlicedPort(
        name="port", label="", slices=name, device="open-vswitch-1g", link_rate_bps=1_000_000_000
    )
    request = tcp_port.TransferRequest(
        port=port_with(sliced, 20_000_000), congestion_control="cubic", seconds=2, tapped=True
    )
    before = names()
    (reply,) = run_isolated(tcp_port.transmit_all, [request])
    sent = reply.segments
    assert sent is not None
    came = sent.received_ns != LOST
    assert 1448 * int(came.sum()) == pytest.approx(reply.received_bytes.sum(), rel=0.05)
    assert (sent.received_ns[came] > sent.sent_ns[came]).all()
    # The last segments may still be in flight. Segments that iperf3 retransmits were lost, or assumed to be.
    assert int((~came).sum()) <= reply.retransmissions.sum() + 60
    assert names() == before


@needs_dpdk
@pytest.mark.skipif(locate("iperf3") is None, reason="iperf3 is not installed")
def test_tcp_gets_next_to_nothing_of_a_policer_whose_bucket_holds_one_packet() -> None:
    port = load_slices("policer")
    assert isinstance(port, TrtcmPort)
    request = tcp_port.TransferRequest(
        port=port, congestion_control="cubic", seconds=2, policer=Policer.EGRESS
    )
    before = names()
    (reply,) = run_isolated(tcp_port.transmit_all, [request])
    received_bps = reply.received_bytes.sum() * 8 / reply.received_end_s[-1]
    assert 0 < received_bps < port.queues[0].cir_bps / 20
    assert reply.retransmissions.sum() > 0
    assert names() == before


def test_a_missing_iperf3_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_arguments, **_options: None)
    with pytest.raises(RunError, match=r"^the program 'iperf3' is missing: .*'apt-get install iperf3'$"):
        tcp_port.transmit_all([], Path("/nonexistent"))


def _ours(process: psutil.Process) -> bool:
    try:
        return any("/dev/shm" in word for word in process.cmdline())
    except psutil.Error:
        return False
