"""TLS with mutual authentication for connections of switches.

OpenSSL's connections must not be used by two threads at once, and both frameworks read in one thread and
write in another. So the records are made in memory, under a lock, and only the TCP connection blocks. This
also works with green threads.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import Final

_CHUNK_BYTES: Final = 65536
_LONGEST_HEAD_BYTES: Final = 65536
"""The most that a peer may send before its handshake is complete."""


class TlsConnection:
    """A TLS connection, with those methods of a socket that the frameworks use."""

    def __init__(self, connection: socket.socket, context: ssl.SSLContext) -> None:
        """Do the handshake. The socket must have a timeout, which applies to each part of it.

        Raises `OSError` if it fails.
        """
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._state = threading.Lock()
        self._sending = threading.Lock()
        received = 0
        while not self._shakes_hands():
            data = connection.recv(_CHUNK_BYTES)
            received += len(data)
            if not data or received > _LONGEST_HEAD_BYTES:
                raise ConnectionError("it ended during the handshake")
            self._incoming.write(data)

    def _shakes_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:  # an alert says why it failed
            with contextlib.suppress(OSError):
                self._connection.sendall(self._outgoing.read())
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the peer's certificate: its common names, and the DNS names that it is also for."""
        certificate = self._tls.getpeercert() or {}
        subject = [pair for part in certificate.get("subject", ()) for pair in part]
        pairs = [*subject, *certificate.get("subjectAltName", ())]
        return tuple(value for kind, value in pairs if kind in {"commonName", "DNS"})

    def recv(self, most: int) -> bytes:
        """Return some bytes; none at the end. Raises `OSError`, which `TimeoutError` is."""
        while True:
            with self._state:
                try:
                    return self._tls.read(most)
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLZeroReturnError:
                    return b""
                except ssl.SSLError as error:  # the frameworks take this one for a timeout, and go on
                    raise ConnectionError(str(error)) from None
            self._flush()  # answers of the protocol itself
            data = self._connection.recv(_CHUNK_BYTES)
            if not data:
                return b""
            with self._state:
                self._incoming.write(data)

    def sendall(self, data: bytes) -> None:
        """Send bytes. Raises `OSError`, which `TimeoutError` is."""
        with self._state:
            self._tls.write(data)
        self._flush()

    def _flush(self) -> None:
        with self._sending:
            with self._state:
                records = self._outgoing.read()
            if records:
                self._connection.sendall(records)

    def setsockopt(self, level: int, name: int, value: int) -> None:
        """Set an option of the TCP connection."""
        self._connection.setsockopt(level, name, value)

    def settimeout(self, seconds: float | None) -> None:
        """Set the timeout of the TCP connection."""
        self._connection.settimeout(seconds)

    def shutdown(self, how: int) -> None:
        """Shut down the TCP connection."""
        self._connection.shutdown(how)

    def close(self) -> None:
        """Close the TCP connection."""
        self._connection.close()
