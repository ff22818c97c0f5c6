"""The bench in real time: wiring, self-test, and a board and a software switch as devices under test."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from live_harness import Machine, descendants, left, needs_namespaces, wait_until

from loko.control.messages import echo_request
from loko.document import InputError
from loko.switch_model.device import load_profile
from loko.switch_model.scenario import ActionType, MatchType
from loko.topology.lab import Lab, Switch, load_lab
from loko_testbed.instruments import cable_probe
from loko_testbed.instruments.cables import add_cable
from loko_testbed.instruments.emulator import emulator
from loko_testbed.instruments.network_namespace import own_network
from loko_testbed.live import board_wiring, openvswitch
from loko_testbed.live.boards import RunningBoards
from loko_testbed.live.cores import CorePlan
from loko_testbed.live.openvswitch import SCHEMA, OpenVSwitch
from loko_testbed.live.state import state_folder
from loko_testbed.measure.bench import campaign
from loko_testbed.measure.bench.cables import UnpluggedError
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.inventory import (
    BENCHES,
    ControllerPort,
    Hardware,
    InventoryPort,
    load_inventory,
)
from loko_testbed.measure.bench.live import self_test as bench_self_test
from loko_testbed.measure.bench.live.bench import SWITCH_PORTS
from loko_testbed.measure.bench.live.open_device import open_bench, open_device
from loko_testbed.measure.bench.live.pacing import unlimited_realtime
from loko_testbed.measure.bench.live.self_test import arrival, self_test
from loko_testbed.measure.bench.live.shaped_senders import CASES, measure
from loko_testbed.measure.bench.part import Key, MeasurementPart
from loko_testbed.measure.bench.procedures import (
    IN_OPENFLOW_13,
    buffer,
    cp_time13,
    dp_time,
    dp_time13,
    is_time,
    messages,
)
from loko_testbed.measure.bench.procedures.messages import flow_search
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.store import TASKS

pytestmark = [pytest.mark.namespaces, needs_namespaces]


def refuses_priority() -> bool:
    """Return whether the kernel refuses root real-time priority, as in some containers and cgroups."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return True
    os.sched_setscheduler(0, *before)
    return False


needs_openvswitch = pytest.mark.skipif(not SCHEMA.is_file(), reason="Open vSwitch is not installed")
needs_priority = pytest.mark.skipif(refuses_priority(), reason="the kernel refuses real-time priority here")
apart = pytest.mark.usefixtures("apart")
needs_emulator = pytest.mark.skipif(not emulator().is_file(), reason="the emulator is not built")

DATAPATH_ID = 0x2A
BOARD_ID = 0x70B3D56C0001
CABLES = [("b1", "s1-eth1"), ("b2", "s1-eth2"), ("b3", "s1-eth3")]


@pytest.fixture(autouse=True)
def machine():
    """Check that the machine is unchanged after the test."""
    before = Machine.now()
    yield
    wait_until(lambda: Machine.now() == before, f"the machine is as before: {before} but {Machine.now()}")


@contextmanager
def switch_in_a_network(controller="127.0.0.1:6653"):
    """A switch cabled like hardware: ports 1 to 3 are connected to the interfaces b1 to b3."""
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


EVERYTHING = ("filter", "add")
MATCH = ("protocol", "all", "u32", "match", "u32", "0", "0", "action")


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def tc(*arguments: str) -> None:
    subprocess.run(["tc", *arguments], check=True)


