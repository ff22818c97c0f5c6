"""The flow manager and the REST process talk: whose turn it is, what is shared, and what a fault costs."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from loko.service.call_protocol import CallResponse, RestSettings, receive, send
from loko.service.event_streams import EncodedEvents
from loko.service.journal import LogFormat
from loko.service.manager_client import ManagerClient
from loko.service.rest_process import RestProcess

CALLS = 50
SETTINGS = RestSettings(
    host="127.0.0.1",
    allow_hosts=(),
    token=None,
    requests_per_s=1.0,
    connections=64,
    files=1024,
    gives_slots=False,
    emulates=True,
    log_format=LogFormat.TEXT,
    verbose=False,
)
Work = Callable[[str], Coroutine[Any, Any, CallResponse]]


class Calls:
    """Stands in for the calls that the flow manager answers."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def answer(self, name: str, _values: Mapping[str, Any]) -> CallResponse:
        return await self._work(name)


class Program:
    """Stands in for the operating system's process, which has ended when the connection has."""

    async def wait(self) -> int:
        return 0


class HangingProgram(Program):
    """Stands in for one that says nothing until it is killed."""

    def __init__(self) -> None:
        self.killed = asyncio.Event()

    def kill(self) -> None:
        self.killed.set()

    async def wait(self) -> int:
        await self.killed.wait()
        return -9


def rest_process(calls: Calls | None = None, feed: EndlessFeed | None = None) -> RestProcess:
    """Return the flow manager's view of a REST process, which is not started, nor started again."""
    rest = RestProcess(SETTINGS, None, calls, feed, ready=pytest.fail)  # type: ignore[arg-type]
    rest._is_ending = True
    return rest


@asynccontextmanager
async def answering(work: Work) -> AsyncIterator[ManagerClient]:
    """Give the connection to a flow manager whose calls are answered by `work`."""
    near, far = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=far)
    async with serving(rest_process(Calls(work)), near):
        manager = ManagerClient(reader, writer)
        listening = asyncio.create_task(manager.listen(pytest.fail))
        yield manager
        listening.cancel()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def serving(rest: RestProcess, near: socket.socket) -> AsyncIterator[None]:
    """Answer what comes on a socket. Its other end must be closed within."""
    reader, writer = await asyncio.open_connection(sock=near)
    listening = asyncio.create_task(rest._listen(Program(), reader, writer))  # type: ignore[arg-type]
    yield
    await listening
    with suppress(ConnectionError):  # something was to be sent still
        await writer.wait_closed()


def test_sessions_wait_for_no_more_than_the_call_that_is_being_answered() -> None:
    """Many calls are waiting when a switch's message comes: it is taken in before them."""

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        switch, session = socket.socketpair()
        answered, lags = 0, []

        async def work(_name: str) -> CallResponse:
            nonlocal answered
            answered += 1
            switch.send(answered.to_bytes())
            return CallResponse(200)

        def switch_said() -> None:
            lags.append(answered - session.recv(100)[0])  # since the first one that it reads

        loop.add_reader(session, switch_said)
        async with answering(work) as manager:
            await asyncio.gather(*(manager.call("decide") for _ in range(CALLS)))
        loop.remove_reader(session)
        assert answered == CALLS
        assert max(lags) <= 2
        switch.close()
        session.close()

    asyncio.run(scene())


def test_views_are_worked_on_one_at_a_time_and_shared_by_those_who_wait() -> None:
    async def scene() -> None:
        at_work: list[str] = []
        may_go_on = asyncio.Event()
        done: list[str] = []

        async def work(name: str) -> CallResponse:
            at_work.append(name)
            assert len(at_work) == 1
            await may_go_on.wait()
            at_work.remove(name)
            done.append(name)
            return CallResponse(200, str(len(done)).encode())

        async with answering(work) as manager:
            first = asyncio.create_task(manager.view("flows"))
            while not at_work:
                await asyncio.sleep(0)
            later = [asyncio.create_task(manager.view(name)) for name in ["flows", "health"] * CALLS]
            await asyncio.sleep(0)
            may_go_on.set()
            assert (await first).body == b"1"
            assert {answer.body for answer in await asyncio.gather(*later)} == {b"2", b"3"}
        assert done == ["flows", "flows", "health"], "who came later was not told of before"

    asyncio.run(scene())


def test_a_call_that_fails_costs_no_other() -> None:
    async def scene() -> None:
        async def work(name: str) -> CallResponse:
            return {"good": CallResponse(404, b"body", "text/plain", ("unknown", ""))}[name]

        async with answering(work) as manager:
            bad, good = await asyncio.gather(
                manager.call("bad"), manager.call("good", text="a\nb"), return_exceptions=True
            )
        assert isinstance(bad, RuntimeError)
        assert good == CallResponse(404, b"body", "text/plain", ("unknown", ""))

    asyncio.run(scene())


class EndlessFeed:
    """Stands in for the feed of events: there is always more, each time 100,000 bytes."""

    def __init__(self) -> None:
        self.put = 0

    async def publish(self, put: Callable[[EncodedEvents], Coroutine[Any, Any, None]]) -> None:
        while True:
            await put(EncodedEvents(bytes(100_000), b"", b""))
            self.put += 1
            await asyncio.sleep(0)


def test_a_rest_process_that_reads_nothing_gets_no_more_news() -> None:
    """News waits in the kernel and in one buffer, not in memory without end."""

    async def scene() -> None:
        near, far = socket.socketpair()
        feed = EndlessFeed()
        async with serving(rest_process(feed=feed), near):
            far.sendall(b'{"kind": "watch", "length": 0, "on": true}\n')
            before = -1
            while feed.put > before:
                before = feed.put
                for _ in range(100):
                    await asyncio.sleep(0)
            far.close()
        assert 0 < feed.put < 20

    asyncio.run(scene())


def test_the_end_of_the_other_end_is_no_message() -> None:
    async def scene() -> None:
        near, far = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=near)
        far.sendall(b'{"kind": "answer", "length": 5}\nhal')
        far.close()
        assert await receive(reader) is None
        send(writer, "end")
        writer.close()
        send(writer, "end")
        with suppress(ConnectionError):
            await writer.wait_closed()

    asyncio.run(scene())


def test_a_rest_process_that_hangs_as_it_starts_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        program = HangingProgram()

        async def started(*_: object, pass_fds: tuple[int, int], **__: object) -> HangingProgram:
            open_.callback(os.close, os.dup(pass_fds[1]))
            return program

        monkeypatch.setattr("asyncio.create_subprocess_exec", started)
        monkeypatch.setattr("loko.service.rest_process.ALIVE_S", 0.001)
        rest = rest_process()
        with ExitStack() as open_:
            rest._listening = open_.enter_context(socket.socket())
            await rest._start()
            await asyncio.wait_for(program.killed.wait(), timeout=20)

    asyncio.run(scene())
