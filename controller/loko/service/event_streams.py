"""Event streams: what the flow manager has put into words once goes to all clients that watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple

_BEHIND: Final = 100
"""A client that is this many messages behind misses further ones; later events show the state then."""


class EncodedEvents(NamedTuple):
    """Server-sent events as bytes, in this order."""

    notes: bytes
    state: bytes
    """Switches and flows as they are; empty if they have not changed."""
    delays: bytes


class EventStreams:
    """All event streams. While there are any, the flow manager is asked for news."""

    def __init__(self, watch: Callable[[bool], None]) -> None:
        """`watch` tells the flow manager whether there are streams. News then begins with the state."""
        self._watch = watch
        self._streams: set[asyncio.Queue[bytes | None]] = set()
        self._latest: EncodedEvents | None = None

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the events for one client, until the service ends."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=_BEHIND)
        if not self._streams:
            self._latest = None
            self._watch(True)
        self._streams.add(queue)
        if self._latest is not None:
            queue.put_nowait(self._latest.state + self._latest.delays)
        try:
            while (text := await queue.get()) is not None:
                yield text
        finally:
            self._streams.discard(queue)
            if not self._streams:
                self._watch(False)

    def put(self, news: EncodedEvents) -> None:
        """Pass news on to all streams; what a stream gets first has the state."""
        if news.state:
            self._latest = news
        elif self._latest is not None:
            self._latest = self._latest._replace(delays=news.delays)
        else:
            return  # asked for by streams that are gone
        text = b"".join(news)
        for queue in self._streams:
            if not queue.full():
                queue.put_nowait(text)

    def end(self) -> None:
        """End all streams: the service ends."""
        for queue in self._streams:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)
