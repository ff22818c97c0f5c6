"""The limit on the rate of requests, with a clock that the test sets."""

from __future__ import annotations

import asyncio

from loko.service.connections import ClientLimits, Clients
from loko.service.counters import RequestMetrics
from loko.service.guard import Guard
from loko.service.hosts import KnownHosts


class Client:
    """Sends requests through a guard and returns the status."""

    def __init__(self, requests_per_s: float, *, fails: str | None = None) -> None:
        self.now_s = 100.0
        self._fails = fails
        self._guard = Guard(
            self._inner,
            hosts=KnownHosts("127.0.0.1"),
            clients=Clients(ClientLimits.of(64, files=1024)),
            metrics=RequestMetrics(),
            token=None,
            requests_per_s=requests_per_s,
            clock_s=lambda: self.now_s,
        )

    def status(self, address: str = "192.0.2.1", path: str = "/") -> int | None:
        statuses: list[int] = []

        async def send(message) -> None:
            if self._fails is not None:
                raise RuntimeError(self._fails)
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        headers = [(b"host", b"localhost")]
        scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "client": (address, 1)}
        asyncio.run(self._guard(scope, self._receive, send))
        return statuses[0] if statuses else None

    async def _receive(self):
        return {"type": "http.request", "body": b""}

    async def _inner(self, _scope, _receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})


def test_a_burst_of_a_seconds_worth_passes_and_no_more() -> None:
    client = Client(4)
    assert [client.status() for _ in range(6)] == [200, 200, 200, 200, 429, 429]
    assert client.status("192.0.2.2") == 200, "each address has its own"
    client.now_s += 0.25
    assert [client.status() for _ in range(2)] == [200, 429]
    client.now_s += 1000
    assert [client.status() for _ in range(5)] == [200, 200, 200, 200, 429]


def test_who_asks_too_fast_gets_the_rate() -> None:
    client = Client(2)
    statuses = []
    for _ in range(160):  # eight a second for twenty seconds
        client.now_s += 0.125
        statuses.append(client.status())
    assert statuses[:2] == [200, 200]
    assert statuses[80:].count(200) == 20


def test_who_looks_after_the_service_has_requests_of_its_own() -> None:
    client = Client(1)
    assert [client.status() for _ in range(2)] == [200, 429]
    for path in ("/healthz", "/metrics"):
        client.now_s += 1
        assert [client.status(path=path) for _ in range(2)] == [200, 429]


LEFT = "unable to perform operation on <TCPTransport closed=True>; the handler is closed"


def test_a_client_that_leaves_before_its_turn_is_one_line(caplog) -> None:
    client = Client(100, fails=LEFT)
    assert [client.status() for _ in range(3)] == [None] * 3
    assert [record.getMessage() for record in caplog.records] == [
        "clients have left before they had asked, or were answered"
    ]


def test_a_fault_of_the_service_is_not_taken_for_a_client_that_left(caplog) -> None:
    assert Client(100, fails="unexpected message").status() is None
    assert [record.getMessage() for record in caplog.records] == ["GET / has failed"]
