"""The model's time of a message is an upper bound on how long a frame on the emulated board waits for it."""

from __future__ import annotations

import dpkt
import pytest
import switch_emulator
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.entries import padding_entries, switch_entries
from loko.control.messages import (
    barrier_request,
    echo_request,
    features_request,
    flow_stats_request,
    session_segments,
    table_stats_request,
)
from loko.control.os_ken_messages import PROTOCOL, flow_mod, serialized
from loko.control.wire import AddEntry, BarrierRequest, DeleteEntry, PortsRequest, entry_of, segment
from loko.switch_model.control_traffic import COMPARED_ENTRIES, MessageType, message_ns
from loko.switch_model.device import load_profile
from loko.switch_model.flow import Flow
from loko.topology.lab import load_lab
from loko.topology.network import on_shortest_paths

LAB = load_lab("two-switch")
ZODIAC = load_profile("zodiac-fx")
FLOW = Flow(
    id="f",
    source="H1",
    destination="H3",
    udp_source=1000,
    udp_destination=2000,
    rate_bps=1e5,
    burst_bytes=306.0,
    frame_bytes=306,
)
SPACING_NS = 10_000_000
PROBE = 0x7777
NOBODY = parser.OFPMatch(dl_type=0x0800, nw_proto=17, nw_src="198.51.100.1")
DUMMIES = parser.OFPMatch(dl_type=0x0800, nw_proto=17, nw_dst="192.0.2.254")
NOBODYS = entry_of(padding_entries(LAB, 1)[0], cookie=1)
OUTPUT = [parser.OFPActionOutput(1, 0)]
REQUESTS = {
    "echo": (MessageType.ECHO, echo_request(9)),
    "barrier": (MessageType.BARRIER, barrier_request(9)),
    "features": (MessageType.FEATURES, features_request(9)),
    "ports": (MessageType.PORTS, segment([PortsRequest(9)])),
    "add": (MessageType.FLOW_ADD, flow_mod(NOBODY, OUTPUT, priority=7, xid=9)),
    "delete dummies": (
        MessageType.FLOW_DELETE,
        flow_mod(DUMMIES, [], priority=7, xid=9, command=of.OFPFC_DELETE),
    ),
    "delete nothing": (
        MessageType.FLOW_DELETE,
        flow_mod(NOBODY, [], priority=7, xid=9, command=of.OFPFC_DELETE),
    ),
    "delete strictly": (
        MessageType.FLOW_DELETE_STRICT,
        flow_mod(NOBODY, [], priority=7, xid=9, command=of.OFPFC_DELETE_STRICT),
    ),
    "modify dummies": (
        MessageType.FLOW_MODIFY,
        flow_mod(DUMMIES, OUTPUT, priority=7, xid=9, command=of.OFPFC_MODIFY),
    ),
    "modify strictly": (
        MessageType.FLOW_MODIFY_STRICT,
        flow_mod(NOBODY, OUTPUT, priority=7, xid=9, command=of.OFPFC_MODIFY_STRICT),
    ),
    "flow statistics": (MessageType.FLOW_STATISTICS, flow_stats_request(9)),
    "table statistics": (MessageType.TABLE_STATISTICS, table_stats_request(9)),
    "port statistics": (
        MessageType.PORT_STATISTICS,
        serialized(parser.OFPPortStatsRequest(PROTOCOL, 0, of.OFPP_NONE), 9),
    ),
    "change of two": (
        MessageType.CHANGE,
        segment([BarrierRequest(1), DeleteEntry(2, NOBODYS), DeleteEntry(3, NOBODYS)]),
    ),
    "change and addition": (
        MessageType.CHANGE,
        segment([BarrierRequest(1), DeleteEntry(2, NOBODYS), AddEntry(3, NOBODYS)]),
    ),
    "description": (MessageType.DESCRIPTION, serialized(parser.OFPDescStatsRequest(PROTOCOL, 0), 9)),
}


def frame() -> bytes:
    hosts = LAB.hosts
    udp = dpkt.udp.UDP(sport=FLOW.udp_source, dport=FLOW.udp_destination, data=bytes(306 - 46))
    udp.ulen = len(udp)
    packet = dpkt.ip.IP(src=hosts["H1"].ip.ip.packed, dst=hosts["H3"].ip.ip.packed, p=17, data=udp)
    packet.len = len(packet)
    return bytes(14 - 2) + b"\x08\x00" + bytes(packet)


def delay_ns(entries: int, request: bytes | None, *, of_frame: bool) -> int:
    """Return the delay of a frame or an echo that comes right after the request.

    The board has `entries` entries. A Delete that hits some makes others drop their frames (quirk 46), but
    echoes are not dropped.
    """
    board = switch_emulator.Board(profile="zodiac-fx", config={"ofchecks": False}, seed=1)
    now_ns = 2_500_000_000
    board.connected(now_ns)
    for data in session_segments(switch_entries(LAB, on_shortest_paths(LAB, [FLOW]), entries=entries)["s1"]):
        now_ns += SPACING_NS
        board.segment(now_ns, data)
    now_ns += SPACING_NS
    board.advance(now_ns)
    board.outputs()
    if request is not None:
        board.segment(now_ns, request)
    if of_frame:
        board.frame(now_ns, 1, frame())
    else:
        board.segment(now_ns, echo_request(PROBE))
    board.advance(now_ns + SPACING_NS)
    outputs = board.outputs()
    left = [
        output
        for output in outputs
        if (output.kind == "frame" and of_frame)
        or (output.kind == "controller" and output.data[4:8] == PROBE.to_bytes(4, "big"))
    ]
    (only,) = left
    return int(only.at_ns) - now_ns


@pytest.mark.parametrize("entries", [17, 120])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_frame_waits_no_longer(name: str, entries: int) -> None:
    kind, request = REQUESTS[name]
    of_frame = name != "delete dummies"
    waited_ns = delay_ns(entries, request, of_frame=of_frame) - delay_ns(entries, None, of_frame=of_frame)
    loop_ns = ZODIAC.cpu.loop_ps.value / 1000
    assert waited_ns <= message_ns(ZODIAC, kind, entries) + loop_ns
    assert waited_ns > 0


@pytest.mark.parametrize("entries", [1, COMPARED_ENTRIES])
def test_a_frame_waits_no_longer_for_a_comparison(entries: int) -> None:
    waited_ns = delay_ns(entries, flow_stats_request(9), of_frame=True) - delay_ns(
        entries, None, of_frame=True
    )
    bound_ns = message_ns(ZODIAC, MessageType.COMPARISON, entries) + ZODIAC.cpu.loop_ps.value / 1000
    assert 0 < waited_ns <= bound_ns


def test_the_bound_is_no_exaggeration() -> None:
    """Beyond what a frame sees, it only counts the links and the later acknowledgement of the reply."""
    for name in ("echo", "barrier", "delete dummies"):
        kind, request = REQUESTS[name]
        of_frame = name != "delete dummies"
        waited_ns = delay_ns(120, request, of_frame=of_frame) - delay_ns(120, None, of_frame=of_frame)
        assert message_ns(ZODIAC, kind, 120) < 2 * waited_ns + 100_000
