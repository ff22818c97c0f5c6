"""Open vSwitch instead of the boards: how many frames pass, how fast, and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from live_harness import Machine, admitted, descendants, left, named, needs_namespaces, wait_until

from loko.switch_model.device import load_profile
from loko.switch_model.scenario import EVALUATION
from loko.switch_model.service_curve import service_curve
from loko.topology.lab import Backend
from loko_testbed.live import mininet_link, stand_in, timed_stand_in
from loko_testbed.live.one_board import (
    BenchmarkController,
    BenchmarkTap,
    Namespace,
    add_flow,
    sequence_of,
    udp_frame,
)
from loko_testbed.live.openvswitch import OpenVSwitch
from loko_testbed.live.runner import LiveRunner
from loko_testbed.reproduce.studies.fidelity_bench import expected
from loko_testbed.simulation.runner import LOST, RunError

pytestmark = [pytest.mark.live, pytest.mark.namespaces, needs_namespaces]
waits = pytest.mark.waits

PROFILE = load_profile("zodiac-fx")
QUEUE = stand_in.SharedQueue.of(PROFILE, EVALUATION)
RATE_BPS = service_curve(PROFILE, EVALUATION).rate_bps
PORTS = {1: "s1-eth1", 2: "s1-eth2"}
FRAME_BYTES = 306


@contextmanager
def switch(backend: Backend, folder: Path):
    """A switch that sends everything from port 1 to port 2; yields the taps at both, and its links."""
    with (
        Namespace([("h1", "s1-eth1"), ("h2", "s1-eth2")]) as namespace,
        BenchmarkController(namespace) as controller,
    ):
        with namespace.entered():
            ports = stand_in.build("s1", PORTS, QUEUE) if backend is Backend.OVS else PORTS
            ovs = OpenVSwitch(folder / "ovs")
        try:
            with namespace.entered():
                address = f"127.0.0.1:{controller.port}"
                ovs.add_switch("s1", datapath_id=0x70B3D56C0001, ports=ports, controller=address)
                links = []
                if backend is Backend.MININET_LINK:
                    wanted = mininet_link.LinkLimit.of(PROFILE, EVALUATION)
                    links = [mininet_link.limit(interface, wanted) for interface in PORTS.values()]
            features = controller.handshake()
            assert struct.unpack_from("!Q", features, 8)[0] == 0x70B3D56C0001
            controller.write(add_flow(2, udp_port=5000))
            controller.confirm()
            with BenchmarkTap(namespace, "h1") as sender, BenchmarkTap(namespace, "h2") as receiver:
                yield sender, receiver, links
        finally:
            ovs.close()


def burst(sender: BenchmarkTap, receiver: BenchmarkTap, first: int, count: int) -> tuple[list[int], float]:
    """Send frames as fast as possible; return the numbers of those that pass, and the time to send in s."""
    frames = [udp_frame(number) for number in range(first, first + count)]
    begin = time.monotonic()
    for frame in frames:
        sender.send(frame)
    took_s = time.monotonic() - begin
    passed = receiver.seen(outgoing=False, count=count, timeout_s=0.1)
    return [sequence_of(frame.data) for frame in passed], took_s


def test_of_a_burst_as_many_frames_pass_as_the_queue_has_places_and_one_more(tmp_path):
    """More pass only if the sender was interrupted. Of many bursts, at least one is undisturbed."""
    places = QUEUE.places + 1
    surplus = []
    with switch(Backend.OVS, tmp_path) as (sender, receiver, _):
        for first in range(0, 100 * 100, 100):
            passed, took_s = burst(sender, receiver, first, 32)
            assert passed[:places] == list(range(first, first + places)), "the first ones pass"
            assert passed == sorted(passed)
            left_meanwhile = int(took_s * RATE_BPS / (8 * FRAME_BYTES))
            surplus.append(len(passed) - places - left_meanwhile)
            if surplus[-1] <= 0 and len(passed) < 32:
                return
    pytest.fail(f"so many more than the queue's places passed: {surplus}")


def test_a_limited_link_lets_a_whole_burst_pass(tmp_path):
    with switch(Backend.MININET_LINK, tmp_path) as (sender, receiver, links):
        assert [link.interface for link in links] == list(PORTS.values())
        if all(link.queue_frames is None for link in links):  # the kernel lacks netem
            assert len(burst(sender, receiver, 0, 32)[0]) == 32


@contextmanager
def timed_switch(folder: Path):
    """The timed stand-in between two interfaces, without a core; yields taps there and at the switch."""
    device = timed_stand_in.DelayTerms.of(PROFILE, EVALUATION)
    held = timed_stand_in.HeldSwitch(name="s1", ports=PORTS, device=device)
    with ExitStack() as stack:
        namespace = stack.enter_context(Namespace([("h1", "s1-eth1"), ("h2", "s1-eth2")]))
        controller = stack.enter_context(BenchmarkController(namespace))
        with namespace.entered():
            holder = timed_stand_in.HoldProgram([held], folder / "holder", cpu=None)
            stack.callback(holder.close)
            ovs = OpenVSwitch(folder / "ovs")
            stack.callback(ovs.close)
            address = f"127.0.0.1:{controller.port}"
            ovs.add_switch("s1", datapath_id=1, ports=timed_stand_in.inner(held), controller=address)
        controller.handshake()
        controller.write(add_flow(2, udp_port=5000))
        controller.confirm()
        taps = [stack.enter_context(BenchmarkTap(namespace, name)) for name in ("h1", "h2", "s1-eth1")]
        yield *taps, holder


def test_no_frame_leaves_the_timed_stand_in_before_the_board_would_send_it(tmp_path):
    """How much later a frame leaves depends on the machine: `studies/fidelity` measures it."""
    ahead_ns = 30_000  # the maximum that the program allows for the path through the kernel
    device = expected.ExpectedDevice.of(PROFILE, next(EVALUATION.cases()))
    with timed_switch(tmp_path) as (sender, receiver, port, holder):
        for number in range(40):
            sender.send(udp_frame(number))
            time.sleep(0.002)
        departed = {sequence_of(f.data): f.at_ns for f in receiver.seen(outgoing=False, count=40)}
        arrived = {sequence_of(f.data): f.at_ns for f in port.seen(outgoing=False, count=40)}
        assert set(departed) == set(arrived) == set(range(40))
        due = device.departures_ns([arrived[number] for number in range(40)])
        assert all(departed[number] > due[number] - ahead_ns for number in range(40))
        counters = holder.reports.latest().counters["s1"]
    assert (counters["received"], counters["forwarded"], counters["dropped_buffer"]) == (40, 40, 0)


def test_of_a_burst_as_many_frames_pass_the_timed_stand_in_as_the_ring_holds(tmp_path):
    device = expected.ExpectedDevice.of(PROFILE, next(EVALUATION.cases()))
    with timed_switch(tmp_path) as (sender, receiver, port, holder):
        for first in range(0, 500, 100):
            passed, _ = burst(sender, receiver, first, 32)
            arrived = [frame.at_ns for frame in port.seen(outgoing=False, count=32)]
            due = device.departures_ns(arrived)
            assert passed == [first + place for place, at in enumerate(due) if at is not None]
        assert holder.reports.latest().counters["s1"]["dropped_buffer"] > 0


@pytest.mark.parametrize("backend", [Backend.OVS, Backend.MININET_LINK])
def test_the_long_run_rate_is_the_model_s(backend, tmp_path):
    """The best of several attempts counts: on a busy machine the queue may run empty."""
    with switch(backend, tmp_path) as (sender, receiver, _):
        errors = []
        for _ in range(10):
            errors.append(abs(overload_rate_bps(sender, receiver) / RATE_BPS - 1))
            if errors[-1] < 0.03:
                return
    pytest.fail(f"rates differ from C by {errors}")


def overload_rate_bps(sender: BenchmarkTap, receiver: BenchmarkTap) -> float:
    """Return the highest rate of any 400 consecutive frames while far more is sent than can pass."""
    window, sent = 400, 0
    end = time.monotonic() + 1
    while time.monotonic() < end:
        for _ in range(16):
            sender.send(udp_frame(sent))
            sent += 1
        time.sleep(0.0005)
    stamps = [frame.at_ns for frame in receiver.seen(outgoing=False, count=sent, timeout_s=0.2)]
    shortest = min(later - earlier for earlier, later in zip(stamps, stamps[window:], strict=False))
    return window * FRAME_BYTES * 8e9 / shortest


SETTING, TRAFFIC = admitted()


@pytest.fixture
def machine():
    before = Machine.now()
    yield before
    wait_until(lambda: Machine.now() == before, f"the machine is as before: {before} but {Machine.now()}")


@waits
@pytest.mark.parametrize("backend", [Backend.OVS, Backend.MININET_LINK])
def test_the_lab_carries_traffic_without_boards(backend, relaxed, machine):
    before = descendants(os.getpid())
    with LiveRunner(SETTING.lab, SETTING.admitted(), backend=backend, cores=relaxed) as runner:
        tree = [process for process in descendants(os.getpid()) if process not in before]
        names = {name for name, _ in named(os.getpid())}
        assert {"ovsdb-server", "ovs-vswitchd"} <= names
        assert "zodiac-fx" not in names
        status = runner.status()
        assert (status.connected, status.switches) == (2, 2)
        assert all(counters["received"] == 0 for counters in status.counters.values()), "a stray frame"
        records = runner.run(TRAFFIC, seconds=1, seed=1)
    assert not left(tree)
    assert set(records.flow.tolist()) == {flow.flow for flow in TRAFFIC if flow.observed}
    arrived = records.received_ns != LOST
    assert arrived.sum() > 0.5 * len(records)
    assert records.host.stalls == ()
    for counters in records.boards.values():
        assert 0 < counters["forwarded"] <= counters["received"]


@waits
def test_the_lab_runs_with_timed_stand_ins(relaxed, machine):
    with LiveRunner(SETTING.lab, SETTING.admitted(), backend=Backend.OVS_TIMED, cores=relaxed) as runner:
        assert {"zodiac-fx", "ovs-vswitchd"} <= {name for name, _ in named(os.getpid())}
        status = runner.status()
        assert (status.connected, status.switches) == (2, 2)
        records = runner.run(TRAFFIC, seconds=1, seed=1)
    assert (records.received_ns != LOST).sum() > 0.5 * len(records)
    for counters in records.boards.values():
        assert 0 < counters["forwarded"] <= counters["received"]


@waits
def test_boards_and_timed_stand_ins_are_refused_together(relaxed, tmp_path):
    text = SETTING.lab.path.read_text().replace(
        "    profile: zodiac-fx\n", "    profile: zodiac-fx\n    backend: ovs-timed\n", 1
    )
    (tmp_path / "lab.yml").write_text(text)
    lab = replace(SETTING.lab, path=tmp_path / "lab.yml")
    with pytest.raises(RunError, match="both want a core to themselves"):
        LiveRunner(lab, SETTING.admitted(), cores=relaxed).__enter__()


@waits
def test_one_lab_may_have_boards_and_stand_ins(relaxed, machine, tmp_path):
    text = SETTING.lab.path.read_text().replace(
        "    profile: zodiac-fx\n", "    profile: zodiac-fx\n    BACKEND\n"
    )
    (tmp_path / "lab.yml").write_text(
        text.replace("BACKEND", "backend: ovs", 1).replace("BACKEND", "backend: firmware", 1)
    )
    lab = replace(SETTING.lab, path=tmp_path / "lab.yml")
    with LiveRunner(lab, SETTING.admitted(), cores=relaxed) as runner:
        assert {"zodiac-fx", "ovs-vswitchd"} <= {name for name, _ in named(os.getpid())}
        assert runner.status().connected == 2
        records = runner.run(TRAFFIC, seconds=1, seed=1)
    assert (records.received_ns != LOST).any()


RUN_FOR_EVER = """
import sys
sys.path[:0] = {path!r}
from live_harness import admitted
from loko_testbed.live.runner import LiveRunner
from loko.topology.lab import Backend
setting, traffic = admitted()
with LiveRunner(setting.lab, setting.admitted(), backend=Backend.OVS) as runner:
    print("up", flush=True)
    runner.run(traffic, seconds=100, seed=1)
