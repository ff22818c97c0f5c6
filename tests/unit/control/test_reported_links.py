"""Link states of boards reach the service through the OpenFlow application."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Callable

import pytest
import switch_emulator

from loko.control import wire, wire13
from loko.control.framing import framed
from loko.control.lab_access import access_list
from loko.control.port_links import PORTS_10, PORTS_13, PortsReply
from loko.control.relay import Listening
from loko.control.switchboard import Switchboard
from loko.control.wire import PortsRequest, WireReply
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import load_lab
from loko_testbed.live.emulation.boards import KEPT_SESSION, EmulatedBoard, FreeRunningBoard

LAB = load_lab("two-switch")
TIMEOUT_S = 60


class Heard:
    """A subscriber that keeps what the switch says of its ports."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def switch_connected(self, name: str) -> None:
        self.events.append(name)

    def switch_replied(self, _name: str, reply: WireReply) -> None:
        if isinstance(reply, PortsReply):
            self.events.append(dict(reply.are_up))

    def switch_disconnected(self, _name: str) -> None:
        self.events.append("gone")

    def connection_refused(self, text: str) -> None:
        self.events.append(text)

    def application_ended(self, status: int) -> None:
        self.events.append(status)


async def until(condition: Callable[[], bool], take: Callable[[], object], heard: Heard) -> None:
    end_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end_s, heard.events
        take()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("openflow", list(OpenFlow))
def test_links_reach_the_service_as_the_board_connects_and_when_they_change(openflow: OpenFlow) -> None:
    async def converse() -> list[object]:
        heard = Heard()
        switchboard = Switchboard(access_list(LAB, listen="127.0.0.1"), heard, openflow)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            await switchboard.start(Listening(plain=listening), "os-ken", sys.executable)
            config = {**LAB.switches["s1"].config, **KEPT_SESSION, "ofchecks": True}
            board = switch_emulator.Board(config=config)
            lone = FreeRunningBoard(board)
            lone.link(2, is_up=False)
            connection = EmulatedBoard("s1", lone, listening.getsockname())

            def take() -> None:
                connection.take(lone.advance())

            await until(lambda: len(heard.events) == 2, take, heard)
            lone.link(3, is_up=False)
            await until(lambda: len(heard.events) == 3, take, heard)
            lone.link(2, is_up=True)
            switchboard.send("s1", [PortsRequest(7)])
            await until(lambda: len(heard.events) == 4, take, heard)
            await switchboard.end()
        return heard.events

    first, last = {1: True, 2: False, 3: True}, {1: True, 2: True, 3: False}
    assert asyncio.run(converse()) == ["s1", first, {3: False}, last]


def port_10(number: int, *, configuration: int = 0, state: int = 0) -> bytes:
    return PORTS_10.description.pack(number, configuration, state)


def status(reason: int, description: bytes, *, version: int) -> bytes:
    body = struct.pack("!B7x", reason) + description
    return framed(version, 12, 0, body)


@pytest.mark.parametrize(
    ("configuration", "state", "is_up"), [(0, 0, True), (1, 0, False), (0, 1, False), (0, 0x200, True)]
)
def test_a_port_is_down_by_its_state_or_by_its_configuration(
    configuration: int, state: int, is_up: bool
) -> None:
    description = port_10(2, configuration=configuration, state=state)
    assert wire.decode(status(2, description, version=1)) == PortsReply(0, {2: is_up})
    description = PORTS_13.description.pack(2, configuration, state)
    assert wire13.decode(status(2, description, version=4)) == PortsReply(0, {2: is_up})


def test_a_port_that_is_deleted_is_down() -> None:
    assert wire.decode(status(1, port_10(2), version=1)) == PortsReply(0, {2: False})


def test_reserved_ports_and_torn_messages_say_nothing() -> None:
    assert wire.decode(status(2, port_10(0xFFFE), version=1)) == PortsReply(0, {})
    assert wire.decode(status(1, port_10(0xFFFE), version=1)) == PortsReply(0, {})
    assert wire.decode(status(2, port_10(2)[:20], version=1)) is None
