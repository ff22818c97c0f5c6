"""OpenFlow 1.3 messages that set up a board's table, as bytes: each fits one TCP segment of the Zodiac FX.

What is sent here is safe on its firmware: one message per segment, so that no reply follows another one
(quirks 86, 90), the same fields in the same order in every match (quirk 124), and no timeouts.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from loko.control.entries import FlowEntry
from loko.control.framing import framed
from loko.control.messages import ECHO_REQUEST, HELLO
from loko.control.wire import AddEntry, BarrierRequest, DeleteEntry, FlowStatsRequest, TableStatsRequest
from loko.control.wire13 import VERSION, encode, entry_of, segment

_FEATURES_REQUEST: Final = 5
_MULTIPART_REQUEST: Final = 18
_TABLE_STATS: Final = 3


def add_entry(entry: FlowEntry, xid: int) -> bytes:
    """FLOW_MOD that adds an entry without timeouts to the first table."""
    return encode(AddEntry(xid, entry_of(entry, cookie=0)))


def replace_entry(former: FlowEntry, entry: FlowEntry, xid: int) -> bytes:
    """See `loko.control.messages.replace_entry`."""
    return segment([DeleteEntry(xid, entry_of(former, cookie=0)), AddEntry(xid, entry_of(entry, cookie=0))])


def echo_request(xid: int) -> bytes:
    """ECHO_REQUEST without payload; the board would not return one."""
    return framed(VERSION, ECHO_REQUEST, xid)


def features_request(xid: int) -> bytes:
    """FEATURES_REQUEST. The board closes a connection without one after about 3 s."""
    return framed(VERSION, _FEATURES_REQUEST, xid)


def barrier_request(xid: int) -> bytes:
    """Return a BARRIER_REQUEST."""
    return encode(BarrierRequest(xid))


def table_stats_request(xid: int) -> bytes:
    """MULTIPART_REQUEST for the counters of every table."""
    return framed(VERSION, _MULTIPART_REQUEST, xid, struct.pack("!HH4x", _TABLE_STATS, 0))


def aggregate_request(xid: int) -> bytes:
    """MULTIPART_REQUEST for the number of entries."""
    return encode(TableStatsRequest(xid))


def flow_stats_request(xid: int) -> bytes:
    """MULTIPART_REQUEST for the entries; the board answers in parts of 15 (quirk 102)."""
    return encode(FlowStatsRequest(xid))


def session_segments(entries: Sequence[FlowEntry]) -> list[bytes]:
    """See `loko.control.messages.session_segments`: hello, features request, the entries, a barrier."""
    segments = [framed(VERSION, HELLO, 1), features_request(2)]
    segments += [add_entry(entry, xid) for xid, entry in enumerate(entries, start=3)]
    segments.append(barrier_request(len(segments) + 1))
    return segments
