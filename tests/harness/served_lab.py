"""`loko serve` in a process of its own with emulated boards, and a client for it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import httpx
import preloaded
import psutil
from preloaded import PreloadedProgram
from reserved_port import ReservedPort

from loko.service.store_file import reading
from loko_testbed.cli.main import main as loko_main
from loko_testbed.live.emulation.__main__ import main as boards_main

CONTROLLER_PORT = 6633
"""The port at which the boards of a live lab connect to their controller."""
LOKO = str(Path(sys.executable).with_name("loko"))
TIMEOUT_S = 150.0
"""Programs take seconds to load, and much longer on a busy machine."""


def wait_for(condition: Callable[[], object], what: str, log: Callable[[], str] = str) -> None:
    end_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end_s, f"waited in vain for {what}: {log()[-2000:]}"
        time.sleep(0.05)


class ServedLab:
    """A service that can be killed and restarted while the boards keep running."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        lab: str = "two-switch",
        has_boards: bool = True,
        files: int | None = None,
        within: tuple[str, ...] = (),
        data_bytes: int | None = None,
    ) -> None:
        """`files` is the maximum number of open files (`ulimit -n`), `data_bytes` of each process (`-d`).

        `within` is a command that runs others. With any of them, the service starts as for its users;
        otherwise it is preloaded.
        """
        self.folder, self.options, self.lab = folder, options, lab
        self._ports = (ReservedPort(), ReservedPort())
        self.rest, openflow = (port.number for port in self._ports)
        self.address = f"http://127.0.0.1:{self.rest}"
        self.openflow = CONTROLLER_PORT if "--live" in options else openflow
        self.client = httpx.Client(base_url=self.address, timeout=TIMEOUT_S)
        self.process: subprocess.Popen[bytes] | PreloadedProgram | None = None
        self.boards: PreloadedProgram | None = None
        self._has_boards = has_boards
        self._limits = {"nofile": files, "data": data_bytes}
        self._within = within
        self._log_begin = 0

    def __enter__(self) -> Self:
        try:
            self.start()
            if self._has_boards:
                self.switch_on()
            self.wait_healthy()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        if self.boards is not None:
            self.switch_off()
        for port in self._ports:
            port.release()

    def start(self) -> None:
        words = [
            *(LOKO, "serve", self.lab, "--store", str(self.folder / "flows.sqlite")),
            *("--rest", f"127.0.0.1:{self.rest}", "--listen", f"127.0.0.1:{self.openflow}"),
            *("--verbose", *self.options),
        ]
        file = self.folder / "log"
        limits = [f"--{name}={most}" for name, most in self._limits.items() if most is not None]
        if not self._within and not limits:
            self.process = PreloadedProgram(loko_main, *words, out=file)
            return
        words = [*self._within, "prlimit", *limits, *words]
        with file.open("a") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def switch_on(self, *, free_control: bool = True) -> None:
        """Start the boards. Unless `free_control`, their control plane takes its time."""
        words = ["boards", self.lab, "--controller", f"127.0.0.1:{self.openflow}"]
        words += ["--free-control"] if free_control else []
        self.boards = PreloadedProgram(boards_main, *words, out=self.folder / "boards", reads=True)

    def switch_off(self) -> None:
        assert self.boards is not None
        assert self.boards.stdin is not None
        self.boards.kill()
        self.boards.wait()
        self.boards.stdin.close()

    def wait_noted(self, name: str, text: str) -> None:
        """Wait until a note is on disk, where a kill does not lose it."""

        def is_noted() -> bool:
            with reading(self.folder / "flows.sqlite") as (_, document):
                return any((note.name, note.text) == (name, text) for note in document.notes)

        wait_for(is_noted, f"'{name} {text}' on disk", self.log)

    def kill(self) -> None:
        """Send SIGKILL to the service, and wait until its own processes have left their ports, too."""
        assert self.process is not None
        children = psutil.Process(self.process.pid).children(recursive=True)
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        psutil.wait_procs(children, timeout=10)

    def application(self) -> psutil.Process:
        """Return the process of the service's OpenFlow application."""
        return self._child("loko.control.shim")

    def rest_process(self) -> psutil.Process:
        """Return the process that serves REST."""
        return self._child("loko.service.rest_server")

    def _child(self, module: str) -> psutil.Process:
        assert self.process is not None
        [found] = [
            child for child in psutil.Process(self.process.pid).children() if module in child.cmdline()
        ]
        return found

    def memory_bytes(self) -> int:
        """Return the memory that the service's processes occupy."""
        assert self.process is not None
        service = psutil.Process(self.process.pid)
        return sum(process.memory_info().rss for process in (service, *service.children(recursive=True)))

    def end(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(timeout=TIMEOUT_S)

    def is_healthy(self) -> bool:
        try:
            return self.client.get("/healthz").status_code == httpx.codes.OK
        except httpx.TransportError:
            assert self.process is not None
            assert self.process.poll() is None, self.log()
            return False

    def wait_healthy(self) -> None:
        wait_for(self.is_healthy, "the service to be healthy", self.log)

    def log(self) -> str:
        """Return the log since the last call of `begin_log`."""
        return (self.folder / "log").read_bytes()[self._log_begin :].decode()

    def begin_log(self) -> None:
        self._log_begin = (self.folder / "log").stat().st_size

    def post(self, number: int = 1, **values: object) -> httpx.Response:
        return self.client.post("/v1/flows", json=flow(number, **values))

    def flows(self) -> list[dict[str, Any]]:
        return list(self.client.get("/v1/flows").json()["flows"])

    def release_all(self) -> None:
        for flow in self.flows():
            self.client.delete(f"/v1/flows/{flow['id']}")

    def delays(self) -> dict[str, Any]:
        return dict(self.client.get("/v1/delays").json()["flows"])

    def wait_received(self, flows: set[str], packets: int) -> None:
        """Wait until exactly these flows are measured, each with more packets received than this."""

        def received() -> bool:
            delays = self.delays()
            return set(delays) == flows and all(flow["received"] > packets for flow in delays.values())

        wait_for(received, f"more than {packets} packets of each of {sorted(flows)}", self.log)

    def switches(self) -> dict[str, dict[str, Any]]:
        return {switch["name"]: switch for switch in self.client.get("/v1/switches").json()["switches"]}


def slotted(number: int, source: str = "H1", destination: str = "H3", **values: object) -> dict[str, object]:
    """Return a flow to request a slot for."""
    ends = {"source": source, "destination": destination, "udp_source": number, "udp_destination": 6000}
    return {"id": f"f{number}", **ends, "frame_bytes": 306, **values}


def made(
    folder: Path,
    *options: str,
    lab: str = "two-switch",
    ends: tuple[tuple[str, str], ...] = (("H1", "H3"), ("H4", "H2")),
) -> Path:
    """Write a schedule of four slots with one flow between each pair of hosts: f1 and f2 by default."""
    (folder / "flows.json").write_text(
        json.dumps([slotted(number, *pair) for number, pair in enumerate(ends, start=1)])
    )
    words = ["schedule", lab, folder / "flows.json", "--json", "--scheme", "s-pr", "--slots", "4"]
    done = preloaded.loko(*words, "--changes-per-s", "20", *options)
    assert done.returncode == 0, done.stderr
    (folder / "schedule.json").write_text(done.stdout)
    return folder / "schedule.json"


def survives_kills(
    lab: ServedLab, post: Callable[[int], httpx.Response], *, kills: int, first: int = 0
) -> Iterator[set[str]]:
    """Kill the service repeatedly while flows come and go; yield the remaining flows after each kill.

    `post` requests the flow with a number, starting from `first`. It is checked that acknowledged flows
    survive, that deleted flows stay deleted, and that every switch has the entries that it should have.
    """
    choice = random.Random(1)
    granted: set[str] = set()
    unsure: set[str] = set()
    count = first
    for _ in range(kills):
        killer = threading.Timer(choice.uniform(0.02, 0.4), lab.kill)
        killer.start()
        try:
            while True:
                if len(granted) > 3:
                    name = choice.choice(sorted(granted))
                    granted.discard(name)
                    unsure.add(name)
                    if lab.client.delete(f"/v1/flows/{name}").status_code == httpx.codes.NO_CONTENT:
                        unsure.discard(name)
                    continue
                count += 1
                unsure.add(f"f{count}")
                answer = post(count)
                unsure.discard(f"f{count}")
                if answer.status_code == httpx.codes.CREATED:
                    granted.add(f"f{count}")
        except httpx.TransportError:
            killer.join()
        lab.start()
        lab.wait_healthy()
        wait_for(lambda: all(flow["state"] == "installed" for flow in lab.flows()), "removals to end")
        there = {flow["id"] for flow in lab.flows()}
        assert granted <= there <= granted | unsure
        assert all(switch["complete"] for switch in lab.switches().values())
        yield there
        granted, unsure = there, set()


def flow(number: int, **values: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "id": f"f{number}",
        "source": "H1",
        "destination": "H3",
        "udp_source": number,
        "udp_destination": 6000,
        "rate_bps": 10_000,
        "burst_bytes": 306,
        "frame_bytes": 306,
    }
    return {**fields, **values}
