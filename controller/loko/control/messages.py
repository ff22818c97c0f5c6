"""OpenFlow 1.0 messages of the controller, as bytes.

Each message fits one TCP segment of the Zodiac FX (536 bytes): the board reassembles nothing, and two replies
to one segment can stall its connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from os_ken.ofproto import ofproto_protocol
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.entries import FlowEntry
from loko.control.framing import SEGMENT_BYTES
from loko.control.wire import (
    AddEntry,
    FlowStatsRequest,
    TableStatsRequest,
    encode,
    entry_of,
)

PROTOCOL: Final = ofproto_protocol.ProtocolDesc(version=of.OFP_VERSION)
"""Datapath as os-ken's messages need it."""


def hello(xid: int) -> bytes:
    """HELLO with version 1.0. It chooses the version: the board's own HELLO offers 1.3."""
    return serialized(parser.OFPHello(PROTOCOL), xid)


def features_request(xid: int) -> bytes:
    """FEATURES_REQUEST. The board closes a connection without one after about 3 s."""
    return serialized(parser.OFPFeaturesRequest(PROTOCOL), xid)


def barrier_request(xid: int) -> bytes:
    """Return a BARRIER_REQUEST."""
    return serialized(parser.OFPBarrierRequest(PROTOCOL), xid)


def echo_request(xid: int) -> bytes:
    """ECHO_REQUEST without payload; the board would not return one."""
    return serialized(parser.OFPEchoRequest(PROTOCOL), xid)


def table_stats_request(xid: int) -> bytes:
    """STATS_REQUEST for the table's number of entries."""
    return encode(TableStatsRequest(xid))


def flow_stats_request(xid: int) -> bytes:
    """STATS_REQUEST for the table's entries; the board answers with the first 20."""
    return encode(FlowStatsRequest(xid))


def description_request(xid: int) -> bytes:
    """STATS_REQUEST for the switch's description of itself. It goes in a segment of its own."""
    return serialized(parser.OFPDescStatsRequest(PROTOCOL, 0), xid)


@lru_cache(maxsize=1024)
def add_entry(entry: FlowEntry, xid: int) -> bytes:
    """FLOW_MOD that appends an entry without timeouts to the table."""
    return encode(AddEntry(xid, entry_of(entry, cookie=0)))


def flow_mod(
    match: Any,
    actions: Sequence[Any],
    *,
    priority: int,
    xid: int,
    command: int = of.OFPFC_ADD,
    cookie: int = 0,
) -> bytes:
    """FLOW_MOD with an os-ken match and os-ken actions, without timeouts."""
    message = parser.OFPFlowMod(
        PROTOCOL, match, cookie=cookie, command=command, priority=priority, actions=list(actions)
    )
    return serialized(message, xid)


def output_to(port: int) -> Any:
    """Return os-ken's action that sends a whole frame out of a port."""
    return parser.OFPActionOutput(port, 0xFFFF)


def session_segments(entries: Sequence[FlowEntry]) -> list[bytes]:
    """Return what a controller sends to set up a board in one go: one message per TCP segment, in order.

    Hello, features request, a flow-mod for each entry, a barrier. The board answers the features request and
    the barrier, so no segment gets more than one reply.
    """
    segments = [hello(1), features_request(2)]
    segments += [add_entry(entry, xid) for xid, entry in enumerate(entries, start=3)]
    segments.append(barrier_request(len(segments) + 1))
    return segments


def serialized(message: Any, xid: int) -> bytes:
    """Return the bytes of an os-ken message. Raises `ValueError` if it does not fit a board's segment."""
    message.set_xid(xid)
    message.serialize()
    data = bytes(message.buf)
    if len(data) > SEGMENT_BYTES:
        raise ValueError(
            f"{type(message).__name__} of {len(data)} bytes exceeds a segment of {SEGMENT_BYTES}"
        )
    return data
