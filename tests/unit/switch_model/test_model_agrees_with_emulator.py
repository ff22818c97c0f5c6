"""The controller's model and the emulated board give the same time for a frame, whatever the table."""

from __future__ import annotations

import dataclasses
import re
import struct
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import dpkt
import pytest
import switch_emulator
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_protocol
from os_ken.ofproto import ofproto_v1_0_parser as parser
from os_ken.ofproto import ofproto_v1_3_parser as parser13

from loko.control.messages import barrier_request, features_request, hello
from loko.document import PROFILES
from loko.switch_model.device import load_profile
from loko.switch_model.scenario import (
    TABLE_1_MATCHES,
    ActionType,
    Case,
    MatchType,
    OpenFlow,
    PriorityOrder,
    UsedEntry,
)
from loko.switch_model.service_curve import capacity_frames, processing

OPENFLOW_1_0 = ofproto_protocol.ProtocolDesc(version=1)
OPENFLOW_1_3 = ofproto_protocol.ProtocolDesc(version=4)
FCS_BYTES = 4
VLAN_TAG_BYTES = 4
SESSION_NS = 2_500_000_000
FRAME_NS = 3_000_000_000


@pytest.fixture(scope="module")
def quiet_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a profile of the Zodiac FX without its random parts: the wait for the main loop, and timers."""
    source = (PROFILES / "zodiac-fx.toml").read_text()
    source, loops = re.subn(
        r"(?m)^loop_ps = .*$", 'loop_ps = { value = 2_000, source = "assumption" }', source
    )
    head, timers, tail = source.partition("[cpu.timers]")
    tail, costs = re.subn(r"(?m)^cost_ps = \{ value = [\d_]+", "cost_ps = { value = 0", tail)
    assert (loops, costs) == (1, 1)
    path = tmp_path_factory.mktemp("profiles") / "quiet.toml"
    path.write_text(head + timers + tail)
    return path


def match_of(match: MatchType, number: int) -> Any:
    """Return the match that frame `number` hits, and no frame of another number."""
    five_tuple = {
        "dl_type": 0x0800,
        "nw_proto": 17,
        "nw_src": str(IPv4Address("10.1.0.1")),
        "nw_dst": str(IPv4Address("10.2.0.1") + 256 * number),
        "tp_src": 4000,
        "tp_dst": 5000 + number,
    }
    fields = {
        MatchType.PORT: {"in_port": 1 + number},
        MatchType.TP_DST: {key: five_tuple[key] for key in ("dl_type", "nw_proto", "tp_dst")},
        MatchType.DL_DST: {"dl_dst": f"02:00:00:00:01:{number:02x}"},
        MatchType.MASKED_NW_DST: {
            "dl_type": 0x0800,
            "nw_dst": str(IPv4Address("10.2.0.0") + 256 * number),
            "nw_dst_mask": 24,
        },
        MatchType.FIVE_TUPLE: five_tuple,
        MatchType.ALL: {
            **five_tuple,
            "in_port": 1,
            "nw_tos": 0,
            "dl_src": "02:00:00:00:00:01",
            "dl_dst": f"02:00:00:00:01:{number:02x}",
        },
        MatchType.FIVE_TUPLE_AND_PORT: {**five_tuple, "in_port": 1 + number},
    }
    return parser.OFPMatch(**fields[match])


def actions_of(action: ActionType) -> list[Any]:
    before = {
        ActionType.OUTPUT: [],
        ActionType.SET_VLAN_ID: [parser.OFPActionVlanVid(5)],
        ActionType.SET_VLAN_PCP: [parser.OFPActionVlanPcp(3)],
        ActionType.STRIP_VLAN: [parser.OFPActionStripVlan()],
        ActionType.SET_DL_SRC: [parser.OFPActionSetDlSrc("02:00:00:00:00:77")],
        ActionType.SET_NW_SRC: [parser.OFPActionSetNwSrc("10.9.9.9")],
        ActionType.SET_NW_TOS: [parser.OFPActionSetNwTos(0x20)],
        ActionType.SET_TP_SRC: [parser.OFPActionSetTpSrc(77)],
    }
    return [*before[action], parser.OFPActionOutput(2, 0xFFFF)]


def flow_mods(case: Case) -> list[bytes]:
    """Return the FLOW_MODs of a table in which only the used entry matches frame 0."""
    used = 0 if case.used_entry is UsedEntry.FIRST else case.entries - 1
    messages = []
    for place in range(case.entries):
        number = 0 if place == used else 1 + place
        increasing = case.priorities is PriorityOrder.INCREASING
        message = parser.OFPFlowMod(
            OPENFLOW_1_0,
            match_of(case.match, number),
            priority=1000 + (place if increasing else -place),
            actions=actions_of(case.action),
        )
        message.set_xid(3 + place)
        message.serialize()
        messages.append(bytes(message.buf))
    return messages


def frame_of(case: Case) -> bytes:
    """Return frame 0 in the case's size, without FCS, and with a tag if the action strips one."""
    tag = b"\x81\x00\x00\x05" if case.action is ActionType.STRIP_VLAN else b""
    payload = bytes(case.frame_bytes - FCS_BYTES - 14 - len(tag) - 20 - 8)
    udp = dpkt.udp.UDP(sport=4000, dport=5000, data=payload, ulen=8 + len(payload))
    packet = dpkt.ip.IP(
        src=IPv4Address("10.1.0.1").packed, dst=IPv4Address("10.2.0.1").packed, p=17, data=udp
    )
    packet.len = 28 + len(payload)
    addresses = bytes.fromhex("020000000100") + bytes.fromhex("020000000001")
    return addresses + tag + b"\x08\x00" + bytes(packet)


