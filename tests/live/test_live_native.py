"""A board of `zodiac-fx` on its control network, with a controller behind the native port's interface."""

from __future__ import annotations

import signal
import struct
import subprocess
import time

import pytest
from live_harness import needs_namespaces
from os_ken.ofproto import ofproto_v1_0 as of

from loko_testbed.live.one_board import (
    UNHURRIED,
    BenchmarkController,
    EmulatorProcess,
    Namespace,
    add_flow,
    message,
)

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.waits,
    needs_namespaces,
]

CONTROLLER, BOARD = "10.0.1.8", "10.0.1.99"
ACTIVE_COUNT_OFFSET = 12 + 4 + 32 + 4 + 4


@pytest.fixture
def namespace():
    with Namespace([("h1", "s1-eth1"), ("controller", "s1-eth4")]) as made:
        made.run("ip", "address", "add", f"{CONTROLLER}/24", "dev", "controller")
        yield made


@pytest.fixture
def controller(namespace):
    with BenchmarkController(namespace, 6633, CONTROLLER) as made:
        yield made


def start(program, namespace, folder):
    return EmulatorProcess(
        program,
        namespace,
        folder,
        6633,
        process=UNHURRIED,
        settings='control = "network"\nofchecks = false\n',
        ports={1: "s1-eth1", 4: "s1-eth4"},
        controller_address=CONTROLLER,
    )


def flows(controller):
    controller.write(message(of.OFPT_STATS_REQUEST, 5, struct.pack("!HH", of.OFPST_TABLE, 0)))
    return struct.unpack_from("!I", controller.expect(of.OFPT_STATS_REPLY), ACTIVE_COUNT_OFFSET)[0]


@pytest.mark.parametrize("payload_bytes", [0, 56, 1472])
def test_the_board_answers_ping(program, namespace, tmp_path, payload_bytes):
    with start(program, namespace, tmp_path):
        ping = ["ping", "-c", "3", "-i", "0.2", "-W", "5", "-s", str(payload_bytes), BOARD]
        subprocess.run(namespace.command(*ping), check=True, stdout=subprocess.DEVNULL)


def test_a_controller_for_a_board_needs_no_change(program, namespace, controller, tmp_path):
    with start(program, namespace, tmp_path) as emulator:
        assert len(controller.handshake()) == 176
        assert controller.session is not None
        assert controller.session.getpeername()[0] == BOARD
        controller.confirm()
        controller.write(add_flow(2, udp_port=5000))
        controller.confirm()
        assert flows(controller) == 1
        report = emulator.end()
    board = report["boards"]["s1"]
    assert board["connected"]
    assert board["counters"]["native_received"] > 0
    assert board["counters"]["received"] == 0
    assert f"connected to controller {CONTROLLER}:6633" in emulator.log()


def test_what_crosses_the_end_of_a_segment_is_lost(program, namespace, controller, tmp_path):
    """Quirk 10, even though the controller's kernel leaves segmentation to its interface."""
    flow_mods = b"".join(add_flow(2, udp_port=5000 + number) for number in range(8))
    with start(program, namespace, tmp_path):
        controller.handshake()
        controller.write(flow_mods + message(of.OFPT_BARRIER_REQUEST, 9))
        time.sleep(0.1)  # otherwise the kernel may put the next write into the same segment
        # If this barrier had arrived, its reply would come before that of the next one.
        controller.write(message(of.OFPT_BARRIER_REQUEST, 10))
        assert struct.unpack_from("!I", controller.expect(of.OFPT_BARRIER_REPLY), 4)[0] == 10
        assert flows(controller) == 6


def test_a_board_that_was_killed_comes_back(program, namespace, controller, tmp_path):
    with start(program, namespace, tmp_path) as emulator:
        controller.handshake()
        emulator.process.send_signal(signal.SIGKILL)
        emulator.process.wait()
        assert controller.session is not None
        controller.session.close()
    with start(program, namespace, tmp_path):
        controller.handshake()
        controller.confirm()
