"""A proxy between `ovs-ofctl` and a board. Both open connections, so the proxy has to listen for both.

Each `ovs-ofctl` command uses a new connection, and a board that loses its controller erases its entries
(quirk 81). So the proxy keeps the board's session open across commands. It performs the handshake, answers
the board's echo requests, sends HELLO to each command, and forwards everything else unchanged, each message
in one write. What the board sends goes to the newest connection.
"""

from __future__ import annotations

import selectors
import socket
import threading
from typing import Self

from loko.control.framing import framed, whole_messages

HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST = 0, 2, 3, 5
_READ_BYTES = 1 << 16


class _End:
    """One side of the conversation."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self._received = b""

    def read(self) -> list[bytes] | None:
        """Return the complete messages received; None at the end of the stream."""
        try:
            received = self.connection.recv(_READ_BYTES)
        except OSError:
            received = b""
        messages, self._received = whole_messages(self._received + received)
        return messages if received else None

    def send(self, whole: bytes) -> None:
        self.connection.sendall(whole)


class OfctlProxy:
    """Listens for one board and, on another port, for one command after another; speaks one version."""

    def __init__(self, version: int, *, board_port: int = 0, address: str = "127.0.0.1") -> None:
        self._version = version
        self._listeners = [socket.create_server((address, port)) for port in (board_port, 0)]
        self.board_port, self.command_port = (listener.getsockname()[1] for listener in self._listeners)
        self.ready = threading.Event()
        """Set once the board's session is established."""
        self.board_sessions = 0
        self.most_at_once = 0
        """The largest number of command connections open at the same time."""
        self._board: _End | None = None
        self._commands: list[_End] = []
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for listener in (*self._listeners, self._woken):
                selector.register(listener, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._woken:
                        return
                    if key.fileobj in self._listeners:
                        self._accept(key.fileobj, selector)
                    elif isinstance(key.data, _End):
                        self._take(key.data, selector)

    def _accept(self, listener: object, selector: selectors.BaseSelector) -> None:
        is_board = listener is self._listeners[0]
        end = _End(self._listeners[0 if is_board else 1].accept()[0])
        selector.register(end.connection, selectors.EVENT_READ, end)
        if is_board:
            self.ready.clear()
            self._board = end
            end.send(framed(self._version, HELLO, 0))
        else:
            self._commands.append(end)
            self.most_at_once = max(self.most_at_once, len(self._commands))
            end.send(framed(self._version, HELLO, 0))

    def _take(self, end: _End, selector: selectors.BaseSelector) -> None:
        messages = end.read()
        if messages is None:
            selector.unregister(end.connection)
            end.connection.close()
            if end is self._board:
                self._board = None
                self.ready.clear()
            elif end in self._commands:
                self._commands.remove(end)
        for whole in messages or []:
            self._from_board(whole) if end is self._board else self._from_command(whole)

    def _from_board(self, whole: bytes) -> None:
        assert self._board is not None
        if whole[1] == HELLO:
            self._board.send(framed(self._version, FEATURES_REQUEST, 0))
        elif whole[1] == ECHO_REQUEST:
            self._board.send(whole[:1] + bytes([ECHO_REPLY]) + whole[2:])
        elif not self.ready.is_set():
            self.board_sessions += 1
            self.ready.set()
        elif self._commands:
            self._commands[-1].send(whole)

    def _from_command(self, whole: bytes) -> None:
        if whole[1] != HELLO and self._board is not None:
            self._board.send(whole)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._wake.send(b"\0")
        self._thread.join()
        ends = [end.connection for end in (self._board, *self._commands) if end is not None]
        for opened in (*self._listeners, *ends, self._wake, self._woken):
            opened.close()
