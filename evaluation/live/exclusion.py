"""One live lab at a time on a machine: two would take each other's cores and spoil both's delays."""

from __future__ import annotations

import errno
import socket
import time

from evaluation.runner import RunError

_NAME = "\0loko/live-lab"
"""An abstract socket's name: no file, and the kernel frees it when its last holder has ended."""

_PATIENCE_S = 10.0
"""An earlier lab may just be ending."""


def claim() -> socket.socket:
    """Claim the machine; the claim lasts as long as any process holds the socket. Raises `RunError`."""
    claimed = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            claimed.bind(_NAME)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                claimed.close()
                raise RunError(
                    "another live lab runs on this machine: wait for its end, or see 'loko lab status'"
                ) from None
            time.sleep(0.05)
        else:
            return claimed
