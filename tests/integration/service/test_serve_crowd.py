"""`loko serve` when clients are many, slow, or gone: it keeps answering others and logs this once."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from served_lab import TIMEOUT_S, ServedLab, flow, wait_for

FILES = 1024
DATA_BYTES = 1 << 30
"""More than the service ever needs, and so little that a fault in it does no harm to the machine."""
GREEDY_BYTES = 40 << 20
"""More memory than clients may cost that send many requests and read no answer."""
HEADERS = b"POST /v1/flows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HALF = {
    "headers": HEADERS,
    "body": HEADERS + b"Content-Length: 500\r\n\r\n{",
    "chunks": HEADERS + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    folder, any_rate = tmp_path_factory.mktemp("crowd"), ("--requests-per-s", "1000000")
    with ServedLab(folder, *any_rate, files=FILES, data_bytes=DATA_BYTES) as lab:
        yield lab


def connection(served: ServedLab) -> socket.socket:
    """Return a connection to the service whose receive buffer is as small as the system allows."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.settimeout(TIMEOUT_S)
    client.connect(("127.0.0.1", served.rest))
    return client


@contextlib.contextmanager
def crowd(served: ServedLab, count: int, said: bytes = b"") -> Iterator[list[socket.socket]]:
    """Open this many connections, each of which sends `said`."""
    with contextlib.ExitStack() as open_:
        clients = []
        for _ in range(count):
            client = open_.enter_context(connection(served))
            with contextlib.suppress(ConnectionError):  # the service may have closed it
                client.sendall(said)
            clients.append(client)
        yield clients


def is_served(served: ServedLab) -> None:
    """Check that a new client is served: health, a view, an admission, a release."""
    served.client.close()
    served.client = type(served.client)(base_url=served.address, timeout=TIMEOUT_S)
    assert served.is_healthy()
    assert served.flows() == []
    assert served.post(1).status_code == 201
    assert served.client.delete("/v1/flows/f1").status_code == 204


def answer_on(client: socket.socket) -> bytes:
    """Return everything received until the service closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while data := client.recv(65536):
            parts.append(data)
    return b"".join(parts)


def send_forever(client: socket.socket, data: bytes) -> None:
    while True:
        client.sendall(data)


def send_until_closed(client: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        client.sendall(data)


def too_slow(served: ServedLab) -> float:
    """Return how many connections were closed because their clients took too long."""
    [text] = re.findall(r"^loko_clients_too_slow_total (\S+)", served.client.get("/metrics").text, re.M)
    return float(text)


def lines_with(served: ServedLab, text: str) -> int:
    return sum(text in line for line in served.log().splitlines())


@pytest.mark.parametrize("half", HALF)
def test_half_sent_requests_leave_room(served: ServedLab, half: str) -> None:
    with crowd(served, 500, HALF[half]):
        is_served(served)


def test_idle_connections_beyond_the_limit_of_files_leave_room(served: ServedLab) -> None:
    with crowd(served, FILES + 76):
        is_served(served)
        assert lines_with(served, "connections are closed to make room") == 1


def test_event_streams_beyond_the_limit_are_refused_and_leave_room(served: ServedLab) -> None:
    request = b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with crowd(served, 400, request) as clients:  # above the limit of streams, below that of requests
        is_served(served)
        first, last = clients[0].recv(65536), answer_on(clients[-1])
    assert first.startswith(b"HTTP/1.1 200 OK")
    assert last.startswith(b"HTTP/1.1 429 ")
    assert b'"code": "busy"' in last
    metrics = served.client.get("/metrics").text
    assert lines_with(served, "too many are open at once") == 1
    assert 'loko_refusals_total{quantity="",reason="busy"}' in metrics
    wait_for(
        lambda: 'loko_clients{kind="streams"} 0.0' in served.client.get("/metrics").text,
        "the streams to be given up",
    )
    with served.client.stream("GET", "/v1/events") as stream:
        assert stream.status_code == 200


def test_500_clients_that_leave_are_one_line(served: ServedLab) -> None:
    for _ in range(500):
        with crowd(served, 1, HALF["body"]):
            pass
    is_served(served)
    wait_for(lambda: lines_with(served, "clients have left"), "the service to notice")
    assert lines_with(served, "clients have left") == 1
    assert "Traceback" not in served.log()


def test_who_takes_too_long_is_told_so(served: ServedLab) -> None:
    with contextlib.ExitStack() as open_:
        slow = [open_.enter_context(crowd(served, 1, said))[0] for said in HALF.values()]
        silent = open_.enter_context(crowd(served, 1))[0]
        for client in (*slow, silent):
            answer = answer_on(client)
            assert answer.startswith(b"HTTP/1.1 408 "), answer
            assert b'"code": "too-slow"' in answer
    is_served(served)


def test_headers_without_end_are_refused(served: ServedLab) -> None:
    with crowd(served, 1, HEADERS) as [client]:
        with contextlib.suppress(ConnectionError):
            for number in range(10_000):
                client.sendall(b"x-%d: %s\r\n" % (number, b"x" * 100))
        with contextlib.suppress(ConnectionError):
            answer = client.recv(65536)
            assert answer.startswith(b"HTTP/1.1 431 ")
    is_served(served)


def test_what_is_no_http_is_answered_in_the_shape_of_all_errors(served: ServedLab) -> None:
    with crowd(served, 1, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n") as [client]:
        answer = answer_on(client)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'{"error": {"code": "no-http", ' in answer


def test_who_does_not_read_loses_the_connection(served: ServedLab) -> None:
    """A client sends requests endlessly and never reads the answers."""
    request = b"GET /page/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connection(served) as client, pytest.raises(ConnectionError):
        send_forever(client, request)
    is_served(served)
    assert "Traceback" not in served.log()


def test_kept_connections_are_used_again(served: ServedLab) -> None:
    """The limits for many connections do not affect a single one."""
    for number in range(1, 30):
        assert served.client.post("/v1/flows", json=flow(number)).status_code == 201
        assert served.client.delete(f"/v1/flows/f{number}").status_code == 204
    assert 'loko_clients{kind="connections"} 1.0' in served.client.get("/metrics").text


@pytest.mark.parametrize(("clients", "each_bytes"), [(1, 10_000_000), (16, 250_000)])
def test_requests_whose_answers_nobody_reads_take_little_memory(
    served: ServedLab, clients: int, each_bytes: int
) -> None:
    """Clients send requests one after the other, and read nothing until the service closes the connection."""
    is_served(served)
    request = b"GET /v1/flows HTTP/1.1\r\nHost: localhost\r\n\r\n"
    sent = request * (each_bytes // len(request))
    before_bytes, closed = served.memory_bytes(), too_slow(served)
    with crowd(served, clients) as sockets, ThreadPoolExecutor(clients) as senders:
        for client in sockets:
            senders.submit(send_until_closed, client, sent)

        def all_are_closed() -> bool:
            assert served.memory_bytes() - before_bytes < GREEDY_BYTES
            return too_slow(served) >= closed + clients

        wait_for(all_are_closed, "the service to close all connections")
    is_served(served)
    assert "Traceback" not in served.log()
