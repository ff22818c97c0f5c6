"""Labs that stay up after the command that started them, and the files by which they are found again.

A lab that is up is a confined tree plus files in `state_folder()`: a description, a socket to talk to it, and
a log. Those of a lab that has ended, however it did, are recognised and removed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Client
from pathlib import Path
from typing import Self

import psutil

from evaluation.live.building import start
from evaluation.live.cards import hand_in
from evaluation.live.confinement import Failure
from evaluation.live.cores import CorePlan
from evaluation.live.messages import BuildRequest, LabStatus, ServeRequest, StatusRequest
from evaluation.live.patience import patient
from evaluation.options import Builder
from evaluation.runner import RunError
from loko.flow import Flow
from loko.lab import Backend, Lab

_ANSWER_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 10.0
_SHELL_PREFIX = "mininet:"


def state_folder() -> Path:
    """Where running labs are noted: ``/run/loko`` for root, else ``$XDG_RUNTIME_DIR/loko``."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path("/run/loko") if os.geteuid() == 0 or not runtime else Path(runtime) / "loko"


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
    """When the outermost process was created; tells it from a later one with the same number."""

    @classmethod
    def find(cls, name: str) -> Self | None:
        """The running lab of this name, if any. Forgets one that has ended."""
        file = _file(name)
        try:
            lab = cls(**json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            raise RunError(f"{file}: is damaged: remove it, then look for left processes with 'ps'") from None
        if lab.process() is None:
            lab.forget()
            return None
        return lab

    @classmethod
    def all(cls) -> Iterator[Self]:
        """All running labs."""
        for file in sorted(state_folder().glob("*.json")):
            if lab := cls.find(file.stem):
                yield lab

    def process(self) -> psutil.Process | None:
        """The outermost process, if it still runs."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < 1 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if same else None

    def status(self) -> LabStatus:
        """What the lab says of itself. Raises `RunError` if it does not answer."""
        try:
            with Client(str(_socket(self.name)), family="AF_UNIX") as connection:
                connection.send(StatusRequest())
                if not connection.poll(patient(_ANSWER_TIMEOUT_S)):
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
        if not isinstance(answer, LabStatus):
            raise RunError(f"lab {self.name}: answered with something else than its status")
        return answer

    def processes(self) -> list[ProcessLine]:
        """All processes of the lab; a host's or a switch's shell is the way into it."""
        outermost = self.process()
        if outermost is None:
            return []
        lines = []
        for process in outermost.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                lines.append(ProcessLine(pid=process.pid, what=_describe(process)))
        return lines

    def down(self) -> None:
        """End the lab and wait until it is gone. Raises `RunError` if it does not go."""
        if outermost := self.process():
            tree = [outermost, *outermost.children(recursive=True)]
            outermost.kill()
            _, left = psutil.wait_procs(tree, timeout=patient(_END_TIMEOUT_S))
            if left:
                raise RunError(f"lab {self.name}: processes {', '.join(str(p.pid) for p in left)} do not end")
        self.forget()

    def forget(self) -> None:
        """Remove the files of a lab that has ended."""
        for file in (_file(self.name), _socket(self.name), _log(self.name)):
            file.unlink(missing_ok=True)
        _remove_empty_folder()


def up(
    lab: Lab,
    flows: tuple[Flow, ...],
    *,
    allocation: str,
    entries: int,
    backend: Backend | None = None,
    builder: Builder = Builder.MININET,
) -> BackgroundLab:
    """Start a lab that stays. Raises `RunError` or `InputError`, also if it is up already."""
    if BackgroundLab.find(lab.name):
        raise RunError(f"lab {lab.name} is up already: end it with 'loko lab down {lab.name}' first")
    folder = state_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _socket(lab.name).unlink(missing_ok=True)
    request = BuildRequest(
        lab=lab.path.resolve(),
        cabling=lab.cabling,
        flows=flows,
        paths={},
        allocation=allocation,
        entries=entries,
        cores=CorePlan.here(),
        seed=0,
        backend=backend,
    )
    tree, request = start(lab, request, builder, outlive=True, log=_log(lab.name))
    try:
        hand_in(lab, tree.pid)
        tree.request(request)
        tree.request(ServeRequest(_socket(lab.name)))
    except BaseException:
        tree.close()
        _log(lab.name).unlink(missing_ok=True)
        _remove_empty_folder()
        raise
    started = psutil.Process(tree.pid).create_time()
    running = BackgroundLab(name=lab.name, path=str(lab.path), pid=tree.pid, started=started)
    _file(lab.name).write_text(json.dumps(asdict(running)), encoding="utf-8")
    tree.release()
    return running


def _describe(process: psutil.Process) -> str:
    command = process.cmdline()
    if command and command[-1].startswith(_SHELL_PREFIX):
        return f"shell of {command[-1].removeprefix(_SHELL_PREFIX)}"
    modules = [word for flag, word in itertools.pairwise(command) if flag == "-m"]
    return modules[0] if modules else process.name()


def _remove_empty_folder() -> None:
    with contextlib.suppress(OSError):  # other labs are noted there
        state_folder().rmdir()


def _file(name: str) -> Path:
    return state_folder() / f"{name}.json"


def _socket(name: str) -> Path:
    return state_folder() / f"{name}.socket"


def _log(name: str) -> Path:
    return state_folder() / f"{name}.log"
