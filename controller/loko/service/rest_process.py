"""The REST process, as the flow manager sees it: a program of its own, whose calls it answers.

Whatever clients send, the flow manager has time for its sessions with switches: between two calls, everything
else that is due in its event loop comes first. So sessions wait for one call at most. If the REST process
ends or hangs, another takes its place; clients lose their connections then, but nothing that was requested.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable
from dataclasses import asdict
from typing import Final

from loko.control.restarts import Restarts
from loko.document import InputError
from loko.service.call_protocol import (
    ALIVE_S,
    LEAVING_S,
    LINE_BYTES,
    CallMessage,
    RestSettings,
    receive,
    send,
)
from loko.service.calls import Calls
from loko.service.event_streams import EncodedEvents
from loko.service.events import EventFeed
from loko.service.journal import REQUEST

SILENCES: Final = 10
"""A REST process that is silent this often in a row, for `ALIVE_S` each, hangs."""
_STARTING: Final = 120
"""As `SILENCES`, of one that is starting: on a busy machine, programs take long to load."""
_ENDING_S: Final = LEAVING_S + 2.0
_LOG: Final = logging.getLogger("loko.service")


class RestProcess:
    """The program `loko.service.rest_server`, from its start to its end."""

    def __init__(
        self,
        settings: RestSettings,
        listening: socket.socket,
        calls: Calls,
        feed: EventFeed,
        *,
        ready: Callable[[], None],
    ) -> None:
        """Clients connect to `listening`. `ready` is called once, when they are accepted."""
        self._settings = settings
        self._listening = listening
        self._calls = calls
        self._feed = feed
        self._restarts = Restarts("the REST process", self._start)
        self._process: Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._telling: asyncio.Task[None] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._ready: Callable[[], None] | None = ready
        self._is_ending = False
        self._silences = 0

    async def start(self) -> None:
        """Start the program. Raises `InputError`."""
        await self._restarts.begin()

    async def end(self) -> None:
        """Have the program answer those who wait, and end. It is killed if it does not."""
        self._is_ending = True
        self._restarts.end()
        self._stop_checking()
        process = self._process
        if self._writer is None or process is None:
            return
        send(self._writer, "end")
        try:
            await asyncio.wait_for(process.wait(), _ENDING_S)
        except TimeoutError:
            _LOG.error("the REST process does not end; killing it")
            process.kill()
            await process.wait()

    async def _start(self) -> None:
        near, far = socket.socketpair()
        descriptors = self._listening.fileno(), far.fileno()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "loko.service.rest_server", *map(str, descriptors)),
                pass_fds=descriptors,
                stdin=DEVNULL,
                start_new_session=True,  # Ctrl-C is for the flow manager, which then ends this program
            )
        except OSError as error:
            near.close()
            raise InputError(f"{sys.executable}: {error.strerror}") from None
        finally:
            far.close()
        reader, self._writer = await asyncio.open_connection(sock=near, limit=LINE_BYTES)
        send(self._writer, "settings", values=asdict(self._settings))
        self._checking = asyncio.create_task(self._check(self._process, _STARTING))
        self._listening_to = asyncio.create_task(self._listen(self._process, reader, self._writer))

    async def _listen(
        self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while (message := await receive(reader)) is not None:
                self._silences = 0
                self._take(message, process, writer)
                await asyncio.sleep(0)  # what is due besides comes before the next call
        except (LookupError, TypeError, ValueError):
            _LOG.exception("the REST process is not understood; killing it")
            process.kill()
        self._watch(None)
        self._stop_checking()
        writer.close()
        status = await process.wait()
        if not self._is_ending:
            self._restarts.ended(status)

    async def _check(self, process: Process, silences: int) -> None:
        """Kill a program that hangs. However long this process is kept from its work, that is one silence."""
        self._silences = 0
        while self._silences < silences:
            await asyncio.sleep(ALIVE_S)
            self._silences += 1
        _LOG.error("the REST process hangs; killing it")
        process.kill()

    def _stop_checking(self) -> None:
        if self._checking is not None:
            self._checking.cancel()

    def _take(self, message: CallMessage, process: Process, writer: asyncio.StreamWriter) -> None:
        values, _ = message
        match values["kind"]:
            case "call":
                task = asyncio.create_task(self._answer(message, writer))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)
            case "watch":
                self._watch(writer if values["on"] else None)
            case "ready":
                self._stop_checking()
                self._checking = asyncio.create_task(self._check(process, SILENCES))
                if self._ready is not None and not self._is_ending:
                    self._ready()
                    self._ready = None

    async def _answer(self, message: CallMessage, writer: asyncio.StreamWriter) -> None:
        call, _ = message
        REQUEST.set(call["request"])  # of this task alone
        try:
            answer = await self._calls.answer(call["name"], call["values"])
        except Exception:  # noqa: BLE001 - whatever it was, the caller gets an answer, and others theirs
            _LOG.exception("call '%s' has failed", call["name"])
            send(writer, "answer", number=call["number"], status=None)
            return
        values = {"status": answer.status, "media_type": answer.media_type, "refusal": answer.refusal}
        send(writer, "answer", answer.body, number=call["number"], **values)

    def _watch(self, writer: asyncio.StreamWriter | None) -> None:
        """Tell news from now on; or, without a writer, stop to."""
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        if writer is not None:
            self._telling = asyncio.create_task(self._tell(writer))

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        async def put(news: EncodedEvents) -> None:
            state_at = len(news.notes)
            send(writer, "news", b"".join(news), starts=[state_at, state_at + len(news.state)])
            await writer.drain()  # a process that reads nothing misses news

        with contextlib.suppress(ConnectionError):  # the process has ended
            await self._feed.publish(put)
            send(writer, "over")
