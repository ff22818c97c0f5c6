"""Our programs as copies of a process that has imported their modules: an ordinary start takes a second.

Each is a process of its own with its own signals, exit status, environment and standard streams, in the
caller's folder and namespaces. Tests of the start itself, of limits on the process or of its command line
start it by `subprocess` instead.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from threading import get_native_id
from typing import Final, NamedTuple

from private_machine import enter_namespaces

from loko_testbed.cli.main import main as loko_main

_SERVER: Final = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        # Nothing that looks for plug-ins when it is imported: programs get those of their own environment.
        "loko.service.program",
        "loko_testbed.live.background",
        "loko_testbed.live.emulation.__main__",
        "loko_testbed.reproduce.schedule_check.verdict",
        "rich.markdown",
        "typer.rich_utils",
    ]
)


class PreloadedProgram:
    """A running program, operated like a `subprocess.Popen`."""

    def __init__(
        self,
        main: Callable[[], object],
        *words: object,
        out: Path,
        error: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        reads: bool = False,
    ) -> None:
        """Start `main` with these arguments. It appends to the files `out` and `error`, by default the same.

        Its standard input is empty, or, if it `reads`, open until `stdin` is closed.
        """
        reader = self.stdin = None
        if reads:
            reader, writer = _SERVER.Pipe(duplex=False)
            self.stdin = os.fdopen(os.dup(writer.fileno()), "wb")
            writer.close()
        place = _Place(Path.cwd(), Path(f"/proc/{os.getpid()}/task/{get_native_id()}/ns"))
        arguments = (main, list(map(str, words)), place, dict(environment), reader, out, error or out)
        self._process = _SERVER.Process(target=_run, args=arguments)
        self._process.start()
        if reader is not None:
            reader.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def loko(*words: object, environment: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    """Run a command as its users do, and return its status and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        out, error = Path(folder, "out"), Path(folder, "error")
        program = PreloadedProgram(loko_main, "loko", *words, out=out, error=error, environment=environment)
        return subprocess.CompletedProcess(words, program.wait(), out.read_text(), error.read_text())


class _Place(NamedTuple):
    """The folder and the namespaces in which a program runs; `private_machine` changes those of a thread."""

    folder: Path
    namespaces: Path

    def enter(self) -> None:
        here = Path("/proc/thread-self/ns")
        kinds = [
            kind for kind in ("net", "mnt") if (self.namespaces / kind).readlink() != (here / kind).readlink()
        ]
        if kinds:
            with ExitStack() as files:
                enter_namespaces(
                    [files.enter_context((self.namespaces / kind).open()).fileno() for kind in kinds]
                )
        os.chdir(self.folder)


def _run(
    main: Callable[[], object],
    words: list[str],
    place: _Place,
    environment: dict[str, str],
    reader: Connection | None,
    out: Path,
    error: Path,
) -> None:
    """Become the program, in the new process."""
    place.enter()
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = words
    for stream, file in ((sys.stdout, out), (sys.stderr, error)):
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
    if reader is not None:
        os.dup2(reader.fileno(), 0)
        reader.close()
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - until the program ends
    sys.exit(main())
