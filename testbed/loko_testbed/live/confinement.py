"""A tree of processes that the kernel removes as a whole, with all its interfaces and files.

    this process --- unshare --- loko_testbed.live.lab_server, PID 1 of the tree --- everything else
          |                             |
          +--- requests and replies ----+

If this process ends, even by SIGKILL, the kernel kills `unshare` (parent-death signal, set by `setpriv`),
then PID 1 of the tree, then every process of its PID namespace; network namespaces without processes
disappear with their interfaces, and so does the mount namespace with its private file system. No name is ever
registered outside, so an earlier crash can leave nothing in the way of the next start.

The kernel sends the parent-death signal when the *thread* that started the process ends. So a thread of its
own starts it and waits for it.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Self

from loko_testbed.instruments.programs import require
from loko_testbed.live.cleanup_process import CleanupProcess
from loko_testbed.live.exclusion import claim
from loko_testbed.live.permission import NEW_TREE, require_namespaces
from loko_testbed.live.realtime_limit import RealtimeLimit
from loko_testbed.live.state import remove_if_unused
from loko_testbed.simulation.runner import RunError

SCRATCH = Path("/dev/shm")  # noqa: S108 (private to the tree: inside() mounts a file system of its own there)
"""Where the tree's processes keep their files."""

_END_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Failure:
    """The reply to a request that could not be carried out."""

    reason: str


class Confinement:
    """A running confined tree and the connection to its first process."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        connection: Connection,
        ends: Sequence[RealtimeLimit | CleanupProcess],
    ) -> None:
        self._process = process
        self._connection = connection
        self._ends = ends

    @classmethod
    def start(
        cls,
        *,
        relaxed: bool = False,
        outlive: bool = False,
        log: Path | None = None,
        outside: Callable[[], CleanupProcess] | None = None,
    ) -> Self:
        """Start an empty tree. With `outlive` it goes on after this process has ended.

        Several `relaxed` trees may exist at once: nothing in them may need a core of its own. Standard error
        of the tree's first process goes to `log`, or to this process's own. `outside` builds what the lab has
        outside of the tree, before the tree starts; what it returns removes that afterwards. Raises
        `RunError` without the permission or the programs that are needed, or while another lab runs.
        """
        require_namespaces()
        if importlib.util.find_spec("mininet") is None:
            raise RunError("this Python has no Mininet: use the environment that 'make setup' makes")
        command = [
            *(() if outlive else (require("setpriv"), "--pdeathsig", "KILL", "--")),
            *(require(NEW_TREE[0]), *NEW_TREE[1:]),
            *(sys.executable, "-m", "loko_testbed.live.lab_server"),
        ]
        claimed = claim(relaxed=relaxed)
        ours, theirs = socket.socketpair()
        with theirs, claimed:
            removal = outside() if outside else None
            limit = None if relaxed else RealtimeLimit()
            outside_network = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
            held = [theirs.fileno(), outside_network, claimed.fileno(), *(limit.descriptors if limit else ())]
            if removal and removal.descriptor is not None:
                held.append(removal.descriptor)
            ends: list[RealtimeLimit | CleanupProcess] = [end for end in (limit, removal) if end is not None]
            stderr = log.open("wb") if log else None
            try:
                process = _start_in_a_thread([*command, *map(str, held)], held, stderr)
            finally:
                os.close(outside_network)
                if stderr:
                    stderr.close()
                for end in ends:
                    end.hand_over()
        return cls(process, Connection(ours.detach()), ends)

    @property
    def pid(self) -> int:
        """Process id of the outermost process of the tree; killing it ends the tree."""
        return self._process.pid

    def request(self, message: Any) -> Any:
        """Send a request and wait for its reply. Raises `RunError` if it fails or the tree has ended."""
        try:
            self._connection.send(message)
            reply = self._connection.recv()
        except (EOFError, OSError):
            raise RunError(
                f"the lab ended by itself (exit status {self._wait()}); see the messages above"
            ) from None
        if isinstance(reply, Failure):
            raise RunError(reply.reason)
        return reply

    def release(self) -> None:
        """Detach from a tree that was started with `outlive`."""
        self._connection.close()
        self._process.returncode = 0  # Popen must not complain that its child still runs
        for end in self._ends:
            end.release()

    def close(self) -> None:
        """End the tree and wait until it is gone."""
        self._connection.close()
        self._wait()
        for end in self._ends:
            end.wait()
        remove_if_unused()

    def _wait(self) -> int:
        try:
            return self._process.wait(timeout=_END_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _start_in_a_thread(
    command: Sequence[str], held: Sequence[int], stderr: IO[bytes] | None
) -> subprocess.Popen[bytes]:
    """Start a process from a thread that lives at least as long as the process."""
    started: Future[subprocess.Popen[bytes]] = Future()

    def start_and_wait() -> None:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=held,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # Ctrl-C is for this process; it then ends the tree
            )
        except BaseException as error:  # noqa: BLE001 (handed to the caller)
            started.set_exception(error)
            return
        started.set_result(process)
        process.wait()

    threading.Thread(target=start_and_wait, name="confinement", daemon=True).start()
    return started.result()
