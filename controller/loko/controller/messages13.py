"""OpenFlow 1.3 messages that set up a board's table, as bytes: each fits one TCP segment of the Zodiac FX.

What is sent here is safe on its firmware: one message a segment, so that no reply comes behind another one
(quirks 86, 90), every match with the same fields in the same order (quirk 124), no timeouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from os_ken.ofproto import ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser

from loko.controller.messages import serialized
from loko.entries import FlowEntry

PROTOCOL: Final = ofproto_protocol.ProtocolDesc(version=of.OFP_VERSION)
"""What os-ken's messages want to know of their connection."""
_SEND_ALL: Final = 0xFFFF


def match_of(entry: FlowEntry) -> Any:
    """The five-tuple, in the order of `loko.scenario.Match.oxms`: what it costs depends on the order."""
    return parser.OFPMatch(
        eth_type=entry.dl_type,
        ip_proto=entry.nw_proto,
        ipv4_src=int(entry.nw_src),
        ipv4_dst=int(entry.nw_dst),
        udp_src=entry.tp_src,
        udp_dst=entry.tp_dst,
    )


def add_entry(entry: FlowEntry, xid: int) -> bytes:
    """FLOW_MOD that adds an entry without timeouts to the first table."""
    output = parser.OFPActionOutput(entry.output_port, _SEND_ALL)
    message = parser.OFPFlowMod(
        PROTOCOL,
        match=match_of(entry),
        priority=entry.priority,
        instructions=[parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, [output])],
    )
    return serialized(message, xid)


def session_segments(entries: Sequence[FlowEntry]) -> list[bytes]:
    """As `loko.controller.messages.session_segments`: hello, features request, the entries, a barrier."""
    segments = [
        serialized(parser.OFPHello(PROTOCOL), 1),
        serialized(parser.OFPFeaturesRequest(PROTOCOL), 2),
    ]
    segments += [add_entry(entry, xid) for xid, entry in enumerate(entries, start=3)]
    segments.append(serialized(parser.OFPBarrierRequest(PROTOCOL), len(segments) + 1))
    return segments
