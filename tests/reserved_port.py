"""A port that is kept for a program that is started later, and perhaps again."""

from __future__ import annotations

import socket


class ReservedPort:
    """A TCP port of loopback that nobody else gets as long as this object holds it.

    A socket is bound to it and does not listen. Linux then gives the port to no one who asks for any, and a
    server that names it and reuses addresses (SO_REUSEADDR), as all of the testbed do, may listen there.
    A port that is only looked up and given back may belong to another process when the server begins.
    """

    def __init__(self) -> None:
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind(("127.0.0.1", 0))
        self.number = int(self._held.getsockname()[1])

    def release(self) -> None:
        self._held.close()
