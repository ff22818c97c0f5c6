"""Accepts the connections of clients, with places and deadlines (`loko.service.connections`).

uvicorn alone accepts connections until the process can open no more files, and waits for requests for as long
as a client likes.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import re
import socket
import time
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from loko.control.rate_limited_logger import RateLimitedLogger
from loko.service.connections import Clients, ConnectionLimiter, ConnectionPhase, ConnectionSlot, client_of

HEADER_BYTES: Final = 65_536
SWEEP_S: Final = 0.5
_RECEIVE_BYTES: Final = 32_768
_SEND_BYTES: Final = 131_072
"""Sizes of each connection's buffers in the kernel, which also limit what is read in one go."""
_AT_ONCE: Final = 32
"""Connections to accept in one go. Those that are closed meanwhile still count."""
_PAUSE_S: Final = 0.1
_NO_FILE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_AUTHORITY_END: Final = re.compile(rb"[/?#]")
_REASONS: Final = {400: b"Bad Request", 408: b"Request Timeout", 431: b"Request Header Fields Too Large"}
_FULL: Final = 503, "busy", "too many requests are being worked on; ask again"


class ClientConnection(HttpToolsProtocol):
    """uvicorn's connection, which handles one request at a time, and reports what it waits for.

    uvicorn parses all requests in what it has read, and queues them. Here the parser gets a further request
    when the one before it is answered and nearly all of the answer has been sent; meanwhile nothing is read.
    """

    def __init__(self, places: ConnectionLimiter, place: ConnectionSlot, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._places = places
        self._place = place
        self._header_bytes = 0
        self._body_bytes = 0
        """Bytes still to come of a body whose length was announced."""
        self._unparsed = bytearray()
        place.close, place.refuse = self._end, self._overdue

    def _enter(self, phase: ConnectionPhase) -> None:
        self._place.enter(phase, time.monotonic())

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._places.free(self._place)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self._unparsed += data
        self._parse()

    def _parse(self) -> None:
        """Parse to the end of the next request. Read more only when all that was read is parsed."""
        while self._unparsed and self._may_parse():
            part = self._next_part()
            self._header_bytes += len(part)
            super().data_received(part)
            if (
                self._place.phase in {ConnectionPhase.OPEN, ConnectionPhase.HEADERS}
                and self._header_bytes > HEADER_BYTES
            ):
                self._refuse(431, "too-large", f"the headers have more than {HEADER_BYTES} bytes")
        if self._unparsed:
            self.flow.pause_reading()

    def _may_parse(self) -> bool:
        is_answered = self.cycle is None or self.cycle.response_complete
        is_incomplete = is_answered or self.cycle.more_body
        return is_incomplete and not (self.flow.write_paused or self.transport.is_closing())

    def _next_part(self) -> bytes:
        """Remove and return as much of what was read as belongs to one request: a line, or of a body."""
        line_bytes = self._unparsed.find(b"\n") + 1
        length = self._body_bytes or line_bytes or len(self._unparsed)
        part = bytes(self._unparsed[:length])
        del self._unparsed[:length]
        return part

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn."""
        self._refuse(400, "no-http", msg.removesuffix("."))

    def on_message_begin(self) -> None:
        """Called by the parser."""
        super().on_message_begin()
        self._header_bytes = 0
        if self._place.phase in {ConnectionPhase.OPEN, ConnectionPhase.IDLE}:
            self._enter(ConnectionPhase.HEADERS)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser, which leaves blanks after a value that are no part of it (RFC 9110, 5.5)."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self._resolve_target()
        super().on_headers_complete()
        self._body_bytes = int(dict(self.headers).get(b"content-length", 0))
        if self._place.phase is ConnectionPhase.HEADERS:
            self._enter(ConnectionPhase.BODY)

    def _resolve_target(self) -> None:
        """Reduce a target in absolute form to its path. Its host replaces `Host` (RFC 9112, 3.2.2)."""
        scheme, separator, rest = self.url.partition(b"://")
        if self.url.startswith(b"/") or not separator:
            return
        authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]
        path = rest[len(authority) :]
        self.url = path if path.startswith(b"/") else b"/" + path
        self.scope["scheme"] = scheme.decode("latin-1").lower()
        for place, (name, _) in enumerate(self.headers):
            if name == b"host":
                self.headers[place] = name, authority

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        super().on_body(body)
        self._body_bytes = max(0, self._body_bytes - len(body))

    def on_message_complete(self) -> None:
        """Called by the parser."""
        super().on_message_complete()
        self._body_bytes = 0  # a request to upgrade has no body, whatever it says
        if self._place.phase is ConnectionPhase.BODY:
            self._enter(ConnectionPhase.WORKING)

    def on_response_complete(self) -> None:
        """Called by uvicorn."""
        super().on_response_complete()
        self._enter(ConnectionPhase.IDLE)
        self._parse()

    def pause_writing(self) -> None:
        """Called by asyncio: the client reads more slowly than it is sent to."""
        super().pause_writing()
        self._place.stuck_s = time.monotonic()

    def resume_writing(self) -> None:
        """Called by asyncio."""
        super().resume_writing()
        self._place.stuck_s = None
        self._parse()
        if not self._unparsed:
            self.flow.resume_reading()

    def _overdue(self) -> None:
        if self._place.stuck_s is not None:
            self._end()
        else:
            self._refuse(408, "too-slow", "the request took too long to come")

    def _refuse(self, status: int, code: str, message: str) -> None:
        self._abandon()
        if not self.transport.is_closing():
            self.transport.write(_answer(status, _REASONS[status], code, message))
            self.transport.close()

    def _end(self) -> None:
        self._abandon()
        if self.transport is not None:
            self.transport.abort()

    def _abandon(self) -> None:
        """Tell whatever waits for the rest of the request that it will not come."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()


class Acceptor:
    """Accepts clients for a server, between `open` and `close`."""

    def __init__(self, listening: socket.socket, config: uvicorn.Config, clients: Clients) -> None:
        self._clients = clients
        self._listening = listening
        self._config = config
        self._limited_log = RateLimitedLogger(logging.getLogger("loko.service").warning)
        self._state = uvicorn.server.ServerState()
        self._entering: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.Task[None] | None = None
        self._is_open = False

    def open(self, state: uvicorn.server.ServerState) -> None:
        """Start to accept clients. Their connections and requests become part of the server's `state`."""
        self._state = state
        self._is_open = True
        self._listening.setblocking(False)
        self._listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        self._listen()
        self._sweeping = asyncio.get_running_loop().create_task(self._sweep_forever())

    def close(self) -> None:
        """Stop accepting clients."""
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._listening.fileno())
        if self._sweeping is not None:
            self._sweeping.cancel()

    def _listen(self) -> None:
        if self._is_open:
            asyncio.get_running_loop().add_reader(self._listening.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, address = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # it has gone already
            except OSError as error:
                if error.errno not in _NO_FILE:
                    raise
                self._wait_for_files(error)
                return
            self._let_in(connection, client_of(address[0]))

    def _wait_for_files(self, error: OSError) -> None:
        self._limited_log.warning(f"a client has to wait: {error.strerror}; raise the limit (ulimit -n)")
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._listening.fileno())
        loop.call_later(_PAUSE_S, self._listen)

    def _let_in(self, connection: socket.socket, client: str) -> None:
        place, loser = self._clients.places.take(client, time.monotonic())
        if loser is not None:
            self._clients.turned_away += 1
            self._limited_log.warning("connections are closed to make room for others: there are too many")
            loser.close()
        if place is None:
            self._clients.turned_away += 1
            self._limited_log.warning("clients are turned away: the service works for too many others")
            connection.setblocking(False)
            with contextlib.suppress(OSError):  # it may have gone
                connection.send(_answer(_FULL[0], b"Service Unavailable", *_FULL[1:]))
            connection.close()
            return
        place.close = connection.close  # until its protocol exists
        task = asyncio.get_running_loop().create_task(self._serve(connection, place))
        self._entering.add(task)
        task.add_done_callback(self._entering.discard)

    async def _serve(self, connection: socket.socket, place: ConnectionSlot) -> None:
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._protocol(place), connection
            )
        except OSError:  # it has gone, or lost its place before its protocol existed
            connection.close()
            self._clients.places.free(place)

    def _protocol(self, place: ConnectionSlot) -> ClientConnection:
        return ClientConnection(
            self._clients.places, place, config=self._config, server_state=self._state, app_state={}
        )

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            for place in self._clients.places.overdue(time.monotonic()):
                self._clients.too_slow += 1
                self._limited_log.warning("connections are closed whose clients take too long")
                place.refuse()
            self._limited_log.log_counts()


def _answer(status: int, reason: bytes, code: str, message: str) -> bytes:
    """Return a whole error response, after which the connection is closed."""
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\n" % (status, reason)
    return head + b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body)
