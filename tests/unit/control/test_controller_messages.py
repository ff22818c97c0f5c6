"""Messages as the board sees them, byte by byte."""

from __future__ import annotations

import struct
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser
from os_ken.ofproto import ofproto_v1_3_parser as parser13

from loko.control import messages, messages13, os_ken_messages, wire13
from loko.control.entries import five_tuple_entry
from loko.control.framing import SEGMENT_BYTES, framed
from loko.control.messages import add_entry, echo_request, session_segments
from loko.control.os_ken_messages import serialized
from loko.control.os_ken_messages13 import PROTOCOL
from loko.control.wire import (
    AddEntry,
    BarrierRequest,
    FlowStatsReply,
    FlowStatsRequest,
    TableStatsRequest,
    decode,
    encode,
    entry_of,
)

ENTRY = five_tuple_entry(
    priority=116,
    nw_src=IPv4Address("10.0.0.4"),
    nw_dst=IPv4Address("10.0.0.2"),
    tp_src=5003,
    tp_dst=6003,
    output_port=2,
)


def test_flow_mod_byte_by_byte() -> None:
    """OpenFlow 1.0.0, sections 5.2.3 and 5.3.3."""
    expected = "010e005000000013"  # version 1, flow-mod, 80 bytes, xid 19
    expected += "0030000f"  # wildcards: nw_tos, dl_vlan_pcp; in_port, dl_vlan, dl_src, dl_dst
    expected += "0000" + "00" * 12 + "0000" + "00" + "00" + "0800" + "00" + "11" + "0000"
    expected += "0a000004" + "0a000002" + f"{5003:04x}" + f"{6003:04x}"
    expected += "00" * 8 + "0000" + "0000" + "0000" + "0074"  # cookie, add, idle, hard, priority 116
    expected += "ffffffff" + "ffff" + "0000"  # no buffer, any out_port, no flags
    expected += "00000008" + "0002" + "ffff"  # output to port 2
    assert add_entry(ENTRY, 19).hex() == expected


@pytest.mark.parametrize(
    ("request_", "data"),
    [
        (BarrierRequest(xid=2), "0112000800000002"),
        (TableStatsRequest(xid=4), "0110000c0000000400030000"),
        (FlowStatsRequest(xid=5), "011000380000000500010000" + "003fffff" + "00" * 36 + "ff00ffff"),
    ],
)
def test_requests_byte_by_byte(request_, data) -> None:
    assert encode(request_).hex() == data


def test_echo_request_byte_by_byte() -> None:
    assert echo_request(3).hex() == "0102000800000003"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (messages.hello, parser.OFPHello(os_ken_messages.PROTOCOL)),
        (messages.features_request, parser.OFPFeaturesRequest(os_ken_messages.PROTOCOL)),
        (messages.barrier_request, parser.OFPBarrierRequest(os_ken_messages.PROTOCOL)),
        (messages.echo_request, parser.OFPEchoRequest(os_ken_messages.PROTOCOL)),
        (messages.description_request, parser.OFPDescStatsRequest(os_ken_messages.PROTOCOL, 0)),
        (lambda _: messages13.session_segments([])[0], parser13.OFPHello(PROTOCOL)),
        (messages13.features_request, parser13.OFPFeaturesRequest(PROTOCOL)),
        (messages13.barrier_request, parser13.OFPBarrierRequest(PROTOCOL)),
        (messages13.echo_request, parser13.OFPEchoRequest(PROTOCOL)),
        (messages13.table_stats_request, parser13.OFPTableStatsRequest(PROTOCOL, 0)),
    ],
)
def test_os_ken_builds_the_same_request(ours, theirs) -> None:
    assert ours(1) == serialized(theirs, 1)