def emulated_ns(case: Case, profile: Path) -> int:
    """Return p_FX of a lone frame: departure of its first bit minus arrival of its last one."""
    board = switch_emulator.Board(profile=str(profile), config={"ofchecks": False})
    now_ns = 1_000_000
    board.connected(now_ns)
    for segment in (hello(1), features_request(2), *flow_mods(case), barrier_request(999)):
        now_ns += 5_000_000
        board.segment(now_ns, segment)
    board.advance(SESSION_NS)
    assert len(board.flows()) == case.entries
    board.outputs()
    board.frame(FRAME_NS, 1, frame_of(case))
    board.advance(FRAME_NS + 10_000_000)
    (output,) = [given_out for given_out in board.outputs() if given_out.kind == "frame"]
    assert output.port == 0b10
    return int(output.at_ns) - FRAME_NS


cases = st.builds(
    Case,
    entries=st.integers(1, 128),
    match=st.sampled_from([*TABLE_1_MATCHES, MatchType.FIVE_TUPLE_AND_PORT]),
    action=st.sampled_from(sorted(ActionType, key=str)),
    used_entry=st.sampled_from(sorted(UsedEntry, key=str)),
    priorities=st.sampled_from(sorted(PriorityOrder, key=str)),
    frame_bytes=st.integers(68, 1514),
)


@examples(150)
@given(case=cases)
def test_processing_time_agrees(quiet_profile: Path, case: Case) -> None:
    modelled_ns = processing(load_profile(quiet_profile), case).switch_ns
    if case.action is ActionType.STRIP_VLAN:
        modelled_ns -= VLAN_TAG_BYTES * 80  # the frame returns shorter, which the model ignores
    # Only roundings to whole nanoseconds and the loop of 2 ns may differ.
    assert emulated_ns(case, quiet_profile) == pytest.approx(modelled_ns, abs=4)


