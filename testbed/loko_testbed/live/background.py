"""Labs that stay up after the command that started them, and the files by which they are found again.

A lab that is up is a confined tree plus files in `loko_testbed.live.state.LABS`: a description, a socket to
talk to it, and a log. Those of a lab that has ended, however it did, are recognised and removed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import socket
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any, Self

import psutil

from loko.control.address import Address
from loko.document import InputError
from loko.service.faults import Fault
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Backend, Lab
from loko_testbed.instruments.programs import require
from loko_testbed.instruments.timeouts import scaled_timeout
from loko_testbed.live.building import start
from loko_testbed.live.cards import hand_in
from loko_testbed.live.confinement import SCRATCH, Failure
from loko_testbed.live.cores import CorePlan
from loko_testbed.live.exclusion import claim_name
from loko_testbed.live.lab_capture.capture_request import CAPTURE_PROGRAM, CaptureFolder, refuse_capture
from loko_testbed.live.messages import BuildRequest, FaultRequest, LabStatus, ServeRequest, StatusRequest
from loko_testbed.live.permission import require_namespaces
from loko_testbed.live.state import LABS, remove_if_unused
from loko_testbed.simulation.captures.capture_folder import empty_folder
from loko_testbed.simulation.options import Builder
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.files import write_atomically

_ANSWER_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 10.0
_CAPTURE_TIMEOUT_S = 60.0
"""How long all that has been captured may take to be written."""
_SHELL_PREFIX = "mininet:"
_SHELL = "shell of "
_OF_ROOT = f"{LABS} belongs to root, as live labs do: run it with sudo"
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group at the other end of a socket (unix(7), SO_PEERCRED)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLine:
    """A process of a lab, seen from outside."""

    pid: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundLab:
    """A lab that was started with `up`."""

    name: str
    path: str
    pid: int
    started: float
    """When the outermost process was created: this tells it from a later process with the same pid."""

    @classmethod
    def find(cls, name: str) -> Self | None:
        """Return the running lab of this name; None if there is none.

        Removes the files of a lab that has ended. If the description is damaged, or was never written because
        the command that started the lab was killed, the lab is found by the process at its socket. Raises
        `RunError` if this user has no access.
        """
        try:
            lab = cls._noted(name) or cls._listening(name)
        except PermissionError:
            raise RunError(_OF_ROOT) from None
        if lab is not None and lab.process() is not None:
            return lab
        if _file(name).exists():  # else it may just be starting
            _forget(name)
        return None

    @classmethod
    def _noted(cls, name: str) -> Self | None:
        """Return the lab as its description says; None without a valid description."""
        try:
            noted = json.loads(_file(name).read_text(encoding="utf-8"))
            return cls(
                name=name,
                path=str(noted["path"]),
                pid=int(noted["pid"]),
                started=float(noted["started"]),
            )
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    @classmethod
    def _listening(cls, name: str) -> Self | None:
        """Return the lab found by the process that listens at its socket; None if none does.

        Writes the description anew.
        """
        with socket.socket(socket.AF_UNIX) as asking, contextlib.suppress(OSError, psutil.Error):
            asking.connect(str(_socket(name)))
            credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            first, _, _ = _CREDENTIALS.unpack(credentials)
            outermost = psutil.Process(first).parent()
            if outermost is not None:
                started = outermost.create_time()
                lab = cls(name=name, path="", pid=outermost.pid, started=started)
                lab.note()
                return lab
        return None

    @classmethod
    def all(cls) -> Iterator[Self]:
        """Yield all running labs. Raises `RunError` if this user has no access."""
        if LABS.is_dir() and not os.access(LABS, os.R_OK | os.X_OK):
            raise RunError(_OF_ROOT)
        for name in sorted({file.stem for kind in ("*.json", "*.socket") for file in LABS.glob(kind)}):
            if lab := cls.find(name):
                yield lab

    def process(self) -> psutil.Process | None:
        """Return the outermost process; None if it has ended."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < 1 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if same else None

    def status(self) -> LabStatus:
        """Ask the lab for its status. Raises `RunError` if it does not answer."""
        answer = self._ask(StatusRequest())
        if not isinstance(answer, LabStatus):
            raise RunError(f"lab {self.name}: answered with something else than its status")
        return answer

    def cause(self, fault: Fault) -> None:
        """Pull a cable of the lab, plug it in again, or restart a board. Raises `RunError`."""
        self._ask(FaultRequest(fault))

    def _ask(self, request: StatusRequest | FaultRequest) -> Any:
        try:
            with Client(str(_socket(self.name)), family="AF_UNIX") as connection:
                connection.send(request)
                if not connection.poll(scaled_timeout(_ANSWER_TIMEOUT_S)):
                    raise RunError(
                        f"lab {self.name} does not answer: end it with 'loko lab down {self.name}'"
                    )
                answer = connection.recv()
        except (OSError, EOFError) as error:
            raise RunError(
                f"lab {self.name} cannot be asked ({error}): end it with 'loko lab down {self.name}'"
            ) from None
        if isinstance(answer, Failure):
            raise RunError(f"lab {self.name}: {answer.reason}")
        return answer

    def processes(self) -> list[ProcessLine]:
        """Return all processes of the lab; commands in a host or switch are run by way of its shell."""
        outermost = self.process()
        if outermost is None:
            return []
        lines = []
        for process in outermost.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                lines.append(ProcessLine(pid=process.pid, what=_describe(process)))
        return lines

    def way_into(self, node: str) -> tuple[str, ...]:
        """Return the words to put before a command to run it in a host, or where the switches are.

        Raises `InputError` if the lab has no such node here, `RunError` if a program for it is missing.
        """
        shells = {
            line.what.removeprefix(_SHELL): line.pid
            for line in self.processes()
            if line.what.startswith(_SHELL)
        }
        if node not in shells:
            host = node.partition(":")[0]
            if host in shells:
                raise InputError(
                    f"lab {self.name}: '{node}' is an interface: give the command to the whole, '{host}'"
                )
            known = ", ".join(sorted(shells)) or "none: in a lab of containers use 'docker exec'"
            raise InputError(f"lab {self.name}: has no node '{node}' to run commands in (nodes: {known})")
        return require("mnexec"), "-a", str(shells[node])

    def down(self) -> None:
        """End the lab and wait until it is gone. Raises `RunError` if it does not go."""
        if outermost := self.process():
            self._end_capture()
            tree = [outermost, *outermost.children(recursive=True)]
            outermost.kill()
            _, left = psutil.wait_procs(tree, timeout=scaled_timeout(_END_TIMEOUT_S))
            if left:
                raise RunError(f"lab {self.name}: processes {', '.join(str(p.pid) for p in left)} do not end")
        _forget(self.name)

    def _end_capture(self) -> None:
        """Have everything written that has been captured."""
        for line in self.processes():
            if line.what == CAPTURE_PROGRAM:
                with contextlib.suppress(ProcessLookupError):
                    _terminate(line.pid, scaled_timeout(_CAPTURE_TIMEOUT_S))

    def note(self) -> None:
        """Write the description by which the lab is found, atomically. Raises `InputError`."""
        write_atomically(_file(self.name), json.dumps(asdict(self)).encode())


