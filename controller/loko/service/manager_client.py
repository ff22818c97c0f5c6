"""The REST process's connection to the flow manager: calls, their answers, and news."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from loko.service.call_protocol import ALIVE_S, CallResponse, receive, send
from loko.service.event_streams import EncodedEvents, EventStreams
from loko.service.journal import REQUEST


class ManagerClient:
    """Passes calls on to the flow manager, and its news to the event streams.

    However many clients ask for views, the flow manager works on one at a time.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[CallResponse]] = {}
        self._viewing = asyncio.Lock()
        self._next_views: dict[tuple[str, tuple[tuple[str, str], ...]], asyncio.Task[CallResponse]] = {}
        self.events = EventStreams(lambda on: send(writer, "watch", on=on))

    async def call(self, name: str, **values: object) -> CallResponse:
        """Return the answer to a call."""
        number = next(self._numbers)
        answer: asyncio.Future[CallResponse] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        send(self._writer, "call", name=name, values=values, number=number, request=REQUEST.get())
        try:
            return await answer
        finally:
            del self._waiting[number]

    async def view(self, name: str, **values: str) -> CallResponse:
        """Return the answer to a call that changes nothing. Those who wait for the same view share it."""
        key = name, tuple(values.items())
        if key not in self._next_views:
            self._next_views[key] = asyncio.create_task(self._view(name, values))
        return await asyncio.shield(self._next_views[key])

    async def _view(self, name: str, values: dict[str, str]) -> CallResponse:
        async with self._viewing:
            del self._next_views[name, tuple(values.items())]  # whoever comes later may know of later changes
            return await self.call(name, **values)

    def ready(self) -> None:
        """Tell the flow manager that clients are accepted; from then on, that this process lives."""
        send(self._writer, "ready")
        self._living = asyncio.create_task(self._live())

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(ALIVE_S)
            send(self._writer, "alive")

    async def listen(self, end: Callable[[], None]) -> None:
        """Take in answers and news until the flow manager is gone. Call `end` when it says so."""
        while (message := await receive(self._reader)) is not None:
            values, body = message
            match values["kind"]:
                case "answer":
                    self._answer(values["number"], values, body)
                case "news":
                    state_at, delays_at = values["starts"]
                    news = EncodedEvents(body[:state_at], body[state_at:delays_at], body[delays_at:])
                    self.events.put(news)
                case "over":
                    self.events.end()
                case "end":
                    end()

    def _answer(self, number: int, values: Any, body: bytes) -> None:
        answer = self._waiting.get(number)
        if answer is None or answer.done():
            return
        if values["status"] is None:
            answer.set_exception(RuntimeError("the flow manager has failed at this call; its log says how"))
        else:
            refusal = values["refusal"] and (values["refusal"][0], values["refusal"][1])
            answer.set_result(CallResponse(values["status"], body, values["media_type"], refusal))
