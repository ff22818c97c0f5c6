"""A network namespace for a bench. Nobody else sees its interfaces, and they go with their last user."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from loko_testbed.live.interfaces import switch_off_offloads
from loko_testbed.live.programs import run
from loko_testbed.simulation.runner import RunError

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def own_network(cables: Iterable[tuple[str, str]]) -> Iterator[None]:
    """Put this thread, and what it starts, into a new network with these pairs of interfaces.

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


def _build(cables: Iterable[tuple[str, str]]) -> None:
    for scope in ("all", "default"):
        run(["sysctl", "-qw", f"net.ipv6.conf.{scope}.disable_ipv6=1"], what="the bench's network")
    run(["ip", "link", "set", "lo", "up"], what="the bench's network")
    for near, far in cables:
        run(["ip", "link", "add", near, "type", "veth", "peer", "name", far], what="a cable of the bench")
        for end in (near, far):
            switch_off_offloads(end, what="a cable of the bench")
            run(["ip", "link", "set", end, "up"], what="a cable of the bench")