def test_whole_session_is_one_message_a_segment() -> None:
    segments = session_segments([ENTRY] * 17)
    assert [segment[1] for segment in segments] == [0, 5, *[14] * 17, 18]
    assert {segment[0] for segment in segments} == {1}
    for number, segment in enumerate(segments, start=1):
        assert struct.unpack("!HI", segment[2:8]) == (len(segment), number)
        assert len(segment) <= SEGMENT_BYTES


addresses = st.integers(1, 2**32 - 1).map(IPv4Address)
ports = st.integers(1, 65535)
entries = st.builds(
    five_tuple_entry,
    priority=st.integers(0, 65535),
    nw_src=addresses,
    nw_dst=addresses,
    tp_src=ports,
    tp_dst=ports,
    output_port=st.integers(1, 4),
)


@given(entries, st.integers(1, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_entry_survives_the_wire(flow, xid, cookie) -> None:
    """Another implementation reads the FLOW_MOD, and a listing gives the same entry back."""
    entry = entry_of(flow, cookie=cookie)
    data = add_entry(flow, xid)
    match = parser.OFPMatch.parse(data, of.OFP_HEADER_SIZE)
    assert (match.nw_src, match.nw_dst) == (int(flow.match.nw_src), int(flow.match.nw_dst))
    assert (match.tp_src, match.tp_dst, match.dl_type) == (flow.match.tp_src, flow.match.tp_dst, 0x0800)
    assert parser.OFPActionOutput.parser(data, of.OFP_FLOW_MOD_SIZE).port == flow.output_port
    counters = struct.pack("!IIHHH6xQQQ", 0, 0, flow.priority, 0, 0, cookie, 0, 0)
    body = struct.pack("!HH", 1, 0) + struct.pack("!HBx", 96, 0) + entry.match + counters + entry.actions
    assert decode(framed(1, 17, xid, body)) == FlowStatsReply(xid, (entry,), more=False)


@given(entries, st.integers(1, 2**32 - 1), st.integers(0, 2**64 - 1), st.binary(min_size=5, max_size=5))
def test_entry_survives_the_wire_of_1_3(flow, xid, cookie, garbage) -> None:
    """Likewise; but a listing may have any padding (quirk 107) and its fields in another order."""
    entry = wire13.entry_of(flow, cookie=cookie)
    data = wire13.encode(AddEntry(xid, entry))
    message = parser13.OFPFlowMod.parser(PROTOCOL, 4, 14, len(data), xid, data)
    told = dict(message.match.items())
    assert told["eth_type"] == 0x0800
    assert told["ip_proto"] == 17
    assert (told["udp_src"], told["udp_dst"]) == (flow.match.tp_src, flow.match.tp_dst)
    assert (told["ipv4_src"], told["ipv4_dst"]) == (str(flow.match.nw_src), str(flow.match.nw_dst))
    assert message.instructions[0].actions[0].port == flow.output_port
    assert (message.cookie, message.priority, message.table_id) == (cookie, flow.priority, 0)
    reordered = entry.match[27:] + entry.match[:27]
    listed = (
        struct.pack("!HH", 1, 4 + len(reordered)) + reordered + garbage,
        struct.pack("!HBxIIHHHH4xQQQ", 120, 0, 0, 0, flow.priority, 0, 0, 0, cookie, 0, 0),
    )
    body = struct.pack("!HH4x", 1, 0) + listed[1] + listed[0] + entry.actions
    answer = wire13.decode(framed(4, 19, xid, body))
    assert isinstance(answer, FlowStatsReply)
    (returned,) = answer.entries
    assert returned.fields == entry.fields
    assert returned.fields != replace(entry, table=1).fields


@given(st.binary(max_size=200))
def test_whatever_a_switch_says_in_1_3_is_read_or_passed_over(data: bytes) -> None:
    for kind in (1, 19, 21):
        for subject in (1, 2, 3):
            wire13.decode(bytes([4, kind, 0, 0, 0, 0, 0, 1, 0, subject, 0, 0, 0, 0, 0, 0]) + data)
            wire13.decode(data)
