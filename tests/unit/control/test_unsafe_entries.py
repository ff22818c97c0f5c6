"""Entries on the wire in both versions, and entries that a board would not execute as intended."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest
import switch_emulator
from board_end import BoardEnd, Pair
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser
from os_ken.ofproto import ofproto_v1_3_parser as parser13

from loko.control import messages, messages13, os_ken_messages13, wire, wire13
from loko.control.dialect import DIALECTS
from loko.control.driver import OWN_MARK, Driver
from loko.control.entries import (
    UNTAGGED,
    Enqueue,
    Fields,
    FlowEntry,
    Output,
    PopVlan,
    PushVlan,
    SetVlan,
)
from loko.control.framing import SEGMENT_BYTES
from loko.control.unsafe_entries import refuse_unsafe_entries
from loko.control.versions import CODECS
from loko.document import InputError
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Backend, load_lab

BOARD = load_lab("two-switch").switches["s1"]
V1_0, V1_3 = OpenFlow.V1_0, OpenFlow.V1_3
MS = 1_000_000

macs = st.binary(min_size=6, max_size=6).map(lambda data: data.hex(":"))
networks = st.builds(
    lambda address, bits: IPv4Network((address, bits), strict=False),
    st.integers(0, 2**32 - 1),
    st.integers(1, 31),
)
addresses = st.integers(1, 2**32 - 1).map(IPv4Address) | networks
numbers = st.integers(1, 65535)
matches = st.builds(
    Fields,
    in_port=st.none() | st.integers(1, 48),
    dl_src=st.none() | macs,
    dl_dst=st.none() | macs,
    dl_vlan=st.none() | st.integers(1, 4094) | st.just(UNTAGGED),
    dl_vlan_pcp=st.none() | st.integers(0, 7),
    dl_type=st.none() | st.just(0x0800),
    nw_tos=st.none() | st.integers(0, 63).map(lambda dscp: dscp << 2),
    nw_proto=st.none() | st.sampled_from([6, 17]),
    nw_src=st.none() | addresses,
    nw_dst=st.none() | addresses,
    tp_src=st.none() | numbers,
    tp_dst=st.none() | numbers,
)


def entry(*actions: object, priority: int = 100, **fields: object) -> FlowEntry:
    return FlowEntry(
        priority=priority,
        match=Fields(**fields),  # type: ignore[arg-type]
        actions=actions or (Output(2),),  # type: ignore[arg-type]
    )


# On the wire.


@given(matches)
def test_another_implementation_reads_the_fields_of_1_0(match: Fields) -> None:
    data = messages.add_entry(FlowEntry(priority=1, match=match, actions=(Output(1),)), 1)
    read = parser.OFPMatch.parse(data, of.OFP_HEADER_SIZE)
    written = {"nw_src": 8, "nw_dst": 14}
    for name in Fields.__slots__:
        value = getattr(match, name)
        bits = {"nw_src": of.OFPFW_NW_SRC_MASK, "nw_dst": of.OFPFW_NW_DST_MASK}.get(
            name, getattr(of, f"OFPFW_{name.upper()}", 0)
        )
        is_open = read.wildcards & bits
        if value is None:
            assert is_open
        elif name in written:
            network = IPv4Network(value)
            assert getattr(read, name) == int(network.network_address)
            assert is_open >> written[name] == 32 - network.prefixlen
        elif name in {"dl_src", "dl_dst"}:
            assert (getattr(read, name), is_open) == (bytes.fromhex(value.replace(":", "")), 0)
        else:
            assert (getattr(read, name), is_open) == (value, 0)


@given(matches)
def test_another_implementation_reads_the_fields_of_1_3(match: Fields) -> None:
    data = messages13.add_entry(FlowEntry(priority=1, match=match, actions=(Output(1),)), 1)
    read = dict(
        parser13.OFPFlowMod.parser(os_ken_messages13.PROTOCOL, 4, 14, len(data), 1, data).match.items()
    )
    transport = "tcp" if match.nw_proto == 6 else "udp"
    expected = {
        "in_port": match.in_port,
        "eth_src": match.dl_src,
        "eth_dst": match.dl_dst,
        "vlan_vid": None
        if match.dl_vlan is None
        else 0
        if match.dl_vlan == UNTAGGED
        else 0x1000 | match.dl_vlan,
        "vlan_pcp": match.dl_vlan_pcp,
        "eth_type": match.dl_type,
        "ip_dscp": None if match.nw_tos is None else match.nw_tos >> 2,
        "ip_proto": match.nw_proto,
        "ipv4_src": addressed(match.nw_src),
        "ipv4_dst": addressed(match.nw_dst),
        f"{transport}_src": match.tp_src,
        f"{transport}_dst": match.tp_dst,
    }
    assert read == {name: value for name, value in expected.items() if value is not None}


def addressed(value: IPv4Address | IPv4Network | None) -> object:
    if isinstance(value, IPv4Network):
        return str(value.network_address), str(value.netmask)
    return None if value is None else str(value)


def test_actions_byte_by_byte() -> None:
    """OpenFlow 1.0.0, section 5.2.4; 1.3.5, section 7.2.5."""
    actions = (SetVlan(7), Enqueue(2, 5), Output(3))
    assert wire.entry_of(entry(*actions), cookie=0).actions.hex() == (
        "0001000800070000" + "000b00100002000000000000" + "00000005" + "000000080003ffff"
    )
    assert wire.entry_of(entry(PopVlan()), cookie=0).actions.hex() == "0003000800000000"
    output = "00000010" + "00000003" + "ffff" + "00" * 6
    assert wire13.entry_of(entry(PopVlan(), Output(3)), cookie=0).actions.hex() == (
        "0004002000000000" + "0012000800000000" + output
    )
    assert wire13.entry_of(entry(PushVlan(7), Output(3)), cookie=0).actions.hex() == (
        "0004003000000000" + "0011000881000000" + "00190010" + "80000c02" + "1007" + "00" * 6 + output
    )
    with pytest.raises(InputError, match=r"push-vlan 7: OpenFlow 1.0 cannot"):
        wire.entry_of(entry(PushVlan(7)), cookie=0)


def test_what_a_switch_lists_is_compared_field_by_field() -> None:
    """The switch may write wildcarded fields in any way."""
    sent = wire.entry_of(entry(in_port=3, nw_src=IPv4Network("10.0.0.0/8")), cookie=1)
    wildcards = int.from_bytes(sent.match[:4], "big")  # nw_dst: 63 wildcard bits mean the same as 32
    listed = replace(sent, match=(wildcards | 0x1F << 14).to_bytes(4, "big") + sent.match[4:36] + b"\1\2\3\4")
    assert listed.fields == sent.fields
    open_tos = wire.entry_of(entry(dl_type=0x0800), cookie=1)
    tos_of_0 = wire.entry_of(entry(dl_type=0x0800, nw_tos=0, dl_vlan_pcp=0), cookie=1)
    assert tos_of_0.fields == open_tos.fields
    other = wire.entry_of(entry(in_port=2, nw_src=IPv4Network("10.0.0.0/8")), cookie=1)
    assert other.fields != sent.fields
    assert str(sent) == "in_port 3 nw_src 10.0.0.0/8 cookie 0x1"


# Behaviour of a board with these entries.


@pytest.mark.parametrize(
    ("openflow", "entries", "hazard"),
    [
        (V1_0, [entry(dl_vlan=7)], "takes each VLAN tag for any other (quirk 62)"),
        (V1_0, [entry(nw_tos=4)], "does not compare dl_vlan_pcp and nw_tos (quirk 63)"),
        (
            V1_0,
            [entry(PopVlan(), SetVlan(3), Output(1))],
            "second VLAN action goes",
        ),
        (V1_0, [entry(*[Output(1)] * 5)], "5 actions, of which it keeps 4"),
        (V1_0, [entry(), entry(Output(1), Output(3), in_port=1)], "1 to 2 actions"),
        (V1_0, [entry(Enqueue(1, 0))], "has no queues"),
        (V1_0, [entry(SetVlan(0), Output(1))], "VLAN 0 is none (quirks 59 and 148)"),
        (V1_3, [entry(Enqueue(1, 0))], "has no queues"),
        (V1_3, [entry(dl_vlan=4095)], "VLAN 4095 is none"),
        (V1_3, [entry(*[Output(1)] * 6)], "104 bytes of match or actions, of which it keeps 96 (quirk 122)"),
        (V1_3, [entry(in_port=1, dl_type=0x0800), entry(in_port=1)], "would be replaced"),
    ],
)
def test_a_table_that_a_board_gets_wrong_is_one_line(openflow, entries, hazard) -> None:
    with pytest.raises(InputError) as refused:
        refuse_unsafe_entries(BOARD, openflow, entries)
    assert str(refused.value).startswith("s1: ")
    assert hazard in str(refused.value)
    assert len(refused.value.lines) == 1
    coarse = load_lab("two-switch").with_backend(Backend.OVS).switches["s1"]
    refuse_unsafe_entries(coarse, openflow, entries)


def test_the_board_replaces_an_entry_whose_match_another_begins_with() -> None:
    """The board has quirk 124, and different priorities avoid it, as the error line says."""
    alike = [entry(in_port=1), entry(in_port=1, dl_type=0x0800)]
    apart = [alike[0], replace(alike[1], priority=101)]
    refuse_unsafe_entries(BOARD, V1_3, apart)
    assert [len(table_of(entries)) for entries in (alike, apart)] == [1, 2]


def table_of(entries: list[FlowEntry]):
    board, at_ns = switch_emulator.Board(config={"openflow_version": 4}), 1000 * MS
    board.connected(at_ns)
    for data in messages13.session_segments(entries):
        at_ns += 10 * MS
        board.segment(at_ns, data)
    board.advance(at_ns + 10 * MS)
    return board.flows13()


@pytest.mark.parametrize("openflow", OpenFlow)
def test_the_driver_writes_entries_with_many_actions_in_segments_that_fit(openflow: OpenFlow) -> None:
    """The longest entries of a board: four actions in 1.0, 96 bytes each of match and actions in 1.3."""
    actions = (Output(1), Output(2), Output(3), Output(2))
    manners = DIALECTS[openflow]
    both = Pair(Driver(capacity=128, own_mark=OWN_MARK, dialect=manners), BoardEnd(openflow=openflow))
    entries = [
        CODECS[openflow].entry_of(
            entry(
                *actions,
                priority=100 + number,
                in_port=1,
                dl_type=0x0800,
                nw_proto=17,
                nw_src=IPv4Network("10.0.0.0/8"),
                nw_dst=IPv4Network("10.0.0.0/8"),
                tp_src=1 + number,
                tp_dst=7,
            ),
            cookie=OWN_MARK << 48 | 1 + number,
        )
        for number in range(20)
    ]
    for written in entries:
        both.driver.ensure(written)
    both.connect()
    both.settle()
    assert both.driver.complete
    assert max(map(len, both.end.sent)) <= SEGMENT_BYTES
    flows = both.end.board.flows() if openflow is V1_0 else both.end.board.flows13()
    assert len(flows) == 20
