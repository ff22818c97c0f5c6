"""The event stream: each event is put into words once for all clients that watch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Final

from loko.serve.history import noted_values
from loko.serve.outcome import Noted
from loko.serve.run import News, Operation, Over
from loko.serve.views import delay_values, flow_values, switch_values

_KEEPALIVE_S: Final = 10.0
_TOGETHER_S: Final = 0.1
"""What happens within this time is sent together."""
_BEHIND: Final = 100
"""A client that is this many messages behind misses further ones; later events show the state then."""


class EventFeed:
    """Encodes events once for all streams, while there are any."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._streams: set[asyncio.Queue[bytes | None]] = set()
        self._telling: asyncio.Task[None] | None = None

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the events for one client, until the service ends."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=_BEHIND)
        self._streams.add(queue)
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell())
        try:
            yield self._state() + self._delays()
            while (text := await queue.get()) is not None:
                yield text
        finally:
            self._streams.discard(queue)
            if not self._streams and self._telling is not None:
                self._telling.cancel()
                self._telling = None

    async def _tell(self) -> None:
        with self._operation.watching() as news:
            while True:
                heard = await _heard(news)
                if any(isinstance(observation, Over) for observation in heard):
                    self._end()
                    return
                notes = [news for news in heard if isinstance(news, Noted)]
                text = b"".join(map(_note, notes))
                changes = any(noted.what.kind != "refusal" for noted in notes)  # a refusal changes nothing
                if changes or not heard:  # now and then also to show that it lives
                    text += self._state()
                self._put(text + self._delays())

    def _put(self, text: bytes) -> None:
        for queue in self._streams:
            if not queue.full():
                queue.put_nowait(text)

    def _end(self) -> None:
        for queue in self._streams:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)

    def _state(self) -> bytes:
        keeper = self._operation.keeper
        return _event("switches", [switch_values(keeper, name) for name in keeper.lab.switches]) + _event(
            "flows", [flow_values(keeper, name) for name in keeper.promises]
        )

    def _delays(self) -> bytes:
        operation = self._operation
        return _event("delays", delay_values(operation.keeper, operation.delays))


async def _heard(news: asyncio.Queue[News]) -> list[News]:
    """Return events that follow each other closely; an empty list if none comes for a while."""
    try:
        heard = [await asyncio.wait_for(news.get(), _KEEPALIVE_S)]
    except TimeoutError:
        return []
    await asyncio.sleep(_TOGETHER_S)
    while not news.empty():
        heard.append(news.get_nowait())
    return heard


def _note(noted: Noted) -> bytes:
    return _event("note", noted_values(noted))


def _event(name: str, values: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(values)}\n\n".encode()
