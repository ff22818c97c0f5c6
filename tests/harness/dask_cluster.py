"""A Dask cluster on this machine: a scheduler and workers in separate processes, on loopback."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest

TIMEOUT_S = 60.0


class Cluster(NamedTuple):
    """The address of the scheduler, and the processes of the workers."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def cluster(
    folder: Path,
    *,
    workers: int = 2,
    pythons: Sequence[Path] = (),
    surroundings: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """Start a cluster with its files in the empty `folder`, and stop it at the end.

    If `pythons` are given, one worker runs with each of these interpreters, and the scheduler with the first.
    """
    pytest.importorskip("distributed")
    told = folder / "scheduler.json"
    with ExitStack() as stack:

        def start(python: Path, program: str, *options: str) -> subprocess.Popen[bytes]:
            command = [python, "-m", f"distributed.cli.{program}", "--no-dashboard", *options]
            with (folder / f"{program}.log").open("ab") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=surroundings)
            stack.callback(process.wait, TIMEOUT_S)
            stack.callback(process.terminate)
            return process

        chosen = pythons or [Path(sys.executable)] * workers
        scheduler = start(
            chosen[0], "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(told)
        )
        while (address := _address(told)) is None:
            assert scheduler.poll() is None, (folder / "dask_scheduler.log").read_text()
            time.sleep(0.05)
        alone = ("--no-nanny", "--nthreads", "1", "--host", "127.0.0.1")
        yield Cluster(address, [start(python, "dask_worker", address, *alone) for python in chosen])


def _address(told: Path) -> str | None:
    """Return the address from the scheduler's file; None if the file does not exist or is incomplete."""
    try:
        return str(json.loads(told.read_text())["address"])
    except (FileNotFoundError, json.JSONDecodeError):
        return None


class Relay:
    """A proxy between a client and the scheduler that can cut the current connections."""

    def __init__(self, address: str) -> None:
        """Listen until the process ends; `address` is the scheduler's, ``tcp://HOST:PORT``."""
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self._scheduler = host, int(port)
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections. New ones are still accepted."""
        while self._ends:
            with suppress(OSError):  # one end has closed it already
                self._ends.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close all connections and accept no more."""
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                client, _ = self._listener.accept()
                Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(self._scheduler) as scheduler:
            self._ends += [client, scheduler]
            back = Thread(target=_carry, args=(scheduler, client), daemon=True)
            back.start()
            _carry(client, scheduler)
            back.join()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
