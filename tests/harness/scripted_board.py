"""A minimal board for tests of the controller: TCP, and the replies of OpenFlow 1.0."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable

from loko.control.framing import HEADER, framed, whole_messages

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY = 0, 1, 2, 3
FEATURES_REQUEST, FEATURES_REPLY, FLOW_MOD = 5, 6, 14
STATS_REQUEST, STATS_REPLY, BARRIER_REQUEST, BARRIER_REPLY = 16, 17, 18, 19
FLOW_STATS, TABLE_STATS = 1, 3
DELETE_STRICT = b"\0\4"


def message(kind: int, xid: int, body: bytes = b"", version: int = 1) -> bytes:
    return framed(version, kind, xid, body)


class ScriptedBoard:
    """Connects, answers, and records all received messages in order.

    A single read may return several segments, so `largest_read_bytes` is an upper bound of the unanswered
    bytes. `closed` is set once the controller has ended the session, with or without a reset, or the board
    has vanished.
    """

    def __init__(
        self,
        address: tuple[str, int],
        datapath_id: int,
        *,
        loses: int | None = None,
        source: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`source` is the address from which it connects."""
        self.datapath_id = datapath_id
        self.table: list[bytes] = []
        self.flow_mods = 0
        self.messages: list[bytes] = []
        self.largest_read_bytes = 0
        self.answers = True
        self.closed = threading.Event()
        self._loses = loses
        self._socket = socket.create_connection(address, source_address=(source, 0))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket)
        self._socket.sendall(message(HELLO, 1, version=4))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def vanish(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def ask_echo(self) -> None:
        self._socket.sendall(message(ECHO_REQUEST, 0xD2040000))

    def _serve(self) -> None:
        handlers: dict[int, Callable[[int, bytes], bytes]] = {
            FEATURES_REQUEST: self._features,
            FLOW_MOD: self._flow_mod,
            BARRIER_REQUEST: lambda xid, _: message(BARRIER_REPLY, xid),
            STATS_REQUEST: self._stats,
            ECHO_REQUEST: lambda xid, _: message(ECHO_REPLY, xid),
        }
        try:
            while segment := self._socket.recv(4096):
                self.largest_read_bytes = max(self.largest_read_bytes, len(segment))
                for received in whole_messages(segment)[0]:
                    self.messages.append(received)
                    _, kind, _, xid = HEADER.unpack_from(received)
                    handler = handlers.get(kind)
                    if handler and (reply := handler(xid, received[HEADER.size :])) and self.answers:
                        self._socket.sendall(reply)
        except (ConnectionError, ssl.SSLError):  # it was refused, or the controller was killed
            pass
        self._socket.close()
        self.closed.set()

    def _features(self, xid: int, _: bytes) -> bytes:
        return message(FEATURES_REPLY, xid, struct.pack("!QIB3xII", self.datapath_id, 0, 1, 7, 0x7FF))

    def _flow_mod(self, _: int, body: bytes) -> bytes:
        self.flow_mods += 1
        match_and_cookie, command = body[:48], body[48:50]
        if command == DELETE_STRICT:
            self.table = [entry for entry in self.table if entry[:48] != match_and_cookie]
        elif self.flow_mods != self._loses:
            self.table.append(body)
        return b""

    def _stats(self, xid: int, body: bytes) -> bytes:
        kind = struct.unpack_from("!H", body)[0]
        if kind == TABLE_STATS:
            count = len(self.table)
            table = b"\0\xa5\xa5\xa5" + b"\xa5" * 32 + struct.pack("!IIIQQ", 0xA5A5A5A5, 512, count, 0, 0)
            return message(STATS_REPLY, xid, struct.pack("!HH", kind, 0) + table)
        entries = b""
        for flow_mod in self.table[:20]:
            match, cookie, actions = flow_mod[:40], flow_mod[40:48], flow_mod[64:]
            entries += struct.pack("!HBx", 88 + len(actions), 0) + match
            # The board returns arbitrary numbers as priority and timeouts (quirk Q27).
            entries += struct.pack("!IIHHH6x", 1, 0, 0xFFFF, 0x2000, 0x2000) + cookie + bytes(16) + actions
        return message(STATS_REPLY, xid, struct.pack("!HH", kind, 0) + entries)