# Values of TCP frame 0 in each field of 1.3, and values that it does not have, in the order of transmission.
HELD_13: dict[str, Any] = {
    "in_port": 1,
    "eth_dst": "02:00:00:00:01:00",
    "eth_src": "02:00:00:00:00:01",
    "eth_type": 0x0800,
    "ip_dscp": 0,
    "ip_proto": 6,
    "ipv4_src": "10.1.0.1",
    "ipv4_dst": "10.2.0.1",
    "tcp_src": 4000,
    "tcp_dst": 5000,
    "vlan_vid": 0x1005,
}
LACKED_13: dict[str, Any] = {
    "in_port": 3,
    "eth_dst": "02:00:00:00:09:00",
    "eth_src": "02:00:00:00:00:09",
    "eth_type": 0x0806,
    "ip_dscp": 9,
    "ip_proto": 17,
    "ipv4_src": "10.9.0.1",
    "ipv4_dst": "10.9.0.1",
    "tcp_src": 9,
    "tcp_dst": 9,
    "vlan_vid": 0x1006,
}
FIELDS_13 = {
    MatchType.PORT: ("in_port",),
    MatchType.TP_DST: ("eth_type", "ip_proto", "tcp_dst"),
    MatchType.DL_DST: ("eth_dst",),
    MatchType.MASKED_NW_DST: ("eth_type", "ipv4_dst"),
    MatchType.FIVE_TUPLE: ("eth_type", "ip_proto", "ipv4_src", "ipv4_dst", "tcp_src", "tcp_dst"),
    MatchType.ALL: tuple(name for name in HELD_13 if name != "vlan_vid"),
    MatchType.DL_VLAN: ("vlan_vid",),
}
FIELDS_13[MatchType.FIVE_TUPLE_AND_PORT] = ("in_port", *FIELDS_13[MatchType.FIVE_TUPLE])


def match_13(match: MatchType, failing: str | None) -> Any:
    """Return a match that frame 0 hits, except in the field `failing`."""
    fields = {name: (LACKED_13 if name == failing else HELD_13)[name] for name in FIELDS_13[match]}
    if match is MatchType.MASKED_NW_DST:
        fields["ipv4_dst"] = (str(IPv4Address(fields["ipv4_dst"])).rpartition(".")[0] + ".0", "255.255.255.0")
    return parser13.OFPMatch(**fields)


def actions_13(action: ActionType) -> list[Any]:
    push, pop, put = parser13.OFPActionPushVlan, parser13.OFPActionPopVlan, parser13.OFPActionSetField
    before = {
        ActionType.OUTPUT: [],
        ActionType.SET_VLAN_ID: [push(0x8100), put(vlan_vid=0x1005)],
        ActionType.SET_VLAN_PCP: [push(0x8100), put(vlan_pcp=3)],
        ActionType.STRIP_VLAN: [pop()],
        ActionType.SET_DL_SRC: [put(eth_src="02:00:00:00:00:77")],
        ActionType.SET_NW_SRC: [put(ipv4_src="10.9.9.9")],
        ActionType.SET_NW_TOS: [put(ip_dscp=8)],
        ActionType.SET_TP_SRC: [put(tcp_src=77)],
    }
    return [*before[action], parser13.OFPActionOutput(2, 0xFFFF)]


def flow_mods_13(case: Case, failing: str) -> list[bytes]:
    """Return FLOW_MODs: only the used entry matches frame 0, and all others fail at the same field."""
    used = 0 if case.used_entry is UsedEntry.FIRST else case.entries - 1
    messages = []
    for place in range(case.entries):
        increasing = case.priorities is PriorityOrder.INCREASING
        message = parser13.OFPFlowMod(
            OPENFLOW_1_3,
            match=match_13(case.match, None if place == used else failing),
            priority=1000 + (place if increasing else -place),
            instructions=[parser13.OFPInstructionActions(4, actions_13(case.action))],
        )
        message.set_xid(3 + place)
        message.serialize()
        messages.append(bytes(message.buf))
    return messages


def tcp_frame_of(case: Case) -> bytes:
    """Return frame 0 with TCP instead of UDP."""
    frame = bytearray(frame_of(case))
    ip = 18 if case.action is ActionType.STRIP_VLAN else 14
    frame[ip + 9] = 6
    return bytes(frame)


