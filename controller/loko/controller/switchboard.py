"""The relay's connections by the names of a lab's switches."""

from __future__ import annotations

import logging
import socket
from typing import Final, Protocol

from loko.controller.relay import Relay
from loko.controller.versions import WIRE_VERSIONS, WIRES
from loko.controller.wire import Reply, Request
from loko.lab import Lab
from loko.scenario import OpenFlow

_LOG: Final = logging.getLogger("loko.controller")


class Subscriber(Protocol):
    """What keeps the switches' tables. All calls come from the event loop's thread."""

    def switch_connected(self, name: str) -> None:
        """Called when a switch has introduced itself; an older connection of it is closed."""

    def switch_replied(self, name: str, reply: Reply) -> None:
        """Called when a switch has answered."""

    def switch_disconnected(self, name: str) -> None:
        """Called when the connection of a switch is gone."""

    def application_ended(self, status: int) -> None:
        """Called when the OpenFlow application has ended, which it should not."""


class Switchboard:
    """The switches of a lab behind the OpenFlow application. Other switches are refused."""

    def __init__(self, lab: Lab, subscriber: Subscriber, openflow: OpenFlow) -> None:
        self._subscriber = subscriber
        self._openflow = openflow
        self._wire = WIRES[openflow]
        self._relay = Relay(self)
        self._switch_of: dict[int, str] = {}
        self._connection_of: dict[str, int] = {}
        self._names = {switch.datapath_id: name for name, switch in lab.switches.items()}

    async def start(self, listening: socket.socket, framework: str, python: str) -> None:
        """Start the application on a bound socket, with this framework and interpreter (`relay`).

        It can be started again once it has ended.
        """
        self._relay = Relay(self)
        await self._relay.start(listening, framework, python, WIRE_VERSIONS[self._openflow])

    async def end(self) -> None:
        """End the application, and with it all connections."""
        await self._relay.end()

    def send(self, name: str, requests: list[Request]) -> None:
        """Send to a switch, in one write. Nothing is sent to a switch that is away."""
        if (connection := self._connection_of.get(name)) is not None:
            self._relay.send(connection, self._wire.segment(requests))

    def close(self, name: str) -> None:
        """Close the connection of a switch, if it has one. The subscriber is not told."""
        if (connection := self._connection_of.pop(name, None)) is not None:
            del self._switch_of[connection]
            self._relay.close(connection)

    def load(self, echoes_per_s: float) -> None:
        """Send this many EchoRequests per second to each switch from now on, as a load."""
        self._relay.load(echoes_per_s)

    # Called by the relay.

    def switch_connected(self, connection: int, datapath_id: int) -> None:
        """Called when a switch has introduced itself."""
        name = self._names.get(datapath_id)
        if name is None:
            _LOG.warning("refused datapath %#018x: no switch of the lab has this id", datapath_id)
            self._relay.close(connection)
            return
        self.close(name)
        self._switch_of[connection] = name
        self._connection_of[name] = connection
        self._subscriber.switch_connected(name)

    def switch_said(self, connection: int, message: bytes) -> None:
        """Called with each whole message of a switch."""
        name, reply = self._switch_of.get(connection), self._wire.decode(message)
        if name is not None and reply is not None:
            self._subscriber.switch_replied(name, reply)

    def switch_disconnected(self, connection: int) -> None:
        """Called when a connection is gone."""
        name = self._switch_of.pop(connection, None)
        if name is not None:
            del self._connection_of[name]
            self._subscriber.switch_disconnected(name)

    def application_ended(self, status: int) -> None:
        """Called when the OpenFlow application has ended unexpectedly, and all connections with it."""
        for connection in list(self._switch_of):
            self.switch_disconnected(connection)
        self._subscriber.application_ended(status)
