"""The bench in real time: wiring and its self-test, a board and a software switch as devices under test."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from live_harness import Machine, descendants, left, needs_root, wait_until

from evaluation.bench import buffer, control_plane, data_plane, integrated_switch
from evaluation.bench.cases import Table
from evaluation.bench.control_messages import flow_search, messages
from evaluation.bench.inventory import Controller, Hardware, Port
from evaluation.bench.live.open_device import open_bench, open_device
from evaluation.bench.live.own_network import own_network
from evaluation.bench.live.self_test import self_test
from evaluation.live.background import state_folder
from evaluation.live.openvswitch import SCHEMA, OpenVSwitch
from evaluation.live.programs import emulator
from evaluation.runner import RunError
from loko.scenario import Action, Match

pytestmark = [pytest.mark.namespaces, needs_root, pytest.mark.xdist_group("live")]

needs_openvswitch = pytest.mark.skipif(not SCHEMA.is_file(), reason="Open vSwitch is not installed")
needs_emulator = pytest.mark.skipif(not emulator().is_file(), reason="the emulator is not built")

DATAPATH_ID = 0x2A
CABLES = [("b1", "s1-eth1"), ("b2", "s1-eth2"), ("b3", "s1-eth3")]


@pytest.fixture(autouse=True)
def machine():
    """Everything outside is afterwards as it was before."""
    before = Machine.now()
    yield
    wait_until(lambda: Machine.now() == before, f"the machine is as before: {before} but {Machine.now()}")


@contextmanager
def switch_in_a_network(controller="127.0.0.1:6653"):
    """A switch as if it were hardware: ports 1 to 3 end in the interfaces b1 to b3."""
    folder = Path(tempfile.mkdtemp(prefix="ovs-"))
    try:
        with own_network(CABLES):
            switch = OpenVSwitch(folder)
            try:
                ports = {number: far for number, (_, far) in enumerate(CABLES, 1)}
                switch.add_switch("s1", datapath_id=DATAPATH_ID, ports=ports, controller=controller)
                yield
            finally:
                switch.close()
    finally:
        shutil.rmtree(folder)


def inventory(first="b1", second="b2", *, taps=(None, None), datapath_id=None, listen="127.0.0.1:6653"):
    return Hardware(
        kind="hardware",
        name="dut",
        ports={1: Port(interface=first, tap=taps[0]), 2: Port(interface=second, tap=taps[1])},
        controller=Controller(interface="lo", listen=listen),
        datapath_id=datapath_id,
    )


def examine(entry, connect_s=30.0):
    with open_bench(entry) as bench:
        self_test(bench, connect_s=connect_s)


@needs_openvswitch
def test_the_self_test_recognises_what_is_wired_wrongly() -> None:
    with switch_in_a_network():
        examine(inventory(datapath_id=f"{DATAPATH_ID:016x}"))
        with pytest.raises(
            RunError, match="dut: swapped ports: b2 is connected with port 2 or b1 with port 1"
        ):
            examine(inventory("b2", "b1"))
        with pytest.raises(RunError, match="dut: wrong port: b3 is connected with port 3"):
            examine(inventory("b1", "b3"))
        with pytest.raises(RunError, match="dut: no link: s1-eth3 and port 2 exchange nothing"):
            examine(inventory("b1", "s1-eth3"))
        with pytest.raises(RunError, match="dut: missing tap: b3 sees nothing of what b1 sends to port 1"):
            examine(inventory(taps=("b3", None)))
        with pytest.raises(RunError, match=r"dut: wrong switch: .* 000000000000002a, .* 0000000000000001"):
            examine(inventory(datapath_id="0000000000000001"))
        with pytest.raises(RunError, match=r"dut: no controller connection: .*127\.0\.0\.1:6654"):
            examine(inventory(listen="127.0.0.1:6654"), connect_s=0.5)


STAY = """
import sys, time
sys.path[:0] = {path!r}
from evaluation.bench.inventory import load_inventory
from evaluation.bench.live.open_device import open_bench
with open_bench(load_inventory("openvswitch")) as bench:
    assert bench.around.endpoint.accept(60) is not None
    print("up", flush=True)
    time.sleep(100)
"""


@needs_openvswitch
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda n: n.name)
def test_a_bench_that_is_killed_leaves_nothing(number) -> None:
    command = [sys.executable, "-c", STAY.format(path=sys.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "up\n"
        children = descendants(process.pid)
        process.send_signal(number)
    wait_until(lambda: not left(children), "its programs have ended")
    shutil.rmtree(state_folder() / "bench", ignore_errors=True)  # as the next bench does


@needs_openvswitch
@pytest.mark.live
def test_open_vswitch_is_measured_as_a_device() -> None:
    table = Table(entries=17, match=Match.FIVE_TUPLE, action=Action.OUTPUT)
    with open_device("openvswitch") as device:
        found = data_plane.measure(device, table, (64, 306), samples=30, seed=1)
        held = buffer.capacity_by_one_burst(device, 306, frames=4000)
    for samples in found.values():
        assert len(samples.times_ns) + samples.disturbed == 30
        assert (samples.times_ns > 0).all()
    assert held.frames > 0


@needs_emulator
@pytest.mark.live
def test_an_emulated_board_is_measured_as_a_device() -> None:
    table = Table(entries=17, match=Match.FIVE_TUPLE, action=Action.OUTPUT)
    with open_device("zodiac-fx-live") as device:
        found = data_plane.measure(device, table, (306,), samples=30, seed=1)
        held = buffer.capacity(device, 306)
        again = buffer.capacity(device, 306)
    assert len(found[306].times_ns) + found[306].disturbed == 30
    assert np.all(found[306].times_ns > 0)
    # Eight frames of three units, and the one in work; a stall of the host can show fewer leaving in time.
    for one in (held, again):
        assert one.disturbed or one.frames == 9


@needs_emulator
@pytest.mark.live
def test_messages_are_measured_and_a_board_can_be_brought_into_other_modes() -> None:
    description = next(one for one in messages() if one.name == "DescStatsRequest")
    with open_device("zodiac-fx-live") as device:
        barrier = control_plane.barrier(device, samples=10, seed=1)
        long_reply = control_plane.with_reply(device, description, samples=5, seed=1)
        search = control_plane.without_reply(
            device, flow_search("delete", "none", 17), barrier=barrier, samples=5, seed=1
        )
        added = control_plane.entries_added(device, flow_search("modify", "none", 17))
        unmodified = device.with_housekeeping()
        series = control_plane.echo_over_time(unmodified, duration_ns=2_000_000_000)
        device.begin(2)
        alone = device.without_cpu()
        times = integrated_switch.measure(alone, samples=5, seed=1)
        device.begin(3)
        again = control_plane.barrier(device, samples=5, seed=1)
    assert 0 < barrier.usual_ns <= barrier.longest_ns
    assert len(long_reply.times_ns) == len(search.times_ns) == 5
    assert added == 0
    assert len(series.times_ns) + series.missing == 1597
    assert all(len(one.times_ns) + one.disturbed == 5 for one in times.values())
    assert again.usual_ns > 0


@needs_openvswitch
@pytest.mark.live
def test_open_vswitch_has_neither_jobs_nor_an_integrated_switch() -> None:
    with open_device("openvswitch") as device:
        assert device.with_housekeeping() is None
        assert device.without_cpu() is None
