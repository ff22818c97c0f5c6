"""The worked example of the slides of Loko's talk: the lookup of 10.2.5.5 in a table of eleven entries.

The slides number priorities up to 250000, which OpenFlow cannot carry; here 150000 and 250000 are a tenth of
that, so that the order stays.
"""

from __future__ import annotations

import dpkt
import pytest
from switch_emulator import Board

import loko
from loko.switch_model.device import load_profile

TABLE = (
    ("10.0.0.0/16", 1, 150),
    ("10.1.0.0/16", 2, 15_000),
    ("10.2.0.0/16", 3, 500),
    ("10.2.5.5/32", 1, 200),
    ("10.3.0.0/16", 2, 25_000),
    ("10.4.0.0/16", 1, 25_000),
    ("10.2.5.0/24", 2, 25_000),
    ("10.2.5.0/24", 1, 100),
    ("10.2.5.0/24", 3, 300),
    ("10.2.5.0/24", 2, 500),
    ("10.2.0.0/16", 1, 500),
)
"""Destination, output port and priority of each entry, in the order of the list."""
EXAMINED = {0, 1, 2, 4, 5, 6}
"""Entry 2 hits with priority 500; then only entries of a higher one are examined. Entry 6 is such a hit."""
USED = 6
SECOND_NS = 1_000_000_000
HELLO = bytes([1, 0, 0, 8, 0, 0, 0, 1])
FEATURES_REQUEST = bytes([1, 5, 0, 8, 0, 0, 0, 2])


def packet() -> bytes:
    udp = dpkt.udp.UDP(sport=1, dport=2, ulen=268)
    ip = dpkt.ip.IP(src=b"\x0a\0\0\1", dst=bytes([10, 2, 5, 5]), p=17, len=288, data=udp)
    return bytes(dpkt.ethernet.Ethernet(src=bytes(6), dst=bytes(6), data=ip)).ljust(302, b"\0")


def looked_up(*, with_protocol: int | None = None) -> tuple[Board, int, int]:
    """Send the packet into port 3; return the board, the ports of its output, and the time it took in ns.

    The entry `with_protocol` also matches the protocol, which costs time if it is examined.
    """
    board = Board(config={"ofchecks": False})
    board.connected(2 * SECOND_NS)
    segments = [HELLO, FEATURES_REQUEST]
    for number, (destination, port, priority) in enumerate(TABLE):
        address, prefix = destination.split("/")
        match = {"dl_type": 0x0800, "nw_dst": address, "nw_dst_mask": int(prefix)}
        match |= {"nw_proto": 17} if number == with_protocol else {}
        segments.append(loko.flow_mod(match, output=port, priority=priority, cookie=number))
    for number, segment in enumerate(segments):
        board.segment(2 * SECOND_NS + 1_000_000 * (number + 1), segment)
    board.advance(3 * SECOND_NS)
    board.outputs()
    board.frame(3 * SECOND_NS, 3, packet())
    board.advance(3 * SECOND_NS + SECOND_NS // 100)
    (sent,) = [output for output in board.outputs() if output.kind == "frame"]
    return board, sent.port, sent.at_ns - 3 * SECOND_NS


def test_the_hit_with_the_highest_priority_is_used() -> None:
    board, ports, _ = looked_up()
    assert ports == 1 << (TABLE[USED][1] - 1)
    counted = {flow.cookie: flow.packets for flow in board.flows()}
    assert counted == {number: int(number == USED) for number in range(len(TABLE))}


@pytest.mark.parametrize("entry", range(len(TABLE)))
def test_after_a_hit_only_entries_of_higher_priority_are_examined(entry: int) -> None:
    _, _, plain_ns = looked_up()
    _, _, longer_ns = looked_up(with_protocol=entry)
    field_ns = load_profile("zodiac-fx").cpu.entry.nw_proto_ps.value / 1_000
    assert longer_ns - plain_ns == pytest.approx(field_ns if entry in EXAMINED else 0, abs=2)
