"""The OpenFlow application: carries messages between switches and the service.

    python -m loko.control.shim SERVICE_FD WIRE_VERSION < SETTINGS

The settings are those of `ListeningSettings`. It speaks only this version of OpenFlow. It runs on os-ken, and
unchanged on Ryu (`framework`), in a process of its own. The framework does the handshake and answers the
switches' echo requests; all other messages pass unchanged. For experiments it sends its own EchoRequests as a
load (`EchoLoad`), since only here can their distance be kept. When the service ends, in whatever way, so does
this process, and with it all connections.

No thread is made for a connection that the access list does not admit, or that is beyond `SessionLimiter`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
import resource
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from loko.control import framework
from loko.control.access import Peer
from loko.control.echo_load import EchoLoad
from loko.control.rate_limited_logger import RateLimitedLogger
from loko.control.relay_protocol import (
    ListeningSettings,
    RelayMessage,
    RelayMessageKind,
    RelayMessageReader,
    SwitchIdentity,
)
from loko.control.session_limits import HANDSHAKE_S, NoFreeSessionError, SessionLimiter, SessionSlot
from loko.control.tls import TlsConnection

_CONFIG: Final = framework.handler.CONFIG_DISPATCHER
_MAIN: Final = framework.handler.MAIN_DISPATCHER
_on: Final = framework.handler.set_ev_handler
_SWEEP_S: Final = 0.5
_ENDING_S: Final = 0.002
_TRIES: Final = 500
"""How often to look, after `_ENDING_S` each, whether a connection that makes room for another has ended."""
_OWN_FILES: Final = 64
_PAUSE_S: Final = 0.1


class Upstream:
    """The service's end: takes every message of the switches, and gives what is to be sent."""

    def __init__(self, connection: socket.socket, version: int) -> None:
        self._connection = connection
        self._writing = threading.Lock()
        self._refusals = RateLimitedLogger(lambda text: self.tell(RelayMessageKind.REFUSED, 0, text.encode()))
        self._refusing = threading.Lock()
        self.switches: dict[int, Any] = {}
        self.load = EchoLoad(self._senders, framework.hub.sleep, version=version)

    def _senders(self) -> dict[int, Any]:
        return {number: switch.send for number, switch in list(self.switches.items())}

    def tell(self, kind: RelayMessageKind, number: int, data: bytes = b"") -> None:
        """Pass a frame on to the service."""
        with self._writing:
            self._connection.sendall(RelayMessage(kind, number, data).encoded())

    def refuse(self, text: str, address: str) -> None:
        """Tell the service whose connection was refused, and why; not each time if that happens often."""
        with self._refusing:
            self._refusals.warning(f": {text}", f"refused {address}")

    def sum_up(self) -> None:
        """Tell the service how often else that has happened. Call it now and then."""
        with self._refusing:
            self._refusals.log_counts()

    def listen(self) -> None:
        """Carry out what the service asks for, until it ends."""
        reader = RelayMessageReader()
        try:
            while data := self._connection.recv(65536):
                for frame in reader.messages(data):
                    switch = self.switches.get(frame.connection)
                    if frame.kind is RelayMessageKind.LOAD:
                        self.load.set_rate(float(frame.data))
                    elif switch is not None and frame.kind is RelayMessageKind.SEND:
                        if switch.is_stuck:  # it reads nothing, and would keep the others waiting
                            switch.end()
                        else:
                            self.load.carry(frame.connection, switch.send, frame.data)
                    elif switch is not None and frame.kind is RelayMessageKind.CLOSE:
                        switch.end()
        finally:
            os._exit(0)  # frameworks have no way to end all their threads


class SwitchConnection(framework.controller.Datapath):  # type: ignore[misc]
    """A connection of a switch."""

    numbers = itertools.count(1)
    service: Upstream

    def __init__(self, connection: Any, address: Any, peer: Peer, place: SessionSlot) -> None:
        super().__init__(connection, address)
        self.number = next(self.numbers)
        self._introduction: list[bytes] = []
        self._peer = peer
        self._place = place

    def set_state(self, state: Any) -> None:
        """Tell the service when the framework's handshake is complete; in 1.3 that also asks for ports."""
        super().set_state(state)
        if state == _MAIN and self.number not in self.service.switches:
            self._place.is_introduced = True
            self.service.switches[self.number] = self
            introduction = SwitchIdentity(self.id, self._peer)
            self.service.tell(RelayMessageKind.CONNECTED, self.number, introduction.encoded())
            for message in self._introduction:
                self.tell(message)

    def tell(self, message: bytes) -> None:
        """Pass a message on to the service, once that knows of the connection."""
        if self.number in self.service.switches:
            self.service.tell(RelayMessageKind.MESSAGE, self.number, message)
        else:
            self._introduction.append(message)

    @property
    def is_stuck(self) -> bool:
        """Whether so much waits to be sent that the next message would have to wait, too."""
        waiting = self.send_q
        return waiting is not None and bool(waiting.full())

    def _recv_loop(self) -> None:
        try:
            super()._recv_loop()
        finally:
            if self.service.switches.pop(self.number, None) is not None:
                self.service.tell(RelayMessageKind.DISCONNECTED, self.number)
            # The sending thread sleeps on its queue even if the connection is gone: wake it so that it ends.
            self.close()
            self.send(b"")

    def end(self) -> None:
        """Close the connection without waiting for the switch: a board keeps its half open (quirk 16)."""
        self.close()
        _end(self.socket)


