"""A client's connection, with a place and deadlines (`loko.service.connections`).

uvicorn alone lets idle connections use up its `limit_concurrency`, waits for requests for as long as a client
likes, and parses all the requests that it has read at once.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from http import HTTPStatus
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from loko.control.rate_limited_logger import RateLimitedLogger
from loko.service.connections import Clients, ConnectionPhase, ConnectionSlot, client_of
from loko.service.guard import Asgi, error_body

HEADER_BYTES: Final = 65_536
_AUTHORITY_END: Final = re.compile(rb"[/?#]")


class ClientConfig(uvicorn.Config):
    """The configuration of a server whose connections share the limits of `clients`."""

    def __init__(self, app: Asgi, clients: Clients, **uvicorns: Any) -> None:
        super().__init__(app, http=ClientConnection, ws="none", lifespan="off", **uvicorns)
        self.clients = clients
        self.limited_log = RateLimitedLogger(logging.getLogger("loko.service").warning)

    def close_overdue(self) -> None:
        """Close the connections whose clients take too long. Call it now and then."""
        for place in self.clients.places.overdue(time.monotonic()):
            self.clients.too_slow += 1
            self.limited_log.warning("connections are closed whose clients take too long")
            place.refuse()
        self.limited_log.log_counts()


class ClientConnection(HttpToolsProtocol):
    """uvicorn's connection, which handles one request at a time, and reports what it waits for.

    uvicorn parses all requests in what it has read, and queues them. Here the parser gets a further request
    when the one before it is answered and nearly all of the answer has been sent; meanwhile nothing is read.
    """

    def __init__(self, config: ClientConfig, **uvicorns: Any) -> None:
        super().__init__(config, **uvicorns)
        self._clients, self._limited_log = config.clients, config.limited_log
        self._place = ConnectionSlot("", 0.0)
        self._header_bytes = 0
        self._body_bytes = 0
        """Bytes still to come of a body whose length was announced."""
        self._unparsed = bytearray()

    def _enter(self, phase: ConnectionPhase) -> None:
        self._place.enter(phase, time.monotonic())

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn does
        """Called by asyncio."""
        super().connection_made(transport)
        address = client_of(self.client[0] if self.client is not None else "")
        place, loser = self._clients.places.take(address, time.monotonic())
        if loser is not None:
            self._clients.turned_away += 1
            self._limited_log.warning("connections are closed to make room for others: there are too many")
            loser.close()
        if place is None:
            self._clients.turned_away += 1
            self._limited_log.warning("clients are turned away: the service works for too many others")
            self._refuse(503, "busy", "too many requests are being worked on; ask again")
            return
        self._place = place
        place.close, place.refuse = self._end, self._overdue

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._clients.places.free(self._place)
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
            if self._place.phase is ConnectionPhase.HEADERS and self._header_bytes > HEADER_BYTES:
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
        if self._place.phase is ConnectionPhase.IDLE:
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
            self.transport.write(_answer(status, code, message))
            self.transport.close()

    def _end(self) -> None:
        self._abandon()
        self.transport.abort()

    def _abandon(self) -> None:
        """Tell whatever waits for the rest of the request that it will not come."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()


def _answer(status: int, code: str, message: str) -> bytes:
    """Return a whole error response, after which the connection is closed."""
    body = error_body(code, message)
    head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\n" % (
        status,
        HTTPStatus(status).phrase.encode(),
    )
    return head + b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body)
