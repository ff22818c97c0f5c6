"""The os-ken application: carries messages between os-ken's connections and the supervisor, nothing else.

os-ken runs each connection in a thread of its own and all handlers of this application in one other thread.
So only that one touches the supervisor.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from os_ken.base import app_manager
from os_ken.controller import event, ofp_event, ofp_handler
from os_ken.controller.controller import Datapath, datapath_connection_factory
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import hub
from os_ken.ofproto import ofproto_v1_0

from loko.controller import messages
from loko.controller.echo_load import FIRST_XID, EchoLoad
from loko.controller.session import Echo, Request
from loko.controller.supervisor import Supervisor, Table

TICK_S: Final = 0.25
_LOG: Final = logging.getLogger("loko.controller")


_Handler = TypeVar("_Handler", bound=Callable[..., None])


def _on(event_class: Any, states: Any = None) -> Callable[[_Handler], _Handler]:
    """os-ken's decorator for handlers of events, with a type."""
    decorator: Callable[[_Handler], _Handler] = set_ev_cls(event_class, states)
    return decorator


class _Tick(event.EventBase):  # type: ignore[misc]
    """Time has passed."""


class _Listener(ofp_handler.OFPHandler):  # type: ignore[misc]
    """os-ken's own handler of the handshake, on a socket that listens already.

    So a busy port is found before anything starts, rather than in a thread whose errors are only logged.
    """

    def __init__(self, listening: socket.socket) -> None:
        super().__init__()
        self._listening = listening

    def start(self) -> Any:
        super(ofp_handler.OFPHandler, self).start()
        return hub.spawn(self._accept)

    def _accept(self) -> None:
        while True:
            connection, address = self._listening.accept()
            hub.spawn(datapath_connection_factory, connection, address)


class _OsKenConnection:
    """A datapath of os-ken as the supervisor's connection."""

    def __init__(self, datapath: Datapath) -> None:
        self._datapath = datapath

    @property
    def is_open(self) -> bool:
        return bool(self._datapath.socket.fileno() >= 0)

    def send(self, request: Request) -> None:
        self._datapath.send(messages.encode(request))

    def close(self) -> None:
        self._datapath.close()
        # os-ken's sending thread sleeps on its queue, also when the connection is gone: wake it to its end.
        self._datapath.send(b"")


class LokoController(app_manager.OSKenApp):  # type: ignore[misc]
    """Sets up the switches of a lab as soon as they connect, over OpenFlow 1.0."""

    OFP_VERSIONS: Final = [ofproto_v1_0.OFP_VERSION]

    def __init__(
        self, tables: Mapping[int, Table], changed: Callable[[bool], None], echo_rate: Path | None = None
    ) -> None:
        """`echo_rate`: a file with the rate of EchoRequests that are sent as a load (`EchoLoad`)."""
        super().__init__()
        self._load = EchoLoad(echo_rate, self._senders) if echo_rate is not None else None
        self._connections: dict[Datapath, _OsKenConnection] = {}
        self._supervisor: Supervisor[_OsKenConnection] = Supervisor(tables, changed=changed, log=_LOG.info)

    def start(self) -> None:
        """Begin to handle events and to tell the supervisor that time passes."""
        super().start()
        hub.spawn(self._tick_forever)
        if self._load is not None:
            hub.spawn(self._load.run_forever)

    def _senders(self) -> list[Callable[[Echo], None]]:
        return [connection.send for connection in list(self._connections.values()) if connection.is_open]

    def _tick_forever(self) -> None:
        while self.is_active:
            time.sleep(TICK_S)
            self.send_event(self.name, _Tick())

    @_on(_Tick)
    def _on_tick(self, _: _Tick) -> None:
        for datapath, connection in list(self._connections.items()):
            if not connection.is_open:
                self._forget(datapath)
        self._supervisor.tick(time.monotonic_ns())

    @_on(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _on_state_change(self, change: Any) -> None:
        datapath = change.datapath
        if change.state == MAIN_DISPATCHER:
            connection = self._connections[datapath] = _OsKenConnection(datapath)
            self._supervisor.connected(connection, datapath.id, time.monotonic_ns())
        elif datapath in self._connections:
            self._forget(datapath)

    def _forget(self, datapath: Datapath) -> None:
        connection = self._connections.pop(datapath)
        self._supervisor.disconnected(connection)
        connection.close()

    @_on(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def _on_barrier_reply(self, reply: Any) -> None:
        now_ns, xid = time.monotonic_ns(), reply.msg.xid
        self._handle(reply, lambda session: session.barrier_reply(now_ns, xid))

    @_on(ofp_event.EventOFPTableStatsReply, MAIN_DISPATCHER)
    def _on_table_stats(self, reply: Any) -> None:
        now_ns, xid = time.monotonic_ns(), reply.msg.xid
        active = sum(table.active_count for table in reply.msg.body)
        self._handle(reply, lambda session: session.table_stats(now_ns, xid, active))

    @_on(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def _on_flow_stats(self, reply: Any) -> None:
        now_ns, xid = time.monotonic_ns(), reply.msg.xid
        entries = [messages.entry_of(stats) for stats in reply.msg.body]
        self._handle(reply, lambda session: session.flow_stats(now_ns, xid, entries))

    @_on(ofp_event.EventOFPEchoReply, MAIN_DISPATCHER)
    def _on_echo_reply(self, reply: Any) -> None:
        now_ns, xid = time.monotonic_ns(), reply.msg.xid
        if xid < FIRST_XID:
            self._handle(reply, lambda session: session.echo_reply(now_ns, xid))

    @_on(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def _on_error(self, error: Any) -> None:
        self._handle(error, lambda session: session.error(error.msg.type, error.msg.code))

    def _handle(self, message: Any, event_of: Callable[[Any], list[Request]]) -> None:
        connection = self._connections.get(message.msg.datapath)
        if connection is not None:
            self._supervisor.handle(connection, event_of)


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket. Raises `OSError`, for example if the port is busy."""
    return socket.create_server((host, port), reuse_port=False)


def run(
    listening: socket.socket,
    tables: Mapping[int, Table],
    changed: Callable[[bool], None],
    echo_rate: Path | None = None,
) -> None:
    """Start the controller's threads on a listening socket and return.

    They inherit whether they are daemons from the calling thread (os-ken has no way to end them all).
    """
    manager = app_manager.AppManager.get_instance()
    for application in (
        manager.instantiate(_Listener, listening),
        manager.instantiate(LokoController, tables, changed, echo_rate),
    ):
        application.start()
