"""A port reserved for a program that is started later, perhaps several times."""

from __future__ import annotations

import socket


class ReservedPort:
    """A TCP port on the loopback interface that nobody else gets while this object exists.

    A socket is bound to the port but does not listen. Linux then never assigns the port to programs that ask
    for any free one. A server that asks for this port with SO_REUSEADDR, as all servers of the testbed do,
    may still listen on it. If a free port were only looked up and released, another process could have it by
    the time the server starts.
    """

    def __init__(self) -> None:
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind(("127.0.0.1", 0))
        self.number = int(self._held.getsockname()[1])

    def release(self) -> None:
        self._held.close()
