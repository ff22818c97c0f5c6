"""Live software switches in the predictability campaign. Delays are not judged, as any may be stalled."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from live_harness import Machine, descendants, left, needs_namespaces, wait_until

from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.instruments.virtual_session import RefusedError
from loko_testbed.live.datapaths import RING_FRAMES, kernel_has_datapath, missing_for_dpdk
from loko_testbed.live.openvswitch import SCHEMA
from loko_testbed.live.state import state_folder
from loko_testbed.measure.bench.software_switches.named_switches import NAMES, open_switch
from loko_testbed.measure.bench.software_switches.ports import QUEUE_FRAMES
from loko_testbed.measure.predictability import buffers, flow_management, processing_time, throughput
from loko_testbed.measure.predictability.numbered_entries import MatchAction
from loko_testbed.measure.predictability.subject import FrameStream, evenly, transmit
from loko_testbed.measure.predictability.table_iii import TimingScenario, flow_mods, frame
from loko_testbed.simulation.runner import LOST, RunError
from loko_testbed.tasks.store import TASKS

pytestmark = [pytest.mark.live, pytest.mark.namespaces, needs_namespaces]

needs_ovs = pytest.mark.skipif(not SCHEMA.is_file(), reason="needs Open vSwitch: openvswitch-switch")
needs_dpdk = pytest.mark.skipif(
    missing_for_dpdk() is not None, reason="needs Open vSwitch with DPDK: make dpdk"
)
needs_kernel = pytest.mark.skipif(
    not kernel_has_datapath(), reason="needs a kernel with the datapath of Open vSwitch: module openvswitch"
)
SWITCHES = {
    "open-vswitch": [needs_ovs],
    "open-vswitch-dpdk": [needs_ovs, needs_dpdk],
    "open-vswitch-kernel": [needs_ovs, needs_kernel],
    "linux-bridge": [],
}
waits = pytest.mark.waits
apart = pytest.mark.usefixtures("apart")
every_switch = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=marks) for name, marks in SWITCHES.items()]
)
assert set(NAMES) == set(SWITCHES)


SILENCE_S = 11
"""Open vSwitch sends an echo request after 5 s of silence and ends the session 5 s later."""
ROOM = {"open-vswitch-dpdk": 3 * RING_FRAMES}
"""Frames that a switch holds, if that is not just one queue: the rings of the two input ports, and that of
the output port, which contains the frames of the queue."""
BATCH = {"open-vswitch-dpdk": 32}
"""Number of frames that a thread takes at once. This many may be in processing, or missing in another
ring."""


@pytest.fixture(autouse=True)
def machine():
    """Check that the test leaves nothing behind."""
    before = Machine.now()
    yield
    wait_until(lambda: Machine.now() == before, "the machine is as before")


def sent(count: int, gap_ns: int = 1_000_000) -> FrameStream:
    return FrameStream(enters=IN_PORT, leaves=OUT_PORT, frame=frame(306), instants_ns=evenly(count, gap_ns))


@waits
@apart
@every_switch
def test_only_entries_forward_and_frames_are_stamped_at_both_ports(name: str) -> None:
    with open_switch(name) as subject:
        [without] = transmit(subject, [], [sent(20)], seed=1)
        [by_entry] = transmit(subject, flow_mods(TimingScenario(entries=5)), [sent(100)], seed=1)
        again = transmit(subject, [], [sent(20)], seed=1)[0]
    assert (without.received_ns == LOST).all()
    assert (again.received_ns == LOST).all(), "a fresh switch has no entries"
    came = by_entry.received_ns != LOST
    assert came.sum() > 50
    assert (by_entry.processing_ns(subject, 306) > 0).all()


@every_switch
def test_a_line_loses_what_is_above_its_rate_and_a_queue_holds_its_frames(name: str) -> None:
    """A surplus fills the queue; its length, plus the frame on the line, is inferred from delays."""
    with open_switch(name) as subject:
        capacity = buffers.measure(subject, 1, 1, seed=1)
    assert capacity is not None
    room, few = ROOM.get(name, QUEUE_FRAMES), 4 + BATCH.get(name, 0)
    assert capacity.frames >= room - few
    # On a busy machine the line is served late, which looks like more frames, but not at every loss.
    assert capacity.least_frames <= room + few


@waits
@apart
@every_switch
def test_a_table_is_filled_asked_and_emptied(name: str) -> None:
    with open_switch(name) as subject:
        switch = flow_management.Controlled(subject, 1)
        assert switch.add_paced(MatchAction(), pause_ns=0, at_most=30)[:2] == (30, False)
        assert switch.listed() == set(range(30))
        took_ns = switch.forwarded(MatchAction(), range(40))
        switch.clear()
        assert switch.listed() == set()
    assert {number for number, ns in took_ns.items() if ns is not None} == set(range(30))


@waits
@apart
@every_switch
def test_a_frame_goes_through_every_port_of_a_shoelace(name: str) -> None:
    with open_switch(name) as subject:
        carried = throughput.measure(subject, 1516, 1.0, packets=20, seed=1)
    assert carried.sent == 40
    assert carried.lost <= 20, "most come through, whatever else this machine does"


@waits
@apart
@needs_ovs
def test_a_session_outlives_a_silence() -> None:
    """Nobody answers the switch while frames are sent, which takes longer on a busy machine."""
    with open_switch("open-vswitch") as subject:
        time.sleep(SILENCE_S)
        [by_entry] = transmit(subject, flow_mods(TimingScenario(entries=1)), [sent(20)], seed=1)
    assert (by_entry.received_ns != LOST).any()


@waits
@apart
def test_what_the_filters_of_tc_cannot_do_is_refused() -> None:
    with open_switch("linux-bridge") as subject:
        with pytest.raises(RefusedError, match="refused an entry"):
            transmit(subject, flow_mods(TimingScenario(action="set-nw-src")), [sent(1)], seed=1)
        assert (
            processing_time.measure(subject, TimingScenario(action="strip-vlan"), packets=1, seed=1) is None
        )


@waits
@apart
@pytest.mark.parametrize(
    ("name", "program"),
    [
        pytest.param("open-vswitch", "ovs-vswitchd", marks=needs_ovs),
        pytest.param("open-vswitch-dpdk", "ovs-vswitchd-dp", marks=[needs_ovs, needs_dpdk]),
    ],
)
def test_a_switch_that_stops_answering_half_way_is_one_line(tmp_path: Path, name: str, program: str) -> None:
    """A switch process is killed during a campaign: what was measured is kept, and it can resume."""
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-c",
        "from loko_testbed.cli.main import main; main()",
        "bench",
        "predictability",
    ]
    command += ["--device", name, "--quick", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: len(kept(out)) >= 3, "three parts are there")
        children = descendants(process.pid)
        [forwards] = [child for child in children if child.name().startswith(program)]
        forwards.kill()
        _, said = process.communicate(timeout=60)
        assert process.returncode == 2
    assert said.count("\n") == 1
    assert f"{name}: stopped answering half-way" in said
    assert "finished parts are kept" in said
    assert len(kept(out)) >= 3
    assert not left(children)


@waits
@apart
@needs_ovs
@pytest.mark.skipif(kernel_has_datapath(), reason="this kernel has the datapath of Open vSwitch")
def test_a_kernel_without_the_datapath_is_one_line() -> None:
    with (
        pytest.raises(RunError, match=r"^this kernel has no datapath of Open vSwitch \(module openvswitch\)"),
        open_switch("open-vswitch-kernel"),
    ):
        pass


@waits
@apart
def test_a_killed_campaign_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-c",
        "from loko_testbed.cli.main import main; main()",
        "bench",
        "predictability",
    ]
    command += ["--device", "linux-bridge", "--quick", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: len(kept(out)) >= 2, "two parts are there")
        children = descendants(process.pid)
        process.kill()
    wait_until(lambda: not left(children), "its programs have ended")
    shutil.rmtree(state_folder() / "bench", ignore_errors=True)  # as the next bench would do


def kept(out: Path) -> list[Path]:
    return list((out / TASKS / "parts").glob("[0-9a-f]*"))
