"""OpenFlow 1.0 messages of the controller, as bytes.

Each message fits one TCP segment of the Zodiac FX (536 bytes): the board reassembles nothing, and two replies
to one segment can stall its connection.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from loko.control.entries import FlowEntry
from loko.control.framing import framed
from loko.control.wire import (
    VERSION,
    AddEntry,
    BarrierRequest,
    DeleteEntry,
    FlowStatsRequest,
    PortsRequest,
    TableStatsRequest,
    encode,
    entry_of,
    segment,
)

HELLO: Final = 0
"""The message's type, in either version; so is the next one."""
ECHO_REQUEST: Final = 2
_STATS_REQUEST: Final = 16
_DESCRIPTION: Final = 0


def hello(xid: int) -> bytes:
    """HELLO with version 1.0. It chooses the version: the board's own HELLO offers 1.3."""
    return framed(VERSION, HELLO, xid)


def features_request(xid: int) -> bytes:
    """FEATURES_REQUEST. The board closes a connection without one after about 3 s."""
    return encode(PortsRequest(xid))


def barrier_request(xid: int) -> bytes:
    """Return a BARRIER_REQUEST."""
    return encode(BarrierRequest(xid))


def echo_request(xid: int) -> bytes:
    """ECHO_REQUEST without payload; the board would not return one."""
    return framed(VERSION, ECHO_REQUEST, xid)


def table_stats_request(xid: int) -> bytes:
    """STATS_REQUEST for the table's number of entries."""
    return encode(TableStatsRequest(xid))


def flow_stats_request(xid: int) -> bytes:
    """STATS_REQUEST for the table's entries; the board answers with the first 20."""
    return encode(FlowStatsRequest(xid))


def description_request(xid: int) -> bytes:
    """STATS_REQUEST for the switch's description of itself. It goes in a segment of its own."""
    return framed(VERSION, _STATS_REQUEST, xid, struct.pack("!HH", _DESCRIPTION, 0))


@lru_cache(maxsize=1024)
def add_entry(entry: FlowEntry, xid: int) -> bytes:
    """FLOW_MOD that appends an entry without timeouts to the table."""
    return encode(AddEntry(xid, entry_of(entry, cookie=0)))


def replace_entry(former: FlowEntry, entry: FlowEntry, xid: int) -> bytes:
    """FLOW_MODs, in one segment, that put an entry in the place of a former one between two frames."""
    return segment([DeleteEntry(xid, entry_of(former, cookie=0)), AddEntry(xid, entry_of(entry, cookie=0))])


def session_segments(entries: Sequence[FlowEntry]) -> list[bytes]:
    """Return what a controller sends to set up a board in one go: one message per TCP segment, in order.

    Hello, features request, a flow-mod for each entry, a barrier. The board answers the features request and
    the barrier, so no segment gets more than one reply.
    """
    segments = [hello(1), features_request(2)]
    segments += [add_entry(entry, xid) for xid, entry in enumerate(entries, start=3)]
    segments.append(barrier_request(len(segments) + 1))
    return segments