class Application(framework.ofp_handler.OFPHandler):  # type: ignore[misc]
    """The framework's handshake, with the service behind it."""

    def __init__(self, settings: ListeningSettings, service: Upstream) -> None:
        super().__init__()
        self._limits = SessionLimiter(settings.access)
        self._counting = threading.Lock()
        self._listening = socket.socket(fileno=settings.listening_fd)
        self._tls_listening = self._tls = None
        if settings.tls is not None:
            self._tls_listening = socket.socket(fileno=settings.tls_listening_fd)
            self._tls = settings.tls.context()
        self._service = SwitchConnection.service = service

    def start(self) -> Any:
        """Accept switches on the given sockets instead of the framework's own."""
        _allow_files(self._limits.in_all + _OWN_FILES)
        super(framework.ofp_handler.OFPHandler, self).start()
        framework.hub.spawn(self._service.load.run_forever)
        framework.hub.spawn(self._sweep)
        if self._tls_listening is not None:
            self._tls_listening.listen(1024)
            framework.hub.spawn(self._accept, self._tls_listening, self._tls)
        self._listening.listen(1024)
        return framework.hub.spawn(self._accept, self._listening, None)

    def _accept(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        while True:
            try:
                connection, address = listening.accept()
                peer = Peer.of(address, connection.getsockname())
            except OSError:  # it has gone already, or there are no more files
                framework.hub.sleep(_PAUSE_S)
                continue
            place = self._place(peer)
            if place is None:
                connection.close()
                continue
            place.end = functools.partial(_end, connection)
            framework.hub.spawn(self._serve, connection, address, peer, place, tls)

    def _place(self, peer: Peer) -> SessionSlot | None:
        """Return a place for a connection; None, after the service was told why, if it gets none."""
        if not self._limits.is_known(peer):
            self._service.refuse("no switch of the lab may connect from there", peer.address)
            return None
        try:
            for _ in range(_TRIES):
                with self._counting:
                    silent = self._limits.blocking(peer)
                    if silent is None:
                        return self._limits.take(peer, time.monotonic())
                self._service.refuse("what says nothing makes room: there are too many", silent.address)
                silent.end()
                framework.hub.sleep(_ENDING_S)
        except NoFreeSessionError:
            pass
        self._service.refuse("there are too many connections", peer.address)
        return None

    def _serve(
        self,
        connection: socket.socket,
        address: Any,
        peer: Peer,
        place: SessionSlot,
        tls: ssl.SSLContext | None,
    ) -> None:
        switch = None
        try:
            stream: Any = connection
            if tls is not None:
                connection.settimeout(HANDSHAKE_S)
                stream = TlsConnection(connection, tls)
                peer = replace(peer, certificate=stream.names)
            switch = SwitchConnection(stream, address, peer, place)
            switch.serve()
        except Exception as problem:  # noqa: BLE001 - the frameworks' parsers fail in many ways
            what = "it failed in the TLS handshake" if switch is None else "what it sent is no OpenFlow"
            self._service.refuse(f"{what} ({type(problem).__name__})", peer.address)
        finally:
            if switch is not None:
                switch.close()
            _end(connection)
            connection.close()
            with self._counting:
                self._limits.free(place)

    def _sweep(self) -> None:
        """Close the connections of those who do not introduce themselves."""
        while True:
            framework.hub.sleep(_SWEEP_S)
            with self._counting:
                overdue = self._limits.overdue(time.monotonic())
            for place in overdue:
                self._service.refuse(f"it said nothing for {HANDSHAKE_S:g} s", place.address)
                place.end()
            self._service.sum_up()

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

    @_on(framework.ofp_event.EventOFPSwitchFeatures, [_CONFIG, _MAIN])  # type: ignore[untyped-decorator]
    def switch_features_handler(self, event: Any) -> None:
        """Pass the ports on, which are in here in 1.0; then the framework goes on with its handshake."""
        self._pass_ports(event, super().switch_features_handler)

    @_on(framework.ofp_event.EventOFPPortDescStatsReply, [_CONFIG, _MAIN])  # type: ignore[untyped-decorator]
    def multipart_reply_handler(self, event: Any) -> None:
        """Pass the ports on, which are in here in 1.3; then the framework goes on with its handshake."""
        self._pass_ports(event, super().multipart_reply_handler)

    def _pass_ports(self, event: Any, go_on: Callable[[Any], None]) -> None:
        if event.msg.datapath.state == _MAIN:  # the service has asked
            self._pass(event)
        else:
            self._tell(event)
            go_on(event)

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


def _end(connection: Any) -> None:
    with contextlib.suppress(OSError):  # it is gone already
        connection.shutdown(socket.SHUT_RDWR)


def _allow_files(wanted: int) -> None:
    """Raise the limit of open files, as far as that is possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


class _RateLimitedHandler(logging.Handler):
    """Logs the frameworks' complaints, of which any peer could cause thousands, with tracebacks."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines = RateLimitedLogger(lambda text: print(text, file=sys.stderr, flush=True))

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record in one line."""
        self._lines.warning(f" ({record.name})", record.getMessage().strip().partition("\n")[0])


def main(service_fd: int, version: int) -> None:
    """Run until the service ends."""
    logging.basicConfig(level=logging.WARNING, handlers=[_RateLimitedHandler()])
    settings = ListeningSettings.decoded(sys.stdin.read())
    framework.configure()
    service = Upstream(socket.socket(fileno=service_fd), version)
    Application.OFP_VERSIONS = [version]
    application = framework.app_manager.AppManager.get_instance().instantiate(Application, settings, service)
    application.start()
    service.listen()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