def up(
    lab: Lab,
    flows: tuple[Flow, ...],
    *,
    allocation: str,
    entries: int,
    openflow: OpenFlow = OpenFlow.V1_0,
    backend: Backend | None = None,
    builder: Builder = Builder.MININET,
    relaxed: bool = False,
    elsewhere: Address | None = None,
    without_quirks: tuple[str, ...] = (),
    captures: CaptureFolder | None = None,
) -> BackgroundLab:
    """Start a lab that stays up. Raises `RunError` or `InputError`, also if it is up already.

    Several `relaxed` labs may be up at once. Without flows, Loko's own controller is not started; the boards
    then connect to the controller `elsewhere`, if given.
    """
    if captures is not None:
        refuse_capture(lab.with_backend(backend), builder, captures.path, private=SCRATCH)
    require_namespaces()
    cores = CorePlan.relaxed_here() if relaxed else CorePlan.here()
    request = BuildRequest(
        lab=lab.path.resolve(),
        cabling=lab.cabling,
        flows=flows,
        paths={},
        allocation=allocation,
        entries=entries,
        openflow=openflow,
        cores=cores,
        seed=0,
        backend=backend,
        elsewhere=elsewhere,
        without_quirks=without_quirks,
        captures=captures,
    )
    with claim_name(lab.name):
        return _up(lab, request, builder)


def _up(lab: Lab, request: BuildRequest, builder: Builder) -> BackgroundLab:
    if BackgroundLab.find(lab.name):
        raise RunError(f"lab {lab.name} is up already: end it with 'loko lab down {lab.name}' first")
    if request.captures is not None:
        empty_folder(request.captures.path)
    _socket(lab.name).unlink(missing_ok=True)
    tree, request = start(lab, request, builder, outlive=True, log=_log(lab.name))
    try:
        hand_in(lab, tree.pid)
        tree.request(request)
        tree.request(ServeRequest(_socket(lab.name)))
        started = psutil.Process(tree.pid).create_time()
        running = BackgroundLab(name=lab.name, path=str(lab.path), pid=tree.pid, started=started)
        running.note()
    except BaseException:
        tree.close()
        _forget(lab.name)
        raise
    tree.release()
    return running


def _terminate(pid: int, timeout_s: float) -> None:
    """Have a process end, and wait until it has. Raises `ProcessLookupError` if there is none."""
    process = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        # psutil would also wait until the parent has asked for the status, and the lab may never do that.
        select.select([process], [], [], timeout_s)
    finally:
        os.close(process)


def _describe(process: psutil.Process) -> str:
    command = process.cmdline()
    if command and command[-1].startswith(_SHELL_PREFIX):
        return f"{_SHELL}{command[-1].removeprefix(_SHELL_PREFIX)}"
    modules = [word for flag, word in itertools.pairwise(command) if flag == "-m"]
    return modules[0] if modules else process.name()


def _forget(name: str) -> None:
    """Remove the files of a lab that has ended."""
    for file in (_file(name), _socket(name), _log(name)):
        file.unlink(missing_ok=True)
    remove_if_unused()


def _file(name: str) -> Path:
    return LABS / f"{name}.json"


def _socket(name: str) -> Path:
    return LABS / f"{name}.socket"


def _log(name: str) -> Path:
    return LABS / f"{name}.log"
