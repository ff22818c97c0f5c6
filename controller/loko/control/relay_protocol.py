"""The protocol between the OpenFlow application and the service: frames on a local socket."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Final, Self

from loko.control.access import AccessList, Peer
from loko.control.tls_files import TlsFiles

_HEAD: Final = struct.Struct("!BII")


class RelayMessageKind(IntEnum):
    """Kind of a frame. The first four come from the application, the others from the service."""

    CONNECTED = 1
    """A switch has introduced itself; the data is an `SwitchIdentity`."""
    MESSAGE = 2
    """A whole message of a switch."""
    DISCONNECTED = 3
    """The connection is gone."""
    REFUSED = 7
    """A connection was refused; the data is a line about it. No connection."""
    SEND = 4
    """Send this in one write."""
    CLOSE = 5
    """Close the connection."""
    LOAD = 6
    """Send EchoRequests to all switches as a load; the data is the rate per second to each. No connection."""


@dataclass(frozen=True, slots=True)
class SwitchIdentity:
    """Identity and peer of a switch that has introduced itself."""

    datapath_id: int
    peer: Peer

    def encoded(self) -> bytes:
        """Return the data of a frame that says so."""
        return json.dumps({"datapath_id": self.datapath_id, "peer": self.peer.to_json()}).encode("ascii")

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """Return what a frame with this data says."""
        values = json.loads(data)
        return cls(values["datapath_id"], Peer.of_json(values["peer"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningSettings:
    """Where the application accepts switches, and which."""

    listening_fd: int
    access: AccessList
    tls_listening_fd: int | None = None
    tls: TlsFiles | None = None
    """The files for TLS, which `tls_listening_fd` needs."""

    def encoded(self) -> bytes:
        """Return the text that the application reads at its start."""
        values = {
            "listening_fd": self.listening_fd,
            "access": self.access.to_json(),
            "tls_listening_fd": self.tls_listening_fd,
            "tls": None if self.tls is None else asdict(self.tls),
        }
        return json.dumps(values).encode("ascii")

    @classmethod
    def decoded(cls, text: str) -> Self:
        """Return the settings of such a text."""
        values = json.loads(text)
        tls = values["tls"]
        return cls(
            listening_fd=values["listening_fd"],
            access=AccessList.of_json(values["access"]),
            tls_listening_fd=values["tls_listening_fd"],
            tls=None if tls is None else TlsFiles(**tls),
        )


@dataclass(frozen=True)
class RelayMessage:
    """A message about one connection of a switch."""

    kind: RelayMessageKind
    connection: int
    """Number of the connection; never used twice."""
    data: bytes = b""

    def encoded(self) -> bytes:
        """Return the bytes of the frame on the socket."""
        return _HEAD.pack(self.kind, self.connection, len(self.data)) + self.data


class RelayMessageReader:
    """Assembles frames from the bytes that are read."""

    def __init__(self) -> None:
        self._pending = b""

    def messages(self, data: bytes) -> Iterator[RelayMessage]:
        """Add bytes, and yield the frames that are now complete."""
        data, at = self._pending + data, 0
        while len(data) - at >= _HEAD.size:
            kind, connection, length = _HEAD.unpack_from(data, at)
            end = at + _HEAD.size + length
            if end > len(data):
                break
            yield RelayMessage(RelayMessageKind(kind), connection, data[at + _HEAD.size : end])
            at = end
        self._pending = data[at:]
