"""A generator of HTTP requests that uses little CPU time, because it shares the cores with the service.

One event loop serves all connections. Each connection sends one request after another; every answer is parsed
as HTTP and must have the expected status.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, cast

import httptools
import uvloop

from benchmarks.measure import BenchmarkError

SILENCE_S: Final = 60.0
"""Timeout of a whole load."""


class LoadRequest(NamedTuple):
    """A request and the expected status of its answer."""

    request: bytes
    status: int


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """Encode a request; its body, if any, is JSON."""
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}\r\n".encode() + body


def converse(port: int, conversations: Sequence[Iterator[LoadRequest]]) -> int:
    """Carry out all conversations in parallel, each on its own connection; return the number of answers.

    Raises `BenchmarkError` if an answer has an unexpected status or is missing.
    """
    return uvloop.run(_converse(port, conversations))


async def _converse(port: int, conversations: Sequence[Iterator[LoadRequest]]) -> int:
    loop = asyncio.get_running_loop()
    connections = [_Connection(asks) for asks in conversations]
    try:
        async with asyncio.timeout(SILENCE_S):
            for connection in connections:
                await loop.create_connection(lambda connection=connection: connection, "127.0.0.1", port)  # type: ignore[misc]
            await asyncio.gather(*(connection.ended for connection in connections))
    except TimeoutError:
        raise BenchmarkError(f"the service did not answer within {SILENCE_S:g} s") from None
    return sum(connection.answers for connection in connections)


class _Connection(asyncio.Protocol):
    """Sends its requests one after the other, then closes."""

    def __init__(self, asks: Iterator[LoadRequest]) -> None:
        self._asks = asks
        self._parser = httptools.HttpResponseParser(self)
        self._body = b""
        self.answers = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self._ask_next()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self._parser.feed_data(data)

    def connection_lost(self, problem: Exception | None) -> None:
        """Called by asyncio."""
        self._end(BenchmarkError(f"the service has hung up: {problem or 'without a word'}"))

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        self._body += body

    def on_message_complete(self) -> None:
        """Called by the parser."""
        body, self._body = self._body, b""
        status = self._parser.get_status_code()
        if status != self._asked.status:
            what = self._asked.request.partition(b" HTTP/")[0].decode()
            self._end(BenchmarkError(f"{what}: {status} {body.decode()}"))
            return
        self.answers += 1
        self._ask_next()

    def _ask_next(self) -> None:
        ask = next(self._asks, None)
        if ask is None:
            self._end(None)
            return
        self._asked = ask
        self._transport.write(ask.request)

    def _end(self, problem: BenchmarkError | None) -> None:
        if self.ended.done():
            return
        if problem is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(problem)
        self._transport.close()
