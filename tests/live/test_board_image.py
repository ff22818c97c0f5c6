"""The board's image as an ordinary container, without privileges: health, frames, log, end."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from live_harness import needs_namespaces, wait_until
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.os_ken_messages import PROTOCOL, serialized
from loko_testbed.instruments.cables import add_cable
from loko_testbed.instruments.controller_endpoint import ControllerEndpoint
from loko_testbed.instruments.network_namespace import namespace_of, own_network, within
from loko_testbed.instruments.numbered_frame import frames, number_of
from loko_testbed.instruments.packet_tap import PacketTap, packet_socket
from loko_testbed.instruments.programs import run
from loko_testbed.live.containerlab.topology import EMULATOR_IMAGE

CONTROLLER = "10.9.0.1"
GRACE_S = 10
"""How long `docker stop` waits before it kills."""


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def image_is_there() -> bool:
    try:
        docker("image", "inspect", EMULATOR_IMAGE)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.waits,
    needs_namespaces,
    pytest.mark.skipif(not image_is_there(), reason="Docker has no image of the board: make images"),
]


class Container:
    """A container of the image, without any network of Docker's."""

    def __init__(self, *options: str) -> None:
        self.name = docker("run", "--detach", "--network", "none", *options, EMULATOR_IMAGE).strip()

    def state(self) -> dict[str, object]:
        return json.loads(docker("inspect", "--format", "{{json .State}}", self.name))

    def health(self) -> str:
        return str(self.state()["Health"]["Status"])  # type: ignore[index]

    def plug(self, interface: str, far: str, *, address: str | None = None) -> None:
        """Connect an interface to a new one of this network, as containerlab does after the start."""
        pid = int(str(self.state()["Pid"]))
        add_cable(f"new-{interface}", far, what="a cable")
        run(["ip", "link", "set", f"new-{interface}", "netns", str(pid), "name", interface], what="a cable")
        prefix = within(namespace_of(pid))
        if address:
            run(["ip", "address", "add", address, "dev", interface], what="a cable", prefix=prefix)
        run(["ip", "link", "set", interface, "up"], what="a cable", prefix=prefix)

    def stop(self) -> float:
        """Stop the container, and return the seconds that it took."""
        began = time.monotonic()
        docker("stop", "--time", str(GRACE_S), self.name)
        return time.monotonic() - began


@pytest.fixture
def board() -> Iterator[Callable[..., Container]]:
    """A function that starts a board in a container; the other ends of its cables are in a new network."""
    started: list[Container] = []

    def start(*options: str) -> Container:
        started.append(Container(*options))
        return started[-1]

    with own_network([]):
        try:
            yield start
        finally:
            for container in started:
                docker("rm", "--force", container.name)


@contextmanager
def controller(container: Container) -> Iterator[ControllerEndpoint]:
    """Connect the board to a controller by eth0."""
    container.plug("eth0", "control", address="10.9.0.2/24")
    run(["ip", "address", "add", f"{CONTROLLER}/24", "dev", "control"], what="the controller")
    with ControllerEndpoint(CONTROLLER, 6633) as endpoint:
        yield endpoint


def forward(source: int, target: int) -> bytes:
    """Return the message that makes a board forward from a port to another."""
    match, actions = parser.OFPMatch(in_port=source), [parser.OFPActionOutput(target)]
    return serialized(parser.OFPFlowMod(PROTOCOL, match, priority=10, actions=actions), 1)


def test_it_becomes_healthy_with_its_cables_and_forwards_between_the_first_port_and_the_last(
    board: Callable[..., Container],
) -> None:
    container = board("--env", f"CONTROLLER={CONTROLLER}:6633", "--env", "INTERFACES=eth1 eth4")
    with controller(container) as endpoint:
        container.plug("eth1", "first")
        assert container.health() == "starting"
        container.plug("eth4", "last")
        wait_until(lambda: container.health() == "healthy", "the board is healthy")
        assert endpoint.accept(30) is not None
        endpoint.load([forward(1, 4), forward(4, 1)])
        for near, far in (("first", "last"), ("last", "first")):
            with PacketTap(far, is_inbound_only=True) as tap, packet_socket(near, 0) as source:
                seen: list[int | None] = []
                for data in frames(128, 20):
                    source.send(data)
                    seen += [number_of(frame.data) for frame in tap.read(timeout_s=5)]
            assert [number for number in seen if number is not None] == list(range(20))
    assert container.stop() < GRACE_S
    assert container.state()["ExitCode"] == 0
    assert docker("logs", container.name).splitlines()[:2] == [
        "start-board: waiting for eth1 eth4",
        f"start-board: OpenFlow 1.0, controller {CONTROLLER}:6633, quirks firmware",
    ]


def test_without_its_cables_it_is_unhealthy_also_after_a_kill_and_stops(
    board: Callable[..., Container], tmp_path: Path
) -> None:
    file = tmp_path / "board.toml"
    file.write_text(
        '[process]\nscheduling = "other"\nrest_us = 100\nready = "/run/ready"\n'
        f'[[board]]\nname = "mine"\ncontroller = "{CONTROLLER}:6633"\n[board.ports]\n2 = "eth2"\n'
    )
    container = board("--volume", f"{file}:/etc/zodiac-fx.toml:ro", "--env", "CLAB_INTFS=1")
    wait_until(lambda: container.health() == "unhealthy", "the board is unhealthy")
    container.plug("eth2", "second")
    wait_until(lambda: container.health() == "healthy", "the board is healthy")
    assert "zodiac-fx: running mine;" in docker("logs", container.name)
    docker("kill", container.name)
    docker("start", container.name)
    wait_until(lambda: container.health() == "unhealthy", "the board is unhealthy again")
    assert container.stop() < GRACE_S
    assert container.state()["ExitCode"] == 0
