"""Decisions of `loko serve` a second, over REST, on many connections.

Two emulated boards whose control plane costs nothing stand behind it, so what is measured is the service:
HTTP, admission, disk, OpenFlow framework and driver. *Refusals* ask for what does not fit. *Cycles* ask for a
flow, wait until both switches have confirmed it, and delete it, until both have confirmed that.
"""

from __future__ import annotations

import http.client
import itertools
import json
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.measure import BenchmarkError, Spread

LAB: Final = "two-switch"
CONNECTIONS: Final = 16
"""As many flows at a time as the switches' bursts allow."""
CLIENTS: Final = 2
"""Processes that share the connections."""
PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class ServiceSpeed:
    """What one run has found."""

    refusals_per_s: Spread
    cycles_per_s: Spread
    connections: int


def measure(*, repetitions: int = 5, seconds: float = 3.0) -> ServiceSpeed:
    """Measure in turns. Raises `BenchmarkError` if the service does not work."""
    refusals, cycles = [], []
    with _service() as port:
        for _ in range(repetitions):
            refusals.append(_rate("refusals", port, seconds))
            cycles.append(_rate("cycles", port, seconds))
    return ServiceSpeed(Spread.of(refusals), Spread.of(cycles), CONNECTIONS)


@contextmanager
def _service() -> Iterator[int]:
    with tempfile.TemporaryDirectory() as folder:
        rest, openflow = _free_port(), _free_port()
        options = {
            "--store": Path(folder) / "flows.sqlite",
            "--rest": f"127.0.0.1:{rest}",
            "--openflow": f"127.0.0.1:{openflow}",
            "--allocation": "full-rate",
            "--frame-bytes": 64,
            "--changes-per-s": 0,
            "--requests-per-s": 1_000_000,
        }
        words = [str(word) for option in options.items() for word in option]
        loko = str(Path(sys.executable).with_name("loko"))
        command = [loko, "serve", LAB, "--emulate", "--free-control", *words]
        with (Path(folder) / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_until_healthy(rest, process, Path(folder) / "log")
            yield rest
        finally:
            process.terminate()
            process.wait(timeout=20)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _wait_until_healthy(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s and process.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise BenchmarkError(f"the service does not work: {log.read_text()[-300:]}")


def _rate(kind: str, port: int, seconds: float) -> float:
    """Decisions a second of all clients together."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(CLIENTS) as pool:
        jobs = [(kind, port, number, seconds) for number in range(CLIENTS)]
        counts = pool.starmap(_client, jobs)
    return sum(counts)


def _client(kind: str, port: int, number: int, seconds: float) -> float:
    """One process with its share of the connections: its decisions a second."""
    threads, counts = [], [0] * (CONNECTIONS // CLIENTS)
    began_s = time.monotonic()

    def converse(place: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        identity = number * 100 + place
        for count in itertools.count():
            if time.monotonic() - began_s > seconds:
                return
            if kind == "refusals":
                _ask(connection, "POST", "/v1/flows", http.HTTPStatus.CONFLICT, _flow(identity, count, 1e9))
                counts[place] += 1
            else:
                name = f"c{identity}-{count}"
                _ask(connection, "POST", "/v1/flows", http.HTTPStatus.CREATED, _flow(identity, count, 1e3))
                _ask(connection, "DELETE", f"/v1/flows/{name}", http.HTTPStatus.NO_CONTENT)
                counts[place] += 1

    for place in range(len(counts)):
        threads.append(threading.Thread(target=converse, args=(place,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - began_s)


def _flow(identity: int, count: int, rate_bps: float) -> bytes:
    return json.dumps(
        {
            "id": f"c{identity}-{count}",
            "source": "H1",
            "destination": "H3",
            "udp_source": 1000 + identity,
            "udp_destination": 1 + count % 60_000,
            "rate_bps": rate_bps,
            "burst_bytes": 64,
            "frame_bytes": 64,
        }
    ).encode()


def _ask(
    connection: http.client.HTTPConnection, method: str, path: str, expected: int, body: bytes | None = None
) -> None:
    headers = {"Content-Type": "application/json"} if body else {}
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    text = response.read()
    if response.status != expected:
        raise BenchmarkError(f"{method} {path}: {response.status} {text.decode()}")
