"""A network namespace for a bench: interfaces that nobody else sees and that go with their last user."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from evaluation.live.interfaces import switch_off_offloads
from evaluation.live.programs import run
from evaluation.runner import RunError

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def own_network(cables: Iterable[tuple[str, str]]) -> Iterator[None]:
    """Meanwhile this thread, and what it starts, is in a new network with these pairs of interfaces.

    Nothing has to be removed: the kernel does it when the last process or socket in it has ended. Raises
    `RunError` without permission.
    """
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if _LIBC.unshare(_CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise RunError(f"cannot make a network namespace ({reason}): run it as root")
        try:
            _build(cables)
            yield
        finally:
            _LIBC.setns(before, _CLONE_NEWNET)
    finally:
        os.close(before)


Enter = Callable[[], AbstractContextManager[None]]
"""Brings this thread, and what it starts meanwhile, into a network."""


@contextmanager
def network_beyond(ends: Iterable[str]) -> Iterator[Enter]:
    """Another network for these ends of cables, to be entered by what is given.

    Where a frame passes from one network into another the kernel forgets when TCP has sent it: only then it
    stamps the arrival once for all who listen, and not for each of them when its turn comes.

    Raises `RunError`.
    """
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = -1
    try:
        if _LIBC.unshare(_CLONE_NEWNET) != 0:
            raise RunError(
                f"cannot make a network namespace ({os.strerror(ctypes.get_errno())}): run it as root"
            )
        there = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        _silence()
        _LIBC.setns(here, _CLONE_NEWNET)

        @contextmanager
        def entered() -> Iterator[None]:
            _LIBC.setns(there, _CLONE_NEWNET)
            try:
                yield
            finally:
                _LIBC.setns(here, _CLONE_NEWNET)

        for end in ends:
            move = ["ip", "link", "set", end, "netns", f"/proc/{os.getpid()}/fd/{there}"]
            run(move, what="a cable of the bench")
            with entered():
                run(["ip", "link", "set", end, "up"], what="a cable of the bench")
        yield entered
    finally:
        _LIBC.setns(here, _CLONE_NEWNET)
        for one in (here, there):
            if one >= 0:
                os.close(one)


def _silence() -> None:
    for scope in ("all", "default"):
        run(["sysctl", "-qw", f"net.ipv6.conf.{scope}.disable_ipv6=1"], what="the bench's network")
    run(["ip", "link", "set", "lo", "up"], what="the bench's network")


def _build(cables: Iterable[tuple[str, str]]) -> None:
    _silence()
    for near, far in cables:
        run(["ip", "link", "add", near, "type", "veth", "peer", "name", far], what="a cable of the bench")
        for end in (near, far):
            switch_off_offloads(end, what="a cable of the bench")
            run(["ip", "link", "set", end, "up"], what="a cable of the bench")
