"""Network namespaces: make one, run code or programs in one, and silence what is in it."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from loko_testbed.instruments.cables import add_cable
from loko_testbed.instruments.programs import require, run
from loko_testbed.simulation.runner import RunError

_CLONE_NEWNET: Final = 0x4000_0000
_LISTEN: Final = "0A"
"""The state of a listening socket in /proc/net/tcp."""
_HERE: Final = Path("/proc/thread-self/ns/net")
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def namespace_of(pid: int) -> Path:
    """Return the file of a process's network namespace; it exists as long as the process lives."""
    return Path(f"/proc/{pid}/ns/net")


def listens(pid: int, port: int) -> bool:
    """Return whether anything listens at a TCP port, by IPv4, in a process's network namespace."""
    there = Path(f"/proc/{pid}/net")
    try:
        if "TCP: inuse 0 " in (there / "sockstat").read_text(encoding="ascii"):
            return False  # to list none takes the kernel milliseconds: it looks at those of all namespaces
        table = (there / "tcp").read_text(encoding="ascii")
    except OSError:  # the process has just ended
        return False
    sockets = [line.split() for line in table.splitlines()[1:]]
    return any(at.endswith(f":{port:04X}") and state == _LISTEN for _, at, _, state, *_ in sockets)


def within(namespace: Path) -> list[str]:
    """Return the words to put before a command to run it in a network namespace, given by its file."""
    return [require("nsenter"), f"--net={namespace}", "--"]


def set_up_namespace(what: str, prefix: Sequence[str] = ()) -> None:
    """Give a network namespace its loopback, and have it send nothing of its own accord.

    `prefix` are the words of `within`, for another namespace than this thread's. Raises `RunError`.
    """
    if Path("/proc/sys/net/ipv6").exists():
        settings = [f"net.ipv6.conf.{scope}.disable_ipv6=1" for scope in ("all", "default")]
        run(["sysctl", "-q", "-w", *settings], what=what, prefix=prefix)
    run(["ip", "link", "set", "lo", "up"], what=what, prefix=prefix)


@contextmanager
def another_namespace() -> Iterator[int]:
    """Make a network namespace, and yield the pid of the process that holds it.

    The kernel ends that process when this one ends, however that happens, and with it the namespace. Raises
    `RunError`.
    """
    dying = [require("setpriv"), "--pdeathsig", "KILL", "--"]
    command = [*dying, require("unshare"), "--net", "sh", "-c", "echo there; exec sleep infinity"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            if holder.stdout is None or not holder.stdout.readline():
                raise RunError("the kernel refuses a network namespace: run it as root")
            yield holder.pid
        finally:
            holder.kill()


@contextmanager
def own_network(cables: Iterable[tuple[str, str]]) -> Iterator[None]:
    """Put this thread, and what it starts, into a new network with these pairs of interfaces.

    Nothing has to be removed: the kernel does it when the last process or socket in it has ended. Raises
    `RunError` without permission.
    """
    with _coming_back():
        if _LIBC.unshare(_CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise RunError(f"cannot make a network namespace ({reason}): run it as root")
        set_up_namespace("the bench's network")
        for near, far in cables:
            add_cable(near, far, what="a cable of the bench")
        yield


@contextmanager
def inside(namespace: Path) -> Iterator[None]:
    """Run the context's code in a network namespace, given by its file. Sockets made there stay there.

    Raises `RunError`.
    """
    with _coming_back():
        there = os.open(namespace, os.O_RDONLY)
        try:
            _enter(there)
        finally:
            os.close(there)
        yield


@contextmanager
def _coming_back() -> Iterator[None]:
    """Bring this thread back to its network namespace after the context."""
    here = os.open(_HERE, os.O_RDONLY)
    try:
        yield
    finally:
        if not os.path.samestat(os.fstat(here), _HERE.stat()):
            _enter(here)
        os.close(here)


def _enter(descriptor: int) -> None:
    """Move this thread into a network namespace (Python has `os.setns` from 3.12 on)."""
    if _LIBC.setns(descriptor, _CLONE_NEWNET) != 0:
        raise RunError(f"cannot enter a network namespace: {os.strerror(ctypes.get_errno())}")