def emulated_13_ns(case: Case, profile: Path, failing: str) -> int:
    """Like `emulated_ns`, in a session of OpenFlow 1.3."""
    board = switch_emulator.Board(profile=str(profile), config={"ofchecks": False, "openflow_version": 4})
    now_ns = 1_000_000
    board.connected(now_ns)
    for segment in (hello(1), *flow_mods_13(case, failing)):
        now_ns += 5_000_000
        board.segment(now_ns, segment)
    board.advance(SESSION_NS)
    assert len(board.flows13()) == case.entries
    board.outputs()
    board.frame(FRAME_NS, 1, tcp_frame_of(case))
    board.advance(FRAME_NS + 20_000_000)
    (output,) = [given_out for given_out in board.outputs() if given_out.kind == "frame"]
    assert output.port == 0b10
    return int(output.at_ns) - FRAME_NS


@examples(40)
@given(case=cases)
def test_processing_time_of_openflow_1_3_is_the_longest(quiet_profile: Path, case: Case) -> None:
    case = dataclasses.replace(case, openflow=OpenFlow.V1_3)
    modelled_ns = processing(load_profile(quiet_profile), case).switch_ns
    if case.action is ActionType.STRIP_VLAN:
        modelled_ns -= VLAN_TAG_BYTES * 80  # as above
    emulated = {failing: emulated_13_ns(case, quiet_profile, failing) for failing in FIELDS_13[case.match]}
    # Whichever field fails, an entry takes at most the time of the model, and for one field exactly that.
    assert max(emulated.values()) == pytest.approx(modelled_ns, abs=4), emulated


@pytest.mark.parametrize("entries", [1, 3, 128])
@pytest.mark.parametrize("frame_bytes", [68, 314, 1518])
def test_processing_time_of_a_tag_that_is_matched_and_popped(
    quiet_profile: Path, entries: int, frame_bytes: int
) -> None:
    """As in the tables of VLAN stacks."""
    case = Case(
        entries=entries,
        match=MatchType.DL_VLAN,
        action=ActionType.STRIP_VLAN,
        used_entry=UsedEntry.LAST,
        priorities=PriorityOrder.INCREASING,
        frame_bytes=frame_bytes,
        openflow=OpenFlow.V1_3,
    )
    modelled_ns = processing(load_profile(quiet_profile), case).switch_ns - VLAN_TAG_BYTES * 80
    assert emulated_13_ns(case, quiet_profile, "vlan_vid") == pytest.approx(modelled_ns, abs=4)


@pytest.mark.parametrize("frame_bytes", [64, 65, 128, 129, 306, 548, 790, 1032, 1274, 1516])
def test_buffer_capacity_agrees(frame_bytes: int) -> None:
    """Of the frames that arrive while the board is busy, as many pass as the model says that it holds."""
    case = Case(
        entries=128,
        match=MatchType.FIVE_TUPLE,
        action=ActionType.OUTPUT,
        used_entry=UsedEntry.LAST,
        priorities=PriorityOrder.INCREASING,
        frame_bytes=frame_bytes,
    )
    board = switch_emulator.Board(config={"ofchecks": False})
    board.connected(1_000_000)
    for number, segment in enumerate((hello(1), features_request(2), *flow_mods(case))):
        board.segment(6_000_000 + 5_000_000 * number, segment)
    board.advance(SESSION_NS)
    board.outputs()
    # The CPU takes the first frame before the others come. They follow at line rate, faster than the CPU.
    board.frame(FRAME_NS, 1, frame_of(case))
    period_ns = (frame_bytes + 20) * 80
    count = 3 * 25
    within_ns = 1_200_000
    for number in range(min(count, within_ns // period_ns)):
        board.frame(FRAME_NS + 20_000 + number * period_ns, 1, frame_of(case))
    board.advance(FRAME_NS + 200_000_000)
    passed = sum(output.kind == "frame" for output in board.outputs())
    assert passed == capacity_frames(load_profile("zodiac-fx"), frame_bytes)


def test_flow_mods_fit_a_segment() -> None:
    case = Case(
        entries=2,
        match=MatchType.ALL,
        action=ActionType.SET_DL_SRC,
        used_entry=UsedEntry.LAST,
        priorities=PriorityOrder.INCREASING,
        frame_bytes=306,
    )
    assert all(struct.unpack_from("!H", message, 2)[0] == len(message) <= 536 for message in flow_mods(case))