"""


@waits
def test_nothing_is_left_when_the_evaluation_is_killed(apart, machine):
    script = RUN_FOR_EVER.format(path=[*sys.path, str(Path(__file__).parent)])
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout.readline() == "up\n"
            tree = descendants(process.pid)
            assert {"ovsdb-server", "ovs-vswitchd"} <= {name for name, _ in named(process.pid)}
        finally:
            process.send_signal(signal.SIGKILL)
    wait_until(lambda: not left(tree), f"all of {len(tree)} processes have ended")


@waits
def test_a_switch_daemon_that_dies_is_told(relaxed):
    with LiveRunner(SETTING.lab, SETTING.admitted(), backend=Backend.OVS, cores=relaxed) as runner:
        [daemon] = [process for name, process in named(os.getpid()) if name == "ovs-vswitchd"]
        daemon.kill()
        with pytest.raises(RunError, match=r"Open vSwitch ended \(exit status -9\)"):
            runner.run(TRAFFIC, seconds=0.1, seed=1)


@waits
def test_a_coarse_switch_without_flows_has_no_rate(relaxed):
    with pytest.raises(RunError, match=r"s1: backend ovs takes its rate from the frames that pass: give the"):
        LiveRunner(SETTING.lab, (), backend=Backend.OVS, cores=relaxed).__enter__()
