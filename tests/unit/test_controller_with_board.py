"""The session's state machine against the emulated board, in virtual time."""

from __future__ import annotations

from typing import Any

import switch_emulator
from mirrored_flows import FLOWS
from os_ken.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_0_parser

from loko.controller.messages import encode, entry_of, features_request, hello
from loko.controller.session import ECHO_INTERVAL_NS, Request, Session, State
from loko.entries import switch_entries
from loko.lab import load_lab

LAB = load_lab("two-switch")
ENTRIES = switch_entries(LAB, FLOWS)["s1"]
TRIP_NS = 1_000_000  # longer than the board works on any two requests
HELLO_1_3 = "0400000800000001"
ProtocolDesc = ofproto_protocol.ProtocolDesc


class Wire:
    """Carries bytes between a session and a board, each message in a TCP segment of its own."""

    def __init__(self, board: switch_emulator.Board, session: Session, now_ns: int) -> None:
        self.board, self.session, self.now_ns = board, session, now_ns

    def open(self) -> int:
        """Connect and shake hands; returns the datapath id."""
        self.board.connected(self.now_ns)
        assert [data.hex() for data in self.wait(TRIP_NS)] == [HELLO_1_3]
        for segment in (hello(1), features_request(2)):
            self.board.segment(self.now_ns, segment)
        (features,) = self.wait(TRIP_NS)
        return int(parsed(features).datapath_id)

    def wait(self, duration_ns: int) -> list[bytes]:
        self.now_ns += duration_ns
        self.board.advance(self.now_ns)
        return [output.data for output in self.board.outputs() if output.kind == "controller"]

    def converse(self, requests: list[Request]) -> int:
        """Deliver requests and replies until neither side has more to say; returns the number of replies."""
        count = 0
        while requests:
            for request in requests:
                self.board.segment(self.now_ns, encode(request))
            requests = []
            replies = self.wait(2 * TRIP_NS)
            count += len(replies)
            assert len(replies) <= 1
            for data in replies:
                requests += self.deliver(parsed(data))
        return count

    def deliver(self, message: Any) -> list[Request]:
        match message:
            case ofproto_v1_0_parser.OFPBarrierReply():
                return self.session.barrier_reply(self.now_ns, message.xid)
            case ofproto_v1_0_parser.OFPTableStatsReply():
                return self.session.table_stats(self.now_ns, message.xid, message.body[0].active_count)
            case ofproto_v1_0_parser.OFPFlowStatsReply():
                return self.session.flow_stats(self.now_ns, message.xid, [entry_of(e) for e in message.body])
            case ofproto_v1_0_parser.OFPEchoReply():
                return self.session.echo_reply(self.now_ns, message.xid)
        raise AssertionError(f"unexpected {message}")


def parsed(data: bytes) -> Any:
    version, kind, length, xid = ofproto_parser.header(data)
    assert length == len(data)
    return ofproto_parser.msg(ProtocolDesc(version=1), version, kind, length, xid, data)


def new_board() -> switch_emulator.Board:
    return switch_emulator.Board(config=dict(LAB.switches["s1"].config))


def is_installed(board: switch_emulator.Board) -> bool:
    there = [(flow.nw_src, flow.nw_dst, flow.tp_dst, flow.priority) for flow in board.flows()]
    return there == [(str(e.nw_src), str(e.nw_dst), e.tp_dst, e.priority) for e in ENTRIES]


def test_board_takes_the_table_and_reads_it_back() -> None:
    wire = Wire(new_board(), Session(ENTRIES), 3_000_000_000)
    assert wire.open() == LAB.switches["s1"].datapath_id
    replies = wire.converse(wire.session.start(wire.now_ns))
    assert wire.session.state is State.READY, wire.session.failure
    assert replies == len(ENTRIES) + 2
    assert is_installed(wire.board)


def test_board_stays_connected_while_echoes_pass() -> None:
    wire = Wire(new_board(), Session(ENTRIES), 3_000_000_000)
    wire.open()
    wire.converse(wire.session.start(wire.now_ns))
    for _ in range(10):
        assert wire.wait(ECHO_INTERVAL_NS) == []
        requests = wire.session.tick(wire.now_ns)
        assert wire.converse(requests) == len(requests) == 1
    assert wire.session.state is State.READY
    assert is_installed(wire.board)


def test_board_that_lost_its_connection_is_set_up_again() -> None:
    board = new_board()
    wire = Wire(board, Session(ENTRIES), 3_000_000_000)
    wire.open()
    wire.converse(wire.session.start(wire.now_ns))
    board.disconnected(wire.now_ns)
    wire.wait(TRIP_NS)
    assert board.flows() == []  # secure mode
    wire = Wire(board, Session(ENTRIES), wire.now_ns + 2_000_000_000)
    wire.wait(0)
    wire.open()
    wire.converse(wire.session.start(wire.now_ns))
    assert wire.session.state is State.READY
    assert is_installed(board)
