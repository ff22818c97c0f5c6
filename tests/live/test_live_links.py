"""Cables pulled from a board on real interfaces: features, PORT_STATUS, data path and log reflect it."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_harness import needs_namespaces
from os_ken.ofproto import ofproto_v1_0 as of

from loko_testbed.live.one_board import (
    BenchmarkController,
    BenchmarkTap,
    EmulatorProcess,
    Namespace,
    add_flow,
    message,
    sequence_of,
    udp_frame,
    wait_for,
)

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.waits,
    needs_namespaces,
]

HOUSEKEEPING = "ofchecks = true\n"


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    with Namespace([("h1", "s1-eth1"), ("h2", "s1-eth2")]) as made:
        yield made


@pytest.fixture
def controller(namespace: Namespace) -> Iterator[BenchmarkController]:
    with BenchmarkController(namespace) as made:
        yield made


def is_down(description: bytes) -> bool:
    """Return whether a port description has the state "link down" (section 5.2.1)."""
    return bool(struct.unpack_from("!I", description, 28)[0] == 1)


def down_ports(controller: BenchmarkController) -> list[int]:
    """Return the ports whose links are down according to the features."""
    controller.write(message(of.OFPT_FEATURES_REQUEST, 5))
    reply = controller.expect(of.OFPT_FEATURES_REPLY)
    ports = [reply[at : at + 48] for at in range(32, len(reply), 48)]
    return [struct.unpack_from("!H", port)[0] for port in ports if is_down(port)]


def next_status(controller: BenchmarkController) -> tuple[int, bool]:
    """Return the port of the next PORT_STATUS, and whether it is down."""
    status = controller.expect(of.OFPT_PORT_STATUS)
    return struct.unpack_from("!H", status, 16)[0], is_down(status[16:])


def passes(namespace: Namespace, number: int) -> bool:
    """Return whether a frame gets from host 1 to host 2."""
    with BenchmarkTap(namespace, "h1") as near, BenchmarkTap(namespace, "h2") as far:
        near.send(udp_frame(number))
        return number in {sequence_of(seen.data) for seen in far.seen(outgoing=False, count=1)}


def told(emulator: EmulatorProcess, text: str) -> None:
    """Wait until the log contains a line that matches."""
    wait_for(lambda: re.search(text, emulator.log()) is not None, f"line in the log: {text}")


def test_a_host_that_goes_down_takes_the_link_with_it(
    program: Path, namespace: Namespace, controller: BenchmarkController, tmp_path: Path
) -> None:
    with EmulatorProcess(program, namespace, tmp_path, controller.port, settings=HOUSEKEEPING) as emulator:
        controller.handshake()
        controller.write(add_flow(2))
        assert down_ports(controller) == [3], "port 3 has no interface"
        assert passes(namespace, 1)
        namespace.run("ip", "link", "set", "h2", "down")
        assert next_status(controller) == (2, True)
        told(emulator, r"port 2 is down: interface s1-eth2 has lost its carrier")
        assert down_ports(controller) == [2, 3]
        namespace.run("ip", "link", "set", "h2", "up")
        assert next_status(controller) == (2, False)
        told(emulator, r"port 2 is up again")
        assert down_ports(controller) == [3]
        assert passes(namespace, 2)
        emulator.end()


def test_an_interface_that_is_set_down_is_a_link_down(
    program: Path, namespace: Namespace, controller: BenchmarkController, tmp_path: Path
) -> None:
    with EmulatorProcess(program, namespace, tmp_path, controller.port, settings=HOUSEKEEPING) as emulator:
        controller.handshake()
        controller.write(add_flow(2))
        namespace.run("ip", "link", "set", "s1-eth2", "down")
        assert next_status(controller) == (2, True)
        told(emulator, r"interface s1-eth2 is down; set it up")
        namespace.run("ip", "link", "set", "s1-eth2", "up")
        assert next_status(controller) == (2, False)
        assert passes(namespace, 3)
        emulator.end()


def test_an_interface_that_vanishes_and_comes_back_is_taken_up_again(
    program: Path, namespace: Namespace, controller: BenchmarkController, tmp_path: Path
) -> None:
    with EmulatorProcess(program, namespace, tmp_path, controller.port, settings=HOUSEKEEPING) as emulator:
        controller.handshake()
        controller.write(add_flow(2))
        for number in range(2):
            namespace.run("ip", "link", "delete", "s1-eth2")
            assert next_status(controller) == (2, True)
            told(emulator, r"interface s1-eth2 is gone")
            with BenchmarkTap(namespace, "h1") as near:
                near.send(udp_frame(0))  # has no link to leave by, which does no harm
            time.sleep(0.1)
            namespace.add_cable("h2", "s1-eth2")
            assert next_status(controller) == (2, False)
            assert passes(namespace, 10 + number)
        # It also works as the receiving port.
        controller.write(add_flow(1, udp_port=5000, priority=200))
        controller.confirm()
        with BenchmarkTap(namespace, "h2") as near, BenchmarkTap(namespace, "h1") as far:
            near.send(udp_frame(20))
            assert [sequence_of(seen.data) for seen in far.seen(outgoing=False, count=1)] == [20]
        assert "cannot be read" not in emulator.log()
        assert "refuses a frame" not in emulator.log()
        emulator.end()


def test_a_board_may_start_without_a_carrier(
    program: Path, namespace: Namespace, controller: BenchmarkController, tmp_path: Path
) -> None:
    namespace.run("ip", "link", "set", "h2", "down")
    with EmulatorProcess(program, namespace, tmp_path, controller.port, settings=HOUSEKEEPING) as emulator:
        controller.handshake()
        assert down_ports(controller) == [2, 3]
        emulator.end()
