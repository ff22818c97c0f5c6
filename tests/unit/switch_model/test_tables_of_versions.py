"""Tables in sessions of OpenFlow 1.0 and 1.3."""

from __future__ import annotations

from os_ken.ofproto import ofproto_v1_3_parser as parser13

from loko.control.entries import switch_entries
from loko.control.messages13 import session_segments
from loko.control.os_ken_messages13 import PROTOCOL
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import load_lab
from loko_testbed.simulation.virtual import lab_network


def test_tables_are_installed_in_either_version() -> None:
    lab = load_lab("two-switch")
    tables = switch_entries(lab, [], entries=17)
    for version in OpenFlow:
        lab_network(lab, tables, seed=1, openflow=version)  # raises an error if a board refuses


def test_every_segment_is_one_message_that_the_board_can_take() -> None:
    lab = load_lab("two-switch")
    segments = session_segments(switch_entries(lab, [], entries=17)["s1"])
    assert [segment[1] for segment in segments] == [0, 5, *[14] * 17, 20]
    assert all(int.from_bytes(segment[2:4]) == len(segment) <= 536 for segment in segments)
    read = parser13.OFPFlowMod.parser(PROTOCOL, 4, 14, len(segments[2]), 3, segments[2])
    assert list(dict(read.match.items())) == [
        *("eth_type", "ip_proto", "ipv4_src", "ipv4_dst", "udp_src", "udp_dst")
    ]
    assert (read.idle_timeout, read.hard_timeout, read.flags) == (0, 0, 0)