def bench(*arguments: object, without_permission: bool = False) -> subprocess.CompletedProcess[str]:
    """Run `loko bench` in the network namespace of this thread."""
    dropped = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if without_permission else []
    program = [sys.executable, "-c", "from loko_testbed.cli.main import main; main()", "bench"]
    command = [*dropped, *program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


@contextmanager
def board_as_if_it_were_real(folder: Path, *, relaxed: bool = False):
    """An emulated board of which the bench sees only the cable ends b1, b2 and b4.

    When idle, it leaves its core to the bench's programs without delaying frames. A `relaxed` board shares
    the core with everything else.
    """
    wires = {1: "s1-eth1", 2: "s1-eth2", 4: "s1-eth4"}
    board = Switch(
        name="s1",
        datapath_id=BOARD_ID,
        profile=load_profile("zodiac-fx"),
        config={"ofchecks": False, "control": "network"},
    )
    lab = Lab(name="b", title="b", path=folder, switches={"s1": board}, hosts={}, links=(), control_port=6633)
    # A board that is killed leaves the real-time limit lifted; this restores it.
    with unlimited_realtime(), own_network([(f"b{port}", far) for port, far in wires.items()]):
        ip("address", "add", "10.0.1.8/24", "dev", "b4")
        # The bench uses the last core for its sender.
        core = None if relaxed else min(CorePlan.here().others)
        where = {"controller": "10.0.1.8:6633", "cpu": core, "shares_core": True}
        boards = RunningBoards(lab, {"s1": wires}, seed=0, folder=folder, **where)
        try:
            boards.daemon.wait_ready(30)
            yield
        finally:
            boards.daemon.end()


REAL = """
name: dut
kind: hardware
datapath_id: "{board:016x}"
ports:
  1: {{ interface: {first} }}
  2: {{ interface: {second} }}
controller: {{ interface: b4, listen: 10.0.1.8:6633 }}
"""


@needs_emulator
@pytest.mark.live
def test_a_campaign_measures_a_board_on_interfaces_as_a_real_one(tmp_path: Path) -> None:
    path = tmp_path / "dut.yml"
    with board_as_if_it_were_real(tmp_path):
        path.write_text(REAL.format(board=BOARD_ID, first="b1", second="b2"), encoding="utf-8")
        checked = bench("check", "--device", path)
        done = bench("buffer", "--device", path, "--out", tmp_path / "out", "--json")
        again = bench("buffer", "--device", path, "--out", tmp_path / "out", "--json")
    assert checked.stdout == "dut: wired as its inventory says; stamps by the kernel\n"
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert {row["frame_bytes"] for row in rows} >= {64, 306, 1516}
    assert again.stdout == done.stdout  # nothing is measured twice


@needs_emulator
@pytest.mark.waits
@pytest.mark.live
@apart
def test_a_session_that_breaks_is_not_taken_for_a_broken_cable(tmp_path, monkeypatch) -> None:
    """Two replies at once break the session (quirk 14), as do stray frames (quirk 15); a new one follows."""
    examined = []

    def breaks_first(endpoint, card):
        if not examined:
            endpoint.write(echo_request(1) + echo_request(2))
        examined.append(card)
        return arrival(endpoint, card)

    cabling = tmp_path / "cabling.yml"
    cabling.write_text("switches: {s1: {1: b1, 2: b2, 3: b3, 4: b4}}", encoding="utf-8")
    lab = load_lab("two-switch", cabling)
    lab = replace(lab, switches={"s1": replace(lab.switches["s1"], cards={1: "b1", 2: "b2", 4: "b4"})})
    path = tmp_path / "dut.yml"
    path.write_text(REAL.format(board=BOARD_ID, first="b1", second="b2"), encoding="utf-8")
    with board_as_if_it_were_real(tmp_path, relaxed=True):
        monkeypatch.setattr(bench_self_test, "arrival", breaks_first)
        examine(load_inventory(path))
        assert examined == ["b1", "b2", "b1", "b2"]
        examined.clear()
        monkeypatch.setattr(board_wiring, "arrival", breaks_first)
        assert set(board_wiring.self_test_of_boards(lab, "10.0.1.8:6633")) == {"s1"}
        assert examined == ["b1", "b1", "b2"]


RESUMED = """
import sys
sys.path[:0] = {path!r}
from loko_testbed.cli.main import main
main()
"""


@needs_emulator
@pytest.mark.live
def test_a_campaign_that_is_killed_goes_on_and_leaves_nothing(tmp_path: Path) -> None:
    """After a kill, finished measurements are kept, and the real-time limit is restored (see `machine`)."""
    arguments = ["dp-time", "--device", BENCHES / "zodiac-fx-live.yml", "--out", tmp_path, "--samples", "3"]
    command = [sys.executable, "-c", RESUMED.format(path=sys.path), "bench", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        wait_until(lambda: kept_parts(tmp_path) >= 2, "two parts are there")
        children = descendants(process.pid)
        process.kill()
    wait_until(lambda: not left(children), "its programs have ended")
    kept = kept_parts(tmp_path)
    estimate = bench(
        "dp-time",
        "--device",
        BENCHES / "zodiac-fx-live.yml",
        "--out",
        tmp_path,
        "--samples",
        "3",
        "--estimate",
    )
    assert f"{kept} are there already" in estimate.stdout
    shutil.rmtree(state_folder() / "bench", ignore_errors=True)  # as the next bench would do


def kept_parts(folder: Path) -> int:
    return len([*(folder / TASKS / "samples").glob("[0-9a-f]*")])


def inventory(first="b1", second="b2", *, taps=(None, None), datapath_id=None, listen="127.0.0.1:6653"):
    return Hardware(
        kind="hardware",
        name="dut",
        ports={
            1: InventoryPort(interface=first, tap=taps[0]),
            2: InventoryPort(interface=second, tap=taps[1]),
        },
        controller=ControllerPort(interface="lo", listen=listen),
        datapath_id=datapath_id,
    )


def examine(entry, connect_s=30.0):
    with open_bench(entry) as bench:
        self_test(bench, connect_s=connect_s)


@pytest.fixture
def _a_switch_that_answers_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for answers for 0.2 s only: Open vSwitch answers within a millisecond."""
    monkeypatch.setattr(cable_probe, "_ANSWER_S", 0.2)


soon = pytest.mark.usefixtures("_a_switch_that_answers_soon")


@pytest.mark.waits
@apart
@needs_openvswitch
@soon
@pytest.mark.parametrize(
    ("described", "said"),
    [
        (inventory("b2", "b1"), "dut: swapped ports: b2 is connected with port 2 or b1 with port 1"),
        (inventory("b1", "b3"), "dut: wrong port: b3 is connected with port 3"),
        (inventory("b1", "s1-eth3"), "dut: no link: s1-eth3 and port 2 exchange nothing"),
        (inventory(taps=("b3", None)), "dut: missing tap: b3 sees nothing of what b1 sends to port 1"),
        (
            inventory(datapath_id="0000000000000001"),
            "dut: wrong switch: .* 000000000000002a, .* 0000000000000001",
        ),
    ],
    ids=["swapped", "wrong port", "no link", "missing tap", "wrong switch"],
)
def test_the_self_test_recognises_what_is_wired_wrongly(described: Hardware, said: str) -> None:
    # Use a new switch each time: after short sessions Open vSwitch waits up to 8 s before it reconnects.
    with switch_in_a_network(), pytest.raises(RunError, match=said):
        examine(described)


@pytest.mark.waits
@apart
@needs_openvswitch
@soon
def test_the_self_test_finds_nothing_in_what_is_wired_rightly_and_misses_a_switch_that_is_elsewhere() -> None:
    with switch_in_a_network():
        examine(inventory(datapath_id=f"{DATAPATH_ID:016x}"))
        with pytest.raises(RunError, match=r"dut: no controller connection: .*127\.0\.0\.1:6654"):
            examine(inventory(listen="127.0.0.1:6654"), connect_s=0.5)


@pytest.mark.waits
@apart
@needs_openvswitch
@soon
def test_passive_taps_that_see_the_other_cable_are_recognised() -> None:
    """Interfaces t1 and t2 receive copies of the traffic on the cables, like optical taps."""
    with switch_in_a_network():
        for number, cable in ((1, "s1-eth1"), (2, "b2")):
            add_cable(f"m{number}", f"t{number}", what="a copy")
            tc("qdisc", "add", "dev", cable, "clsact")
            tc(
                *EVERYTHING,
                "dev",
                cable,
                "ingress",
                *MATCH,
                "mirred",
                "egress",
                "mirror",
                "dev",
                f"m{number}",
            )
        examine(inventory(taps=("t1", "t2")))
        with pytest.raises(RunError, match="dut: swapped taps: t2 sees what leaves port 2, t1 what goes to"):
            examine(inventory(taps=("t2", "t1")))
        with pytest.raises(RunError, match="dut: missing tap: m2 sees nothing of what port 2 sends to b2"):
            examine(inventory(taps=("t1", "m2")))


@pytest.mark.waits
@apart
@needs_openvswitch
@pytest.mark.parametrize(
    ("cut", "said"),
    [
        ("s1-eth2", "one-way link: frames get from b2 to port 2 but not back"),
        ("b1", "one-way link: frames get from port 1 to b1 but not back"),
    ],
)
@soon
def test_a_cable_that_carries_one_way_only_is_recognised(cut: str, said: str) -> None:
    with switch_in_a_network():
        tc("qdisc", "add", "dev", cut, "clsact")
        tc(*EVERYTHING, "dev", cut, "egress", *MATCH, "mirred", "egress", "redirect", "dev", "lo")
        with pytest.raises(RunError, match=f"dut: {said}"):
            examine(inventory())


@pytest.mark.waits
@apart
def test_interfaces_that_are_not_there_or_down_are_told_at_once() -> None:
    with own_network([("b1", "s1-eth1"), ("b2", "s1-eth2")]):
        with pytest.raises(InputError, match="interface b7 does not exist; this machine has b1, b2, lo"):
            examine(inventory("b7", "b2"))
        with pytest.raises(InputError, match="interface t1 does not exist"):
            examine(inventory(taps=("t1", None)))
        ip("link", "set", "b2", "down")
        with pytest.raises(InputError, match="interface b2 is down: set it up with 'ip link set b2 up'"):
            examine(inventory())


@pytest.mark.waits
@apart
@pytest.mark.parametrize("name", ["openvswitch", "zodiac-fx-live"])
def test_without_permission_one_line_says_so(name: str, tmp_path: Path) -> None:
    done = bench("dp-time", "--device", BENCHES / f"{name}.yml", "--out", tmp_path, without_permission=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("(Operation not permitted): run it as root")
    assert "Traceback" not in done.stderr


@pytest.mark.waits
@apart
def test_without_open_vswitch_one_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(openvswitch, "SCHEMA", tmp_path / "nothing")
    with pytest.raises(RunError, match="is missing: install it with 'apt-get install openvswitch-switch'"):
        examine(load_inventory("openvswitch"))


STAY = """
import sys, time
sys.path[:0] = {path!r}
from loko_testbed.measure.bench.inventory import load_inventory
from loko_testbed.measure.bench.live.open_device import open_bench
with open_bench(load_inventory("openvswitch")) as bench:
    assert bench.around.endpoint.accept(60) is not None
    print("up", flush=True)
    time.sleep(100)
"""


@pytest.mark.waits
@apart
@needs_openvswitch
@needs_priority
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda n: n.name)
def test_a_bench_that_is_killed_leaves_nothing(number) -> None:
    command = [sys.executable, "-c", STAY.format(path=sys.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "up\n"
        children = descendants(process.pid)
        process.send_signal(number)
    wait_until(lambda: not left(children), "its programs have ended")
    shutil.rmtree(state_folder() / "bench", ignore_errors=True)  # as the next bench would do


@needs_openvswitch
@needs_priority
@pytest.mark.live
def test_open_vswitch_is_measured_as_a_device() -> None:
    table = TableCase(entries=17, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)
    with open_device("openvswitch") as device:
        times = dict(dp_time.measure(device, 1, table=table, sizes=(64, 306), samples=30))
    for samples in times.values():
        assert 0 < len(samples.values) <= 30 <= len(samples.values) + samples.left_out
        assert (samples.values > 0).all()


@needs_openvswitch
@needs_priority
@pytest.mark.live
def test_one_long_burst_shows_the_queue_behind_open_vswitch() -> None:
    """The port's queue in the kernel is slow and its length known, so any sender can fill it.

    It is shorter than the switch's own socket buffer, which holds about 170 of these frames.
    """
    queue_frames, burst_frames = 100, 4000
    with open_device("openvswitch") as device:
        port = SWITCH_PORTS[2]
        slow = ("rate", "10mbit", "burst", "1600", "limit", "1mb")
        tc("qdisc", "add", "dev", port, "root", "handle", "1:", "tbf", *slow)
        tc("qdisc", "add", "dev", port, "parent", "1:1", "pfifo", "limit", f"{queue_frames}")
        held = buffer.capacity_by_one_burst(device, 306, frames=burst_frames)
    # If the host stalls, the switch itself may lose a frame before the queue is full.
    assert queue_frames <= held.frames < burst_frames or (held.disturbed and held.frames > 0)


@needs_emulator
@pytest.mark.live
def test_an_emulated_board_is_measured_as_a_device() -> None:
    table = TableCase(entries=17, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)
    with open_device("zodiac-fx-live") as device:
        times = dict(dp_time.measure(device, 1, table=table, sizes=(306,), samples=30))
        held = buffer.capacity(device, 306)
        again = buffer.capacity(device, 306)
    # Frames disturbed by a stall of the host are sent again, but not for ever.
    assert 0 < len(times[306].values) <= 30 <= len(times[306].values) + times[306].left_out
    assert np.all(times[306].values > 0)
    # Eight frames of three units, plus the one in service. After a stall of the host it may seem to be fewer.
    for capacity in (held, again):
        assert capacity.disturbed or capacity.frames == 9


@needs_emulator
@pytest.mark.live
@pytest.mark.parametrize(
    ("pulled", "cable"),
    [
        ("s1-eth1", "the cable of port 1 (bench1)"),
        ("bench2", "the cable of port 2 (bench2)"),
    ],
)
def test_a_campaign_goes_on_behind_a_cable_that_was_pulled(tmp_path, pulled, cable) -> None:
    """The cable is back before its absence can be noticed, so measurements in between may be wrong."""
    table = TableCase(entries=1, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)
    pulls = [pulled]

    def measure(device, seed):
        while pulls:
            name = pulls.pop()
            ip("link", "set", name, "down")
            ip("link", "set", name, "up")
        return dp_time.measure(device, seed, table=table, sizes=(306,), samples=5)

    todo = [
        MeasurementPart(before := Key("dp-time", ("before",)), lambda device, seed: {}),
        MeasurementPart(Key("dp-time", ("pulled",)), measure),
    ]
    keys = {part.key for part in todo}
    store = SampleStore(tmp_path / "samples", {})
    with open_device("zodiac-fx-live") as device:
        with pytest.raises(UnpluggedError, match=re.escape(f"{cable} had no link while 'dp-time/pulled'")):
            campaign.run(device, todo, store, seed=1, on_part=lambda part: None)
        assert store.complete_among(keys) == {before}
        campaign.run(device, todo, store, seed=1, on_part=lambda part: None)
        assert store.complete_among(keys) == keys


IN_SESSIONS_OF_13 = (
    dp_time13.PROCEDURE.key("100 entries with udp_port hold"),
    cp_time13.PROCEDURE.key("role"),
    cp_time13.PROCEDURE.key("description"),
    cp_time13.PROCEDURE.key("delete none of 50"),
)


def measured_13(device: BenchDevice, key: Key) -> np.ndarray:
    parts = campaign.parts(tuple(IN_OPENFLOW_13.values()), samples=5)
    ((_, taken),) = next(part for part in parts if part.key == key).measured(device, 1)
    return taken.values


@needs_emulator
@pytest.mark.live
def test_messages_are_measured_and_a_board_can_be_brought_into_other_modes() -> None:
    description = next(message for message in messages.messages() if message.name == "DescStatsRequest")
    with open_device("zodiac-fx-live") as device:
        barrier = messages.barrier(device, samples=10, seed=1)
        long_reply = messages.with_reply(device, description, samples=5, seed=1)
        search = messages.without_reply(
            device, flow_search("delete", "none", 17), barrier=barrier, samples=5, seed=1
        )
        added = messages.entries_added(device, flow_search("modify", "none", 17))
        unmodified = device.with_housekeeping()
        series = messages.echo_over_time(unmodified, duration_ns=500_000_000)
        device.begin(2)
        alone = device.without_cpu()
        times = is_time.measure(alone, samples=5, seed=1)
        device.begin(3)
        again = messages.barrier(device, samples=5, seed=1)
        newer = {key: measured_13(device, key) for key in IN_SESSIONS_OF_13}
        last = messages.barrier(device, samples=5, seed=1)
    assert 0 < barrier.usual_ns <= barrier.longest_ns
    assert len(long_reply.values) == len(search.values) == 5
    assert added == 0
    assert len(series.times_ns) + series.missing == 399
    assert all(
        0 < len(values.values) <= 5 <= len(values.values) + values.left_out for values in times.values()
    )
    assert again.usual_ns > 0
    assert all(0 < len(values) <= 5 for values in newer.values())
    assert last.usual_ns > 0


@pytest.mark.waits
@apart
@needs_openvswitch
@needs_priority
@pytest.mark.live
def test_open_vswitch_has_neither_jobs_nor_an_integrated_switch() -> None:
    with open_device("openvswitch") as device:
        assert device.with_housekeeping() is None
        assert device.without_cpu() is None


@pytest.mark.waits
def test_real_senders_are_measured_on_a_cable_of_their_own() -> None:
    shaped, free = (measure(case, 0.5) for case in CASES[:2])
    bursts = measure(CASES[-1], 5.0)  # a burst comes every 0.36 s on average; those that meet leave as one
    assert 0 < shaped.sent_pps <= shaped.accepted_pps
    assert free.sent_pps == free.accepted_pps > 0
    assert free.latency_us is None
    assert bursts.burst_frames is None or 0 < bursts.burst_frames <= 5e6 / bursts.token_us
