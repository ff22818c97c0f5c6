"""A connection's requests are handled one at a time, wherever what was read of them begins and ends."""

from __future__ import annotations

import asyncio

from gate_examples import examples
from http_connection import connect, turns
from hypothesis import given
from hypothesis import strategies as st

from loko.service.connections import ConnectionPhase
from loko.service.guard import Receive, Scope, Send

PLAIN = b"GET /plain HTTP/1.1\r\nHost: a\r\n\r\n"
REQUESTS = {
    "/plain": PLAIN,
    "/length": b"POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n" + b"\n{\r\n\r\n}GE",
    "/chunks": b"POST /chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\n\n\n\n\r\n0\r\n\r\n",
    "/upgrade": b"GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
}
BODIES = {"/length": b"\n{\r\n\r\n}GE", "/chunks": b"\n\n\n"}


class Application:
    """Answers each request when it is told to, and counts those that it has."""

    def __init__(self) -> None:
        self.handled: list[tuple[str, bytes]] = []
        self.at_once = self.most_at_once = 0
        self.may_answer = asyncio.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        await self.may_answer.acquire()
        self.handled.append((scope["path"], body))
        self.at_once -= 1
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})


@examples(60)
@given(
    paths=st.lists(st.sampled_from(sorted(REQUESTS)), min_size=1, max_size=12),
    cuts=st.lists(st.integers(1, 200), max_size=20),
)
def test_each_waits_for_the_answer_to_the_one_before(paths: list[str], cuts: list[int]) -> None:
    async def scene() -> None:
        app = Application()
        connection, transport = connect(app)
        data = b"".join(REQUESTS[path] for path in paths)
        for cut in [*cuts, len(data)]:
            part, data = data[:cut], data[cut:]
            while not transport.is_reading:
                app.may_answer.release()
                await turns()
            if part:
                connection.data_received(part)
            assert not connection.pipeline
            await turns()
        for _ in paths:
            app.may_answer.release()
            await turns()
        assert app.handled == [(path, BODIES.get(path, b"")) for path in paths]
        assert app.most_at_once == 1
        assert transport.is_reading
        assert connection._place.phase is ConnectionPhase.IDLE

    asyncio.run(scene())


def test_nothing_is_read_while_an_answer_is_unread() -> None:
    async def scene() -> None:
        app = Application()
        connection, transport = connect(app)
        connection.data_received(PLAIN)
        connection.pause_writing()
        app.may_answer.release()
        await turns()
        connection.data_received(PLAIN * 100)
        await turns()
        assert (app.at_once, transport.is_reading) == (0, False)
        assert app.handled == [("/plain", b"")]
        connection.resume_writing()
        for _ in range(100):
            app.may_answer.release()
            await turns()
        assert len(app.handled) == 101
        assert transport.is_reading

    asyncio.run(scene())
