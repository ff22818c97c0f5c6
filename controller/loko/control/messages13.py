"""OpenFlow 1.3 messages that set up a board's table, as bytes: each fits one TCP segment of the Zodiac FX.

What is sent here is safe on its firmware: one message per segment, so that no reply follows another one
(quirks 86, 90), the same fields in the same order in every match (quirk 124), and no timeouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from os_ken.ofproto import ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser

from loko.control.entries import FlowEntry
from loko.control.messages import serialized
from loko.control.wire import AddEntry, FlowStatsRequest, TableStatsRequest
from loko.control.wire13 import encode, entry_of

PROTOCOL: Final = ofproto_protocol.ProtocolDesc(version=of.OFP_VERSION)
"""Datapath as os-ken's messages need it."""
_WHOLE_COOKIE: Final = 0xFFFF_FFFF_FFFF_FFFF


def add_entry(entry: FlowEntry, xid: int) -> bytes:
    """FLOW_MOD that adds an entry without timeouts to the first table."""
    return encode(AddEntry(xid, entry_of(entry, cookie=0)))


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
    return encode(TableStatsRequest(xid))


def flow_stats_request(xid: int) -> bytes:
    """MULTIPART_REQUEST for the entries; the board answers in parts of 15 (quirk 102)."""
    return encode(FlowStatsRequest(xid))


def flow_mod(
    match: Any,
    actions: Sequence[Any],
    *,
    priority: int,
    xid: int,
    command: int = of.OFPFC_ADD,
    cookie: int = 0,
) -> bytes:
    """FLOW_MOD of the first table with an os-ken match and os-ken actions, without timeouts."""
    apply = [parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, list(actions))] if actions else []
    is_deletion = command in {of.OFPFC_DELETE, of.OFPFC_DELETE_STRICT}
    message = parser.OFPFlowMod(
        PROTOCOL,
        cookie=cookie,
        cookie_mask=_WHOLE_COOKIE if is_deletion and cookie else 0,
        command=command,
        priority=priority,
        out_port=of.OFPP_ANY,
        out_group=of.OFPG_ANY,
        match=match,
        instructions=apply,
    )
    return serialized(message, xid)


def output_to(port: int) -> Any:
    """Return os-ken's action that sends a whole frame out of a port."""
    return parser.OFPActionOutput(port, of.OFPCML_NO_BUFFER)


def session_segments(entries: Sequence[FlowEntry]) -> list[bytes]:
    """See `loko.control.messages.session_segments`: hello, features request, the entries, a barrier."""
    segments = [
        serialized(parser.OFPHello(PROTOCOL), 1),
        features_request(2),
    ]
    segments += [add_entry(entry, xid) for xid, entry in enumerate(entries, start=3)]
    segments.append(barrier_request(len(segments) + 1))
    return segments
