"""The OpenFlow application: carries messages between switches and the service.

    python -m loko.controller.shim LISTENING_FD SERVICE_FD WIRE_VERSION

It speaks only this version of OpenFlow. It runs on os-ken, and unchanged on Ryu (`framework`), in a process
of its own. The framework does the handshake and answers the switches' echo requests; all other messages pass
unchanged. For experiments it sends its own EchoRequests as a load (`EchoLoad`), since only here can their
distance be kept. When the service ends, in whatever way, so does this process, and with it all connections.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import sys
import threading
from typing import Any, Final

from loko.controller import framework
from loko.controller.echo_load import EchoLoad
from loko.controller.frames import Frame, FrameKind, FrameReader

_CONFIG: Final = framework.handler.CONFIG_DISPATCHER
_MAIN: Final = framework.handler.MAIN_DISPATCHER
_on: Final = framework.handler.set_ev_handler


class Upstream:
    """The service's end: takes every message of the switches, and gives what is to be sent."""

    def __init__(self, connection: socket.socket, version: int) -> None:
        self._connection = connection
        self._writing = threading.Lock()
        self.switches: dict[int, Any] = {}
        self.load = EchoLoad(self._senders, framework.hub.sleep, version=version)

    def _senders(self) -> dict[int, Any]:
        return {number: switch.send for number, switch in list(self.switches.items())}

    def tell(self, kind: FrameKind, number: int, data: bytes = b"") -> None:
        """Pass a frame on to the service."""
        with self._writing:
            self._connection.sendall(Frame(kind, number, data).encoded())

    def listen(self) -> None:
        """Carry out what the service asks for, until it ends."""
        reader = FrameReader()
        try:
            while data := self._connection.recv(65536):
                for frame in reader.frames(data):
                    switch = self.switches.get(frame.connection)
                    if frame.kind is FrameKind.LOAD:
                        self.load.set_rate(float(frame.data))
                    elif switch is not None and frame.kind is FrameKind.SEND:
                        self.load.carry(frame.connection, switch.send, frame.data)
                    elif switch is not None and frame.kind is FrameKind.CLOSE:
                        switch.end()
        finally:
            os._exit(0)  # frameworks have no way to end all their threads


class Switch(framework.controller.Datapath):  # type: ignore[misc]
    """A connection of a switch."""

    numbers = itertools.count(1)
    service: Upstream

    def __init__(self, connection: socket.socket, address: Any) -> None:
        super().__init__(connection, address)
        self.number = next(self.numbers)
        self._introduction: list[bytes] = []

    def set_state(self, state: Any) -> None:
        """Tell the service when the framework's handshake is complete; in 1.3 that also asks for ports."""
        super().set_state(state)
        if state == _MAIN and self.number not in self.service.switches:
            self.service.switches[self.number] = self
            self.service.tell(FrameKind.CONNECTED, self.number, self.id.to_bytes(8, "big"))
            for message in self._introduction:
                self.tell(message)

    def tell(self, message: bytes) -> None:
        """Pass a message on to the service, once that knows of the connection."""
        if self.number in self.service.switches:
            self.service.tell(FrameKind.MESSAGE, self.number, message)
        else:
            self._introduction.append(message)

    def _recv_loop(self) -> None:
        try:
            super()._recv_loop()
        finally:
            if self.service.switches.pop(self.number, None) is not None:
                self.service.tell(FrameKind.DISCONNECTED, self.number)
            # The sending thread sleeps on its queue even if the connection is gone: wake it so that it ends.
            self.close()
            self.send(b"")

    def end(self) -> None:
        """Close the connection without waiting for the switch: a board keeps its half open (quirk 16)."""
        self.close()
        with contextlib.suppress(OSError):  # it is gone already
            self.socket.shutdown(socket.SHUT_RDWR)


