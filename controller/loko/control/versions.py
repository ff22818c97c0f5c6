"""The messages of the switch driver, in the OpenFlow version of its session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from loko.control import wire, wire13
from loko.control.entries import FlowEntry
from loko.control.wire import WireEntry, WireReply, WireRequest
from loko.switch_model.scenario import OpenFlow


class WireCodec(Protocol):
    """Converts values to bytes and back: the modules `wire` and `wire13`."""

    def entry_of(self, flow: FlowEntry, *, cookie: int) -> WireEntry:
        """Return a planned entry as the switch gets it."""

    def segment(self, requests: Iterable[WireRequest]) -> bytes:
        """Return the bytes of requests for one write. Raises `ValueError` if they do not fit a segment."""

    def decode(self, message: bytes) -> WireReply | None:
        """Decode a whole message; None if it is of no interest, or malformed."""


CODECS: Final[Mapping[OpenFlow, WireCodec]] = MappingProxyType({OpenFlow.V1_0: wire, OpenFlow.V1_3: wire13})
WIRE_VERSIONS: Final[Mapping[OpenFlow, int]] = MappingProxyType(
    {OpenFlow.V1_0: wire.VERSION, OpenFlow.V1_3: wire13.VERSION}
)
"""The first byte of every message."""
