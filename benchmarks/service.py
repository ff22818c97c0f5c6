"""Measure decisions per second of `loko serve` over REST, on many connections.

The service controls two emulated boards whose control plane costs no time, so this measures the service
itself: HTTP, admission, disk, OpenFlow framework and driver. *Refusals* request flows that do not fit.
*Cycles* request a flow, wait until both switches have confirmed it, delete it, and wait for confirmation
again. Boards and clients share the machine's cores with the service; the CPU time of each is measured as
well.
"""

from __future__ import annotations

import http.client
import itertools
import json
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from statistics import median
from typing import Final

import psutil

from benchmarks.http_load import LoadRequest, converse, request
from benchmarks.measure import BenchmarkError, Spread

LAB: Final = "two-switch"
CONNECTIONS: Final = 16
"""Number of parallel connections: as many flows as the switches' bursts allow."""
TIMEOUT_S: Final = 60.0
_PROGRAMS: Final = {
    "loko.control.shim": "OpenFlow application",
    "loko.service.rest_server": "REST",
    "loko_testbed.live.emulation": "boards",
}
"""Further processes of the service, by the module in their command lines."""


@dataclass(frozen=True, slots=True)
class Speed:
    """The rate of decisions, and the cost of one."""

    per_s: Spread
    cpu_ms: Mapping[str, float]
    """CPU time per decision, user and system, by program; medians over the turns."""


@dataclass(frozen=True, slots=True)
class ServiceSpeed:
    """The result of a run."""

    refusals: Speed
    cycles: Speed
    connections: int


@dataclass(frozen=True, slots=True)
class _Rates:
    per_s: float
    cpu_ms: Mapping[str, float]


def measure(*, repetitions: int = 5, seconds: float = 3.0) -> ServiceSpeed:
    """Measure in turns. Raises `BenchmarkError` if the service does not work."""
    refusals, cycles = [], []
    with _service() as (process, port):
        programs = _programs(process)
        for _ in range(repetitions):
            refusals.append(
                _turn(programs, port, [_refusals(place, seconds) for place in range(CONNECTIONS)], 1)
            )
            cycles.append(_turn(programs, port, [_cycles(place, seconds) for place in range(CONNECTIONS)], 2))
    return ServiceSpeed(_speed(refusals), _speed(cycles), CONNECTIONS)


def _speed(turns: Sequence[_Rates]) -> Speed:
    return Speed(
        per_s=Spread.of([turn.per_s for turn in turns]),
        cpu_ms={name: median(turn.cpu_ms[name] for turn in turns) for name in turns[0].cpu_ms},
    )


@contextmanager
def _service() -> Iterator[tuple[psutil.Popen, int]]:
    with tempfile.TemporaryDirectory() as folder:
        rest, openflow = _free_port(), _free_port()
        options = {
            "--store": Path(folder) / "flows.sqlite",
            "--rest": f"127.0.0.1:{rest}",
            "--listen": f"127.0.0.1:{openflow}",
            "--allocation": "full-rate",
            "--frame-bytes": 64,
            "--changes-per-s": 0,
            "--requests-per-s": 1_000_000,
        }
        words = [str(word) for option in options.items() for word in option]
        loko = str(Path(sys.executable).with_name("loko"))
        command = [loko, "serve", LAB, "--emulate", "--free-control", *words]
        with (Path(folder) / "log").open("w") as log:
            process = psutil.Popen(command, stdout=log, stderr=log)
        try:
            _wait_until_healthy(rest, process, Path(folder) / "log")
            yield process, rest
        finally:
            process.terminate()
            process.wait(timeout=20)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _wait_until_healthy(port: int, process: psutil.Popen, log: Path) -> None:
    end_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end_s and process.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            if connection.getresponse().status == HTTPStatus.OK:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise BenchmarkError(f"the service does not work: {log.read_text()[-300:]}")


def _programs(service: psutil.Process) -> dict[str, psutil.Process]:
    """Return the processes involved, by name."""
    programs = {"service": service}
    for child in service.children(recursive=True):
        words = child.cmdline()
        programs |= {name: child for module, name in _PROGRAMS.items() if module in words}
    return {**programs, "clients": psutil.Process()}


def _turn(
    programs: Mapping[str, psutil.Process],
    port: int,
    conversations: Sequence[Iterator[LoadRequest]],
    answers: int,
) -> _Rates:
    """Carry out all conversations in parallel; `answers` make one decision."""
    before_s = {name: _cpu_s(program) for name, program in programs.items()}
    began_s = time.monotonic()
    decisions = converse(port, conversations) / answers
    took_s = time.monotonic() - began_s
    cpu_ms = {
        name: 1e3 * (_cpu_s(program) - before_s[name]) / decisions for name, program in programs.items()
    }
    return _Rates(decisions / took_s, cpu_ms)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _refusals(place: int, seconds: float) -> Iterator[LoadRequest]:
    for count in _counted(seconds):
        yield LoadRequest(request("POST", "/v1/flows", _flow(place, count, 1e9)), HTTPStatus.CONFLICT)


def _cycles(place: int, seconds: float) -> Iterator[LoadRequest]:
    for count in _counted(seconds):
        yield LoadRequest(request("POST", "/v1/flows", _flow(place, count, 1e3)), HTTPStatus.CREATED)
        yield LoadRequest(request("DELETE", f"/v1/flows/{_name(place, count)}"), HTTPStatus.NO_CONTENT)


def _counted(seconds: float) -> Iterator[int]:
    """Yield numbers from 0 until the time is over."""
    end_s = time.monotonic() + seconds
    return itertools.takewhile(lambda _: time.monotonic() < end_s, itertools.count())


def _name(place: int, count: int) -> str:
    return f"c{place}-{count}"


def _flow(place: int, count: int, rate_bps: float) -> bytes:
    return json.dumps(
        {
            "id": _name(place, count),
            "source": "H1",
            "destination": "H3",
            "udp_source": 1000 + place,
            "udp_destination": 1 + count % 60_000,
            "rate_bps": rate_bps,
            "burst_bytes": 64,
            "frame_bytes": 64,
        }
    ).encode()
