"""The messages of the switch driver, in the OpenFlow version of its session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from loko.controller import wire, wire13
from loko.controller.wire import Reply, Request, WireEntry
from loko.entries import FlowEntry
from loko.scenario import OpenFlow


class Wire(Protocol):
    """Converts values to bytes and back: the modules `wire` and `wire13`."""

    def entry_of(self, flow: FlowEntry, *, cookie: int) -> WireEntry:
        """Return a planned entry as the switch gets it."""

    def segment(self, requests: Iterable[Request]) -> bytes:
        """Return the bytes of requests for one write. Raises `ValueError` if they do not fit a segment."""

    def decode(self, message: bytes) -> Reply | None:
        """Decode a whole message; None if it is of no interest, or malformed."""


WIRES: Final[Mapping[OpenFlow, Wire]] = MappingProxyType({OpenFlow.V1_0: wire, OpenFlow.V1_3: wire13})
WIRE_VERSIONS: Final[Mapping[OpenFlow, int]] = MappingProxyType(
    {OpenFlow.V1_0: wire.VERSION, OpenFlow.V1_3: wire13.VERSION}
)
"""The first byte of every message."""
