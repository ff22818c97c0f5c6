"""The controller's end of a switch's connection: plain TCP, one segment a write."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from typing import Final, Self

from os_ken.ofproto import ofproto_parser
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto.ofproto_common import OFP_HEADER_SIZE

from loko.control.framing import segments_of, whole_messages
from loko.switch_model.scenario import OpenFlow
from loko_testbed.instruments.dialect import DIALECTS
from loko_testbed.simulation.runner import RunError

ASYNCHRONOUS: Final = frozenset(
    {of.OFPT_ECHO_REQUEST, of.OFPT_PACKET_IN, of.OFPT_FLOW_REMOVED, of.OFPT_PORT_STATUS}
)
"""Types of messages that a switch sends unasked: echo request, packet in, flow removed, port status."""
_TABLE_FULL: Final = {1: bytes.fromhex("00030000"), 4: bytes.fromhex("00050001")}
"""Type and code of the error that a FLOW_MOD found the table full, by version on the wire."""
_ANSWER_S: Final = 30.0
_FEATURES_S: Final = 4.0
"""A connection that a board has given up stays silent; another one follows."""
_ALIVE_S: Final = 2.0
_CHUNK_BYTES: Final = 65536
_SO_RCVBUFFORCE: Final = 33
_RECEIVE_BYTES: Final = 16 << 20
"""Enough for the PACKET_INs of the longest train."""


class ControllerEndpoint:
    """A listening socket and the session of one switch."""

    def __init__(self, address: str, port: int) -> None:
        """Listen at this address. Raises `RunError` if that is impossible."""
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Nobody reads while a train is sent, and a board whose connection is full does nothing else.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        with contextlib.suppress(PermissionError):
            self._listener.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BYTES)
        self.openflow = OpenFlow.V1_0
        """Version of the sessions that start from now on."""
        self.session: socket.socket | None = None
        """The connection of the switch."""
        self._bytes = b""
        self._unread: deque[bytes] = deque()
        """Messages that have come with others, which `expect` has returned."""
        try:
            self._listener.bind((address, port))
        except OSError as error:
            self._listener.close()
            raise RunError(
                f"controller: cannot listen at {address}:{port} ({error.strerror}); give one of this"
                " machine's own addresses and a free port"
            ) from None
        self._listener.listen()
        self.address, self.port = self._listener.getsockname()

    def accept(self, timeout_s: float) -> int | None:
        """Accept a switch's new connection and agree on `openflow`.

        Returns the switch's datapath id, or None if no switch comes in time.
        """
        reply = self.features(timeout_s)
        return None if reply is None else int.from_bytes(reply[8:16], "big")

    def features(self, timeout_s: float) -> bytes | None:
        """Accept a switch's new connection, agree on `openflow` and ask for the switch's features.

        Returns the FEATURES_REPLY, or None if no switch comes in time.
        """
        deadline = time.monotonic() + timeout_s
        dialect = DIALECTS[self.openflow]
        while (left_s := deadline - time.monotonic()) > 0:
            if not self.accept_connection(left_s):
                return None
            # The switch may have given this connection up before it was accepted; another one follows.
            with contextlib.suppress(RunError):
                self.write(dialect.hello)
                return self.ask(dialect.features_request, of.OFPT_FEATURES_REPLY, timeout_s=_FEATURES_S)
        return None

    def accept_connection(self, timeout_s: float) -> bool:
        """Accept a switch's new connection and say nothing. Return whether one came in time."""
        self._listener.settimeout(timeout_s)
        try:
            accepted, _ = self._listener.accept()
        except TimeoutError:
            return False
        self.hang_up()
        self.session = accepted
        self.session.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._bytes = b""
        self._unread.clear()
        return True

    def wait_closed(self, timeout_s: float) -> bool:
        """Answer echo requests until the switch ends its connection. Return whether it did so in time."""
        deadline = time.monotonic() + timeout_s
        while self.session is not None and (left_s := deadline - time.monotonic()) > 0:
            try:
                self.messages(left_s)
            except RunError:
                self.hang_up()
        return self.session is None

    def is_alive(self) -> bool:
        """Return whether the switch still answers. One with a broken session (quirks 14, 15) does not."""
        try:
            self.confirm(timeout_s=_ALIVE_S)
        except RunError:
            return False
        return True

    def hang_up(self) -> None:
        """End the session, so that the switch starts another one."""
        if self.session is not None:
            self.session.close()
            self.session = None

    def write(self, segment: bytes) -> None:
        """Send a segment. Raises `RunError` if there is no connection."""
        if self.session is None:
            raise RunError(f"controller: no switch is connected to {self.address}:{self.port}")
        try:
            self.session.sendall(segment)
        except OSError as error:
            raise RunError(f"controller: the connection to the switch broke: {error.strerror}") from None

    def exchange(self, segment: bytes) -> None:
        """Send a segment, and read what the switch has sent. Raises `RunError`."""
        self.write(segment)
        self.messages()

    def ask(self, segment: bytes, kind: int, *, timeout_s: float = _ANSWER_S) -> bytes:
        """Send a segment and wait for a message of this type. Raises `RunError`, also on an error message."""
        self.write(segment)
        return self.expect(kind, timeout_s=timeout_s)

    def expect(self, kind: int, *, timeout_s: float = _ANSWER_S) -> bytes:
        """Wait for a message of this type, and pass over those before it.

        Raises `RunError`, also on an error message.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            while self._unread:
                message = self._unread.popleft()
                if message[1] == of.OFPT_ERROR:
                    raise RunError(_described(message))
                if message[1] == kind:
                    return message
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise RunError(f"the switch sends no message of type {kind} within {timeout_s:g} s")
            self._receive(left_s)

    def messages(self, wait_s: float = 0.0) -> list[bytes]:
        """Return the messages that have come, or wait for some for up to `wait_s`. Raises `RunError`.

        Echo requests are answered and left out.
        """
        self._receive(0.0 if self._unread else wait_s)
        messages = list(self._unread)
        self._unread.clear()
        return messages

    def load(self, messages: list[bytes]) -> None:
        """Send messages that have no reply; a barrier confirms each segment. Raises `RunError`."""
        for segment in segments_of(messages):
            self.write(segment)
            self.confirm()

    def confirm(self, *, timeout_s: float = _ANSWER_S) -> None:
        """Wait until the switch has answered a barrier: it has processed all before. Raises `RunError`."""
        dialect = DIALECTS[self.openflow]
        self.ask(dialect.barrier_request, dialect.barrier_reply, timeout_s=timeout_s)

    def _receive(self, wait_s: float) -> None:
        """Read what has come, or comes within `wait_s`, and answer echo requests."""
        if self.session is None:
            raise RunError(f"controller: no switch is connected to {self.address}:{self.port}")
        if select.select([self.session], [], [], wait_s)[0]:
            self._read()
        messages, self._bytes = whole_messages(self._bytes)
        for message in messages:
            _, kind, length, _ = ofproto_parser.header(message)
            if length < OFP_HEADER_SIZE:
                raise RunError("controller: what the switch sends is not OpenFlow")
            if kind == of.OFPT_ECHO_REQUEST:
                self.write(bytes((message[0], of.OFPT_ECHO_REPLY)) + message[2:])
            else:
                self._unread.append(message)

    def _read(self) -> None:
        assert self.session is not None
        try:
            data = self.session.recv(_CHUNK_BYTES)
        except OSError as error:
            raise RunError(f"controller: the connection to the switch broke: {error.strerror}") from None
        if not data:
            raise RunError("controller: the switch closed the connection")
        # Acknowledge at once: what a board sends before its last message is acknowledged may break its
        # session (quirk 15).
        self.session.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        self._bytes += data

    def close(self) -> None:
        """End the session and stop listening."""
        self.hang_up()
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _described(error: bytes) -> str:
    """Describe an OpenFlow error in one line."""
    if error[OFP_HEADER_SIZE : OFP_HEADER_SIZE + 4] == _TABLE_FULL.get(error[0]):
        return (
            "the switch's table is full: a Zodiac FX keeps the memory of what other messages deleted;"
            " switch it off and on and run again"
        )
    return f"the switch answers with an error: {error[:64].hex()}"
