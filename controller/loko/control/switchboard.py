"""The relay's connections by the names of a lab's switches."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from loko.control.access import AccessList, Peer
from loko.control.rate_limited_logger import RateLimitedLogger
from loko.control.relay import Listening, Relay
from loko.control.relay_protocol import SwitchIdentity
from loko.control.versions import CODECS, WIRE_VERSIONS
from loko.control.wire import WireReply, WireRequest
from loko.switch_model.scenario import OpenFlow

_LOG: Final = logging.getLogger("loko.control")


class Subscriber(Protocol):
    """Keeper of the switches' tables. All calls come from the event loop's thread."""

    def switch_connected(self, name: str) -> None:
        """Called when a switch has introduced itself, and has no other connection."""

    def switch_replied(self, name: str, reply: WireReply) -> None:
        """Called when a switch has answered."""

    def switch_disconnected(self, name: str) -> None:
        """Called when the connection of a switch is gone."""

    def connection_refused(self, text: str) -> None:
        """Called with a line when a connection was refused; not each time if that happens often."""

    def application_ended(self, status: int) -> None:
        """Called when the OpenFlow application has ended, which it should not."""


class Switchboard:
    """The switches of a lab behind the OpenFlow application. Others are refused.

    A living session is never given up for a newcomer. One from another address is refused. One from the same
    address may be the switch itself, which has begun anew without ending its old session: it waits until the
    old session answers (then it is refused) or ends. The driver asks for an answer every 2 s and ends a
    session that gives none for 5 s (docs/driver.md), so this takes no message that is not reserved.
    """

    def __init__(self, access: AccessList, subscriber: Subscriber, openflow: OpenFlow) -> None:
        self._access = access
        self._subscriber = subscriber
        self._openflow = openflow
        self._wire = CODECS[openflow]
        self._relay = Relay(self)
        self._switch_of: dict[int, str] = {}
        self._connection_of: dict[str, int] = {}
        self._peer_of: dict[str, Peer] = {}
        self._waiting: dict[str, tuple[int, Peer]] = {}
        """By switch, the connection that would take the place of its session."""
        self._refusals = RateLimitedLogger(self.connection_refused)

    async def start(self, listening: Listening, framework: str, python: str) -> None:
        """Start the application on bound sockets, with this framework and interpreter (`relay`).

        It can be started again once it has ended.
        """
        self._relay = Relay(self)
        version = WIRE_VERSIONS[self._openflow]
        await self._relay.start(listening, self._access, framework, python, version)

    async def end(self) -> None:
        """End the application, and with it all connections."""
        await self._relay.end()

    def send(self, name: str, requests: list[WireRequest]) -> None:
        """Send to a switch, in one write. Nothing is sent to a switch that is away."""
        if (connection := self._connection_of.get(name)) is not None:
            self._relay.send(connection, self._wire.segment(requests))

    def close(self, name: str) -> None:
        """Close the connection of a switch, if it has one. The subscriber is not told of its end."""
        if (connection := self._connection_of.pop(name, None)) is not None:
            del self._switch_of[connection]
            self._relay.close(connection)
            self._admit_waiting(name)

    def load(self, echoes_per_s: float) -> None:
        """Send this many EchoRequests per second to each switch from now on, as a load."""
        self._relay.load(echoes_per_s)

    # Called by the relay.

    def switch_connected(self, connection: int, introduction: SwitchIdentity) -> None:
        """Called when a switch has introduced itself."""
        datapath_id, peer = introduction.datapath_id, introduction.peer
        name = self._access.name(datapath_id)
        refusal = self._access.refusal(datapath_id, peer)
        if name is None or refusal is not None:
            self._refuse(connection, peer, f" as datapath {datapath_id:#018x}: {refusal}")
        elif name not in self._connection_of:
            self._admit(connection, name, peer)
        elif peer.address != self._peer_of[name].address:
            self._refuse(
                connection, peer, f" as {name}, which is connected from {self._peer_of[name].address}"
            )
        else:
            self._refuse_waiting(name, "another connection says the same")
            self._waiting[name] = connection, peer

    def switch_said(self, connection: int, message: bytes) -> None:
        """Called with each whole message of a switch."""
        name = self._switch_of.get(connection)
        if name is None:
            return
        self._refuse_waiting(name, "its session goes on")
        if (reply := self._wire.decode(message)) is not None:
            self._subscriber.switch_replied(name, reply)

    def switch_disconnected(self, connection: int) -> None:
        """Called when a connection is gone."""
        self._waiting = {name: other for name, other in self._waiting.items() if other[0] != connection}
        name = self._switch_of.pop(connection, None)
        if name is not None:
            del self._connection_of[name]
            self._subscriber.switch_disconnected(name)
            self._admit_waiting(name)

    def connection_refused(self, text: str) -> None:
        """Called with a line when a connection was refused."""
        _LOG.warning("%s", text)
        self._subscriber.connection_refused(text)

    def _admit(self, connection: int, name: str, peer: Peer) -> None:
        self._switch_of[connection] = name
        self._connection_of[name] = connection
        self._peer_of[name] = peer
        _LOG.info("%s connects from %s%s", name, peer, "" if peer.certificate is None else " by TLS")
        self._subscriber.switch_connected(name)

    def _admit_waiting(self, name: str) -> None:
        """Let the connection that waits for the end of a session take its place."""
        if (waiting := self._waiting.pop(name, None)) is not None:
            self._admit(waiting[0], name, waiting[1])

    def _refuse_waiting(self, name: str, why: str) -> None:
        if (waiting := self._waiting.pop(name, None)) is not None:
            self._refuse(*waiting, f" as {name}: {why}")

    def _refuse(self, connection: int, peer: Peer, text: str) -> None:
        self._relay.close(connection)
        self._refusals.warning(text, f"refused {peer.address}")

    def application_ended(self, status: int) -> None:
        """Called when the OpenFlow application has ended unexpectedly, and all connections with it."""
        self._waiting.clear()
        for connection in list(self._switch_of):
            self.switch_disconnected(connection)
        self._subscriber.application_ended(status)
