"""OpenFlow 1.3 messages that set up a board's table, as bytes: each fits one TCP segment of the Zodiac FX.

What is sent here is safe on its firmware: one message per segment, so that no reply follows another one
(quirks 86, 90), the same fields in the same order in every match (quirk 124), and no timeouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from os_ken.ofproto import ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser

from loko.controller.messages import serialized
from loko.controller.wire import Add, FlowStats, TableStats
from loko.controller.wire13 import encode, entry_of
from loko.entries import FlowEntry

PROTOCOL: Final = ofproto_protocol.ProtocolDesc(version=of.OFP_VERSION)
"""What os-ken's messages need to know about their connection."""


def add_entry(entry: FlowEntry, xid: int) -> bytes:
    """FLOW_MOD that adds an entry without timeouts to the first table."""
    return encode(Add(xid, entry_of(entry, cookie=0)))


def echo_request(xid: int) -> bytes:
    """ECHO_REQUEST without payload; the board would not return one."""
    return serialized(parser.OFPEchoRequest(PROTOCOL), xid)


def features_request(xid: int) -> bytes:
    """FEATURES_REQUEST. The board closes a connection without one after about 3 s."""
    return serialized(parser.OFPFeaturesRequest(PROTOCOL), xid)


def barrier_request(xid: int) -> bytes:
    """Return a BARRIER_REQUEST."""
    return serialized(parser.OFPBarrierRequest(PROTOCOL), xid)


def table_stats_request(xid: int) -> bytes:
    """MULTIPART_REQUEST for the counters of every table."""
    return serialized(parser.OFPTableStatsRequest(PROTOCOL, 0), xid)


def aggregate_request(xid: int) -> bytes:
    """MULTIPART_REQUEST for the number of entries."""
    return encode(TableStats(xid))


def flow_stats_request(xid: int) -> bytes:
    """MULTIPART_REQUEST for the entries; the board answers in parts of 15 (quirk 102)."""
    return encode(FlowStats(xid))


def session_segments(entries: Sequence[FlowEntry]) -> list[bytes]:
    """See `loko.controller.messages.session_segments`: hello, features request, the entries, a barrier."""
    segments = [
        serialized(parser.OFPHello(PROTOCOL), 1),
        features_request(2),
    ]
    segments += [add_entry(entry, xid) for xid, entry in enumerate(entries, start=3)]
    segments.append(barrier_request(len(segments) + 1))
    return segments
