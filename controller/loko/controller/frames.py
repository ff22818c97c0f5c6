"""The protocol between the OpenFlow application and the service: frames on a local socket."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

_HEAD: Final = struct.Struct("!BII")


class FrameKind(IntEnum):
    """What a frame says. The first three come from the application, the others from the service."""

    CONNECTED = 1
    """A switch has introduced itself; the data is its datapath identifier."""
    MESSAGE = 2
    """A whole message of a switch."""
    DISCONNECTED = 3
    """The connection is gone."""
    SEND = 4
    """Send this in one write."""
    CLOSE = 5
    """Close the connection."""
    LOAD = 6
    """Send EchoRequests to all switches as a load; the data is the rate per second to each. No connection."""


@dataclass(frozen=True)
class Frame:
    """A message about one connection of a switch."""

    kind: FrameKind
    connection: int
    """Number of the connection; never used twice."""
    data: bytes = b""

    def encoded(self) -> bytes:
        """Return the bytes of the frame on the socket."""
        return _HEAD.pack(self.kind, self.connection, len(self.data)) + self.data


class FrameReader:
    """Assembles frames from the bytes that are read."""

    def __init__(self) -> None:
        self._pending = b""

    def frames(self, data: bytes) -> Iterator[Frame]:
        """Add bytes, and yield the frames that are now complete."""
        data, at = self._pending + data, 0
        while len(data) - at >= _HEAD.size:
            kind, connection, length = _HEAD.unpack_from(data, at)
            end = at + _HEAD.size + length
            if end > len(data):
                break
            yield Frame(FrameKind(kind), connection, data[at + _HEAD.size : end])
            at = end
        self._pending = data[at:]