class Application(framework.ofp_handler.OFPHandler):  # type: ignore[misc]
    """The framework's handshake, with the service behind it."""

    def __init__(self, listening: socket.socket, service: Upstream) -> None:
        super().__init__()
        self._listening = listening
        self._service = Switch.service = service

    def start(self) -> Any:
        """Accept switches on the given socket instead of the framework's own."""
        self._listening.listen(1024)
        super(framework.ofp_handler.OFPHandler, self).start()
        framework.hub.spawn(self._service.load.run_forever)
        return framework.hub.spawn(self._accept)

    def _accept(self) -> None:
        while True:
            connection, address = self._listening.accept()
            framework.hub.spawn(_serve, connection, address)

    @_on(framework.ofp_event.EventOFPErrorMsg, _MAIN)  # type: ignore[untyped-decorator]
    def error_msg_handler(self, event: Any) -> None:
        """Replace the framework's handler, which fails on errors of OpenFlow 1.0 and ends the session."""
        self._tell(event)

    @_on(framework.ofp_event.EventOFPBarrierReply, _MAIN)  # type: ignore[untyped-decorator]
    def _on_barrier_reply(self, event: Any) -> None:
        self._pass(event)

    @_on(framework.ofp_event.EventOFPTableStatsReply, _MAIN)  # type: ignore[untyped-decorator]
    def _on_table_stats(self, event: Any) -> None:
        self._pass(event)

    @_on(framework.ofp_event.EventOFPAggregateStatsReply, _MAIN)  # type: ignore[untyped-decorator]
    def _on_aggregate(self, event: Any) -> None:
        self._pass(event)

    @_on(framework.ofp_event.EventOFPFlowStatsReply, _MAIN)  # type: ignore[untyped-decorator]
    def _on_flow_stats(self, event: Any) -> None:
        self._pass(event)

    @_on(framework.ofp_event.EventOFPEchoReply, _MAIN)  # type: ignore[untyped-decorator]
    def echo_reply_handler(self, event: Any) -> None:
        """Replace the framework's handler: only the load asks for echoes."""
        self._replied(event)

    @_on(framework.ofp_event.EventOFPSwitchFeatures, _CONFIG)  # type: ignore[untyped-decorator]
    def switch_features_handler(self, event: Any) -> None:
        """Pass the ports on, which are in here in 1.0, before the framework goes on with its handshake."""
        self._tell(event)
        super().switch_features_handler(event)

    @_on(framework.ofp_event.EventOFPPortDescStatsReply, _CONFIG)  # type: ignore[untyped-decorator]
    def multipart_reply_handler(self, event: Any) -> None:
        """Pass the ports on, which are in here in 1.3, before the framework goes on with its handshake."""
        self._tell(event)
        super().multipart_reply_handler(event)

    @_on(framework.ofp_event.EventOFPPortStatus, [_CONFIG, _MAIN])  # type: ignore[untyped-decorator]
    def port_status_handler(self, event: Any) -> None:
        """Replace the framework's handler, which keeps the ports for nobody."""
        self._tell(event)

    def _pass(self, event: Any) -> None:
        """Pass on a reply that was waited for."""
        self._replied(event)
        self._tell(event)

    def _replied(self, event: Any) -> None:
        switch = event.msg.datapath
        self._service.load.replied(switch.number, switch.send)

    def _tell(self, event: Any) -> None:
        event.msg.datapath.tell(bytes(event.msg.buf))


def _serve(connection: socket.socket, address: Any) -> None:
    switch = Switch(connection, address)
    try:
        switch.serve()
    finally:
        switch.close()


def main(listening_fd: int, service_fd: int, version: int) -> None:
    """Run until the service ends."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    framework.configure()
    service = Upstream(socket.socket(fileno=service_fd), version)
    Application.OFP_VERSIONS = [version]
    application = framework.app_manager.AppManager.get_instance().instantiate(
        Application, socket.socket(fileno=listening_fd), service
    )
    application.start()
    service.listen()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
