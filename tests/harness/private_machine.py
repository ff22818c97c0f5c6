"""A private machine for a test of labs: invisible outside, so that tests can run in parallel.

The network, `/run` and `/dev/shm` are new. Interfaces, named namespaces, files and locks that a lab leaves
behind are therefore private to the test. So is the limit for real-time threads as the lab reads and writes
it. The cores are shared.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from pathlib import Path

from loko_testbed.live.realtime_limit import LIMIT

_CLONE_FS = 0x0000_0200
_CLONE_NEWNS = 0x0002_0000
_CLONE_NEWNET = 0x4000_0000
_LIBC = ctypes.CDLL(None, use_errno=True)

_BUILD = """
mount --make-rprivate /
mount -t tmpfs -o mode=0755 run /run
mount -t tmpfs -o mode=1777 shm /dev/shm
cat "$1" >/run/limit
mount --bind /run/limit "$1"
ip link set lo up
"""


@contextmanager
def private_machine() -> Iterator[None]:
    """Move this thread, and everything it starts, to such a machine for the time being. Needs root."""
    folder, root = Path.cwd(), os.open("/", os.O_RDONLY)
    before = [os.open(f"/proc/thread-self/ns/{kind}", os.O_RDONLY) for kind in ("net", "mnt")]
    try:
        _end_forkserver()
        _call(_LIBC.unshare(_CLONE_NEWNET | _CLONE_NEWNS))
        try:
            subprocess.run(["sh", "-ec", _BUILD, "build", str(LIMIT)], check=True)
            yield
        finally:
            _end_forkserver()
            enter_namespaces(before)
            os.fchdir(root)  # it may differ from the root of the namespace
            os.chroot(".")
            os.chdir(folder)
    finally:
        for descriptor in (root, *before):
            os.close(descriptor)


def _end_forkserver() -> None:
    """End the server that forks processes for pools: it would stay on the machine of its start.

    Processes of later pools would then look for their semaphores in another `/dev/shm`.
    """
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


def enter_namespaces(descriptors: Iterable[int]) -> None:
    """Move this thread to namespaces that are open as files."""
    _call(_LIBC.unshare(_CLONE_FS))  # other threads share this thread's file system, which holds it back
    for descriptor in descriptors:
        _call(_LIBC.setns(descriptor, 0))


def _call(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
