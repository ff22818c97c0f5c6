"""Which requests are taken and which are refused, by RFC 9110 and RFC 9112, byte by byte."""

from __future__ import annotations

import asyncio
import json

import pytest
from http_connection import connect, turns

from loko.service.connections import ClientLimits, Clients
from loko.service.counters import RequestMetrics
from loko.service.guard import Guard, Receive, Scope, Send
from loko.service.hosts import KnownHosts

OWN = b"127.0.0.1:8080"
TOKEN = "a-token-of-enough-length"
AUTHORIZED = f"Authorization: Bearer {TOKEN}".encode()


class Service:
    """Takes every request that passes the guard, and records where it leads."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, bytes, bytes]] = []
        self._guard = Guard(
            self._take,
            hosts=KnownHosts("127.0.0.1"),
            clients=Clients(ClientLimits.of(64, files=1024)),
            metrics=RequestMetrics(),
            token=TOKEN,
            requests_per_s=1000,
        )

    async def _take(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        self.taken.append((scope["method"], scope["path"], scope["query_string"], message["body"]))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    def answer(self, request: bytes) -> tuple[int, str]:
        """Return the status and the error code, if any, of the only answer to a request."""

        async def scene() -> bytes:
            connection, transport = connect(self._guard)
            connection.data_received(request)
            await turns(16)
            return transport.written

        head, _, body = asyncio.run(scene()).partition(b"\r\n\r\n")
        assert head.count(b"HTTP/1.1 ") == 1
        error = json.loads(body)["error"] if body else {"code": "", "message": ""}
        assert "\n" not in error["message"]
        return int(head.split()[1]), error["code"]


def post(*headers: bytes, body: bytes = b"{}") -> bytes:
    return b"\r\n".join((b"POST /v1/flows HTTP/1.1", AUTHORIZED, *headers, b"", body))


def get(target: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join((b"GET %s HTTP/1.1" % target, *headers, b"", b""))


@pytest.mark.parametrize("blanks", [b"", b" ", b"\t", b" \t  "])
@pytest.mark.parametrize("padded", [b"Content-Length", b"Host", b"Origin", b"Authorization"])
def test_blanks_around_a_value_are_no_part_of_it(padded: bytes, blanks: bytes) -> None:
    values = {
        b"Content-Length": b"2",
        b"Host": OWN,
        b"Origin": b"http://" + OWN,
        b"Authorization": b"Bearer " + TOKEN.encode(),
    }
    values[padded] = blanks + values[padded] + blanks
    lines = [b"%s: %s" % header for header in values.items()]
    service = Service()
    assert service.answer(b"\r\n".join((b"POST /v1/flows HTTP/1.1", *lines, b"", b"{}"))) == (200, "")
    assert service.taken == [("POST", "/v1/flows", b"", b"{}")]


@pytest.mark.parametrize(
    ("length", "answer"),
    [
        (b"16384 ", (200, "")),
        (b"16385 ", (413, "too-large")),
        (b"18446744073709551615", (413, "too-large")),
        (b"18446744073709551616", (400, "no-http")),
        *((wrong, (400, "no-http")) for wrong in (b"", b" ", b"-1", b"+1", b"1_0", b"0x2", b"2 2", b"2, 2")),
    ],
)
def test_a_length_is_a_number_of_bytes(length: bytes, answer: tuple[int, str]) -> None:
    request = post(b"Host: " + OWN, b"Content-Length: " + length, body=bytes(16384))
    assert Service().answer(request) == answer


@pytest.mark.parametrize("values", [(b"http://" + OWN, b"http://evil.example"), (b"http://" + OWN,) * 2])
@pytest.mark.parametrize("name", [b"Origin", b"origin"])
def test_two_origins_are_refused(name: bytes, values: tuple[bytes, bytes]) -> None:
    for first, second in (values, values[::-1]):
        request = post(b"Host: " + OWN, b"Origin: " + first, name + b": " + second, b"Content-Length: 2")
        service = Service()
        assert service.answer(request) == (400, "repeated-header")
        assert service.taken == []


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (AUTHORIZED, "repeated-header"),
        (b"Content-Type: application/json", "repeated-header"),
        (b"Host: " + OWN, "no-host"),
        (b"Content-Length: 2", "no-http"),
    ],
)
def test_no_header_that_decides_may_be_repeated(header: bytes, code: str) -> None:
    once = [b"Host: " + OWN, b"Content-Type: application/json", b"Content-Length: 2"]
    assert Service().answer(post(*once)) == (200, "")
    assert Service().answer(post(*once, header)) == (400, code)


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        (b"http://127.0.0.1:8080/v1/flows?a=/b", (200, "")),
        (b"HTTP://localhost/v1/flows?a=/b", (200, "")),
        (b"http://[::1]:8080/v1/flows?a=/b", (200, "")),
        (b"http://evil.example/v1/flows", (421, "foreign-host")),
        (b"http://evil.example:8080?/v1/flows", (421, "foreign-host")),
        (b"http://127.0.0.1%00/v1/flows", (421, "foreign-host")),
        (b"http://127.0.0.1@evil.example/v1/flows", (400, "no-host")),
        (b"http://evil.example@127.0.0.1/v1/flows", (400, "no-host")),
        (b"https://127.0.0.1:8080/v1/flows", (421, "foreign-scheme")),
        (b"ftp://127.0.0.1:8080/v1/flows", (421, "foreign-scheme")),
        (b"http:///v1/flows", (400, "no-host")),
        (b"mailto:127.0.0.1", (400, "no-http")),
        (b"v1/flows", (400, "no-http")),
    ],
)
def test_the_host_of_an_absolute_target_counts(target: bytes, answer: tuple[int, str]) -> None:
    service = Service()
    assert service.answer(get(target, b"Host: " + OWN)) == answer
    assert service.taken == ([("GET", "/v1/flows", b"a=/b", b"")] if answer[0] == 200 else [])


def test_an_absolute_target_without_a_path_means_the_root() -> None:
    service = Service()
    assert service.answer(get(b"http://localhost?a", b"Host: evil.example")) == (200, "")
    assert service.taken == [("GET", "/", b"a", b"")]


def test_an_absolute_target_does_not_replace_a_missing_or_second_host() -> None:
    target = b"http://" + OWN + b"/"
    assert Service().answer(get(target)) == (400, "no-host")
    assert Service().answer(get(target, b"Host: " + OWN, b"Host: " + OWN)) == (400, "no-host")


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        (b"127.0.0.1%00", (421, "foreign-host")),
        (b"localhost%2e", (421, "foreign-host")),
        (b"evil.example", (421, "foreign-host")),
        (b"127.0.0.1%", (400, "no-host")),
        (b"[::1%25lo]", (400, "no-host")),
        (b"[::1%lo]", (400, "no-host")),
        (b"127.0.0.1\x00", (400, "no-http")),
        (b"127.0.0.1\xa0", (400, "no-host")),
        (b"", (400, "no-host")),
        (b"localhost:eighty", (400, "no-host")),
        (b"user@localhost", (400, "no-host")),
        (b"localhost, evil.example", (400, "no-host")),
        (b"localhost/", (400, "no-host")),
    ],
)
def test_a_host_is_an_address_or_a_name(host: bytes, answer: tuple[int, str]) -> None:
    service = Service()
    assert service.answer(get(b"/v1/flows", b"Host: " + host)) == answer
    assert service.taken == []
