"""A load of HTTP requests that costs little itself, as it shares the cores with what it measures.

One event loop holds all connections and keeps them alive. Each asks one thing after the other over a socket
of its own; every answer is parsed as HTTP, and its status must be the one that is expected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, cast

import httptools
import uvloop

from benchmarks.measure import BenchmarkError

SILENCE_S: Final = 60.0
"""Longest time for a whole load beyond which a service is given up."""


class Ask(NamedTuple):
    """A request, and the status that its answer must have."""

    request: bytes
    status: int


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """The bytes of a request; its body is JSON, if it has one."""
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}\r\n".encode() + body


def converse(port: int, conversations: Sequence[Iterator[Ask]]) -> int:
    """Carry out all conversations at once, each on its own connection to its end; the number of answers.

    Raises `BenchmarkError` if an answer has another status than it must, or none comes.
    """
    return uvloop.run(_converse(port, conversations))


async def _converse(port: int, conversations: Sequence[Iterator[Ask]]) -> int:
    loop = asyncio.get_running_loop()
    connections = [_Connection(asks) for asks in conversations]
    try:
        async with asyncio.timeout(SILENCE_S):
            for one in connections:
                await loop.create_connection(lambda one=one: one, "127.0.0.1", port)  # type: ignore[misc]
            await asyncio.gather(*(one.ended for one in connections))
    except TimeoutError:
        raise BenchmarkError(f"the service did not answer within {SILENCE_S:g} s") from None
    return sum(one.answers for one in connections)


class _Connection(asyncio.Protocol):
    """Asks as long as there is something to ask, then closes."""

    def __init__(self, asks: Iterator[Ask]) -> None:
        self._asks = asks
        self._parser = httptools.HttpResponseParser(self)
        self._body = b""
        self.answers = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by name
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
