"""Arithmetic and protocol of the live instruments, without interfaces, privileges or real time."""

from __future__ import annotations

import socket
import struct
import threading

import dpkt
import numpy as np
import pytest
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_3 as of13

from loko.control.framing import framed, whole_messages
from loko.control.messages import barrier_request, echo_request
from loko.switch_model.scenario import ActionType, MatchType, OpenFlow
from loko_testbed.instruments.controller_endpoint import ControllerEndpoint
from loko_testbed.instruments.dialect import DIALECTS
from loko_testbed.instruments.packet_tap import TapClock, TappedFrame, stamps_in_hardware
from loko_testbed.measure.bench.cases import TableCase, flow_mods
from loko_testbed.measure.bench.device import MISSING
from loko_testbed.measure.bench.live.interruptions import disturbed_mask
from loko_testbed.measure.bench.live.live_device import control_frame, on_the_line, strict_delete
from loko_testbed.measure.bench.live.pacing import at_instants
from loko_testbed.simulation.runner import RunError, Stall


def instants(*values):
    return np.array(values, dtype=np.int64)


def test_a_line_begins_no_frame_before_it_is_free() -> None:
    line = instants(100, 100, 100, 100)
    assert on_the_line(instants(0, 10, 20, 500), line).tolist() == [0, 100, 200, 500]
    assert on_the_line(instants(0, MISSING, 20, 500), line).tolist() == [0, MISSING, 100, 500]
    assert on_the_line(instants(MISSING), instants(1)).tolist() == [MISSING]


@pytest.mark.parametrize(
    ("stalls", "met"),
    [
        ([], [False, False, False, True]),
        ([(15, 3)], [False, False, False, True]),
        ([(5, 1)], [True, False, False, True]),
        ([(19, 100)], [False, True, False, True]),
        ([(0, 40), (5, 1)], [True, True, False, True]),
        ([(20_000_000, 1)], [False, False, True, True]),
    ],
)
def test_frames_that_pass_during_a_stall_are_disturbed(stalls, met) -> None:
    """Two frames pass (0 to 10, 20 to 30), one enters at 1000 and is lost, one is not seen to enter."""
    entered, left = instants(0, 20, 1000, MISSING), instants(10, 30, MISSING, MISSING)
    marks = disturbed_mask(
        entered, left, [Stall(start_ns=start, duration_ns=length) for start, length in stalls]
    )
    assert marks.tolist() == met


def test_stamps_of_two_clocks_are_never_mixed() -> None:
    card, other, kernel = TapClock(0, True), TapClock(1, True), TapClock(None, True)
    assert stamps_in_hardware([card, card, card])
    assert not stamps_in_hardware([card, other])
    assert not stamps_in_hardware([card, kernel])
    assert not stamps_in_hardware([card, TapClock(0, False)])
    assert not stamps_in_hardware([kernel, kernel])


def test_steps_come_in_order_and_each_has_its_data() -> None:
    done = []
    at_instants([(gap, done.append, bytes([number])) for number, gap in enumerate((0, 1000, 0, 4_000_000))])
    assert done == [b"\0", b"\1", b"\2", b"\3"]


def test_what_was_added_is_deleted_strictly() -> None:
    add = flow_mods(TableCase(entries=1, match=MatchType.FIVE_TUPLE, action=ActionType.SET_TP_SRC))[0]
    delete = strict_delete(add)
    assert len(delete) == of.OFP_FLOW_MOD_SIZE == int.from_bytes(delete[2:4], "big")
    assert delete[8:56] == add[8:56]  # match and cookie
    assert int.from_bytes(delete[56:58], "big") == of.OFPFC_DELETE_STRICT
    assert delete[62:64] == add[62:64]  # priority
    assert int.from_bytes(delete[68:70], "big") == of.OFPP_NONE


def tcp(payload, *, sport=6633, dport=40000):
    segment = dpkt.tcp.TCP(sport=sport, dport=dport, data=payload)
    packet = dpkt.ip.IP(src=b"\n\0\1\x08", dst=b"\n\0\1c", p=6, data=segment)
    packet.len = len(packet)
    return bytes(dpkt.ethernet.Ethernet(src=b"\2" * 6, dst=b"\4" * 6, type=0x0800, data=packet))


def test_openflow_on_the_controllers_link_is_recognised() -> None:
    asked = control_frame(TappedFrame(5, True, tcp(barrier_request(1))), 6633)
    assert asked is not None
    assert (asked.at_ns, asked.from_switch, asked.length_bytes) == (5, False, 14 + 20 + 20 + 8 + 4)
    assert asked.payload == barrier_request(1)
    answered = control_frame(TappedFrame(5, False, tcp(barrier_request(1), sport=40000, dport=6633)), 6633)
    assert answered is not None
    assert answered.from_switch
    unasked = tcp(echo_request(1), sport=40000, dport=6633)
    for other in (unasked, tcp(b""), tcp(barrier_request(1), sport=1), b"", b"\0" * 60):
        assert control_frame(TappedFrame(5, False, other), 6633) is None


class Switch(threading.Thread):
    """A switch that connects and answers each message type with the given bytes.

    `broken` is the error that broke its session, or None. An endpoint that hangs up before it has read every
    answer breaks the session: TCP resets a connection that is closed with unread data.
    """

    def __init__(self, port, answers) -> None:
        super().__init__(daemon=True)
        self.session = socket.create_connection(("127.0.0.1", port))
        self.answers = answers
        self.heard: list[int] = []
        self.versions: set[int] = set()
        self.broken: ConnectionError | None = None
        self.start()

    def run(self) -> None:
        with self.session:
            try:
                self._serve()
            except ConnectionError as error:
                self.broken = error

    def _serve(self) -> None:
        buffer = b""
        while data := self.session.recv(4096):
            buffer += data
            messages, buffer = whole_messages(buffer)
            for message in messages:
                self.heard.append(message[1])
                self.versions.add(message[0])
                if answer := self.answers.get(message[1]):
                    self.session.sendall(answer)


def message(kind, body=b""):
    return framed(1, kind, 9, body)


FEATURES = message(of.OFPT_FEATURES_REPLY, (0x2A).to_bytes(8, "big") + bytes(16))


@pytest.fixture
def endpoint():
    with ControllerEndpoint("127.0.0.1", 0) as opened:
        yield opened


@pytest.fixture
def switch(endpoint):
    """Return a function that connects a scripted switch. No session may break before the endpoint closes."""
    connected: list[Switch] = []

    def connect(answers) -> Switch:
        connected.append(Switch(endpoint.port, answers))
        return connected[-1]

    yield connect
    broken = [end.broken for end in connected if end.broken]
    endpoint.close()
    for end in connected:
        end.join(10)
    assert not broken
    assert not any(end.is_alive() for end in connected), "hung up, and the switch does not notice"


def test_the_endpoint_agrees_with_a_switch_and_waits_for_its_barriers(endpoint, switch) -> None:
    unasked = message(of.OFPT_ECHO_REQUEST) + message(of.OFPT_PACKET_IN, bytes(12))
    answers = {
        of.OFPT_FEATURES_REQUEST: FEATURES,
        of.OFPT_BARRIER_REQUEST: unasked + message(of.OFPT_BARRIER_REPLY),
    }
    connected = switch(answers)
    assert endpoint.accept(10) == 0x2A
    endpoint.load(flow_mods(TableCase(entries=9, match=MatchType.PORT, action=ActionType.OUTPUT)))
    connected.session.shutdown(socket.SHUT_WR)
    with pytest.raises(RunError, match="the switch closed the connection"):
        endpoint.expect(of.OFPT_BARRIER_REPLY)
    endpoint.hang_up()
    connected.join(10)
    assert not connected.is_alive()
    assert connected.heard.count(of.OFPT_FLOW_MOD) == 9
    # Six entries fit a segment, and each segment is confirmed; the echo was answered each time.
    assert connected.heard.count(of.OFPT_BARRIER_REQUEST) == 2
    assert connected.heard.count(of.OFPT_ECHO_REPLY) == 2


def test_the_endpoint_speaks_openflow_13_if_it_is_told(endpoint, switch) -> None:
    def reply(kind, body=b""):
        return bytes([4]) + message(kind, body)[1:]

    answers = {
        of13.OFPT_FEATURES_REQUEST: reply(of13.OFPT_FEATURES_REPLY, (0x2A).to_bytes(8, "big") + bytes(16)),
        of13.OFPT_BARRIER_REQUEST: reply(of13.OFPT_ECHO_REQUEST) + reply(of13.OFPT_BARRIER_REPLY),
    }
    connected = switch(answers)
    endpoint.openflow = OpenFlow.V1_3
    assert endpoint.accept(10) == 0x2A
    endpoint.load([DIALECTS[OpenFlow.V1_3].delete_all])
    endpoint.hang_up()
    connected.join(10)
    assert connected.versions == {4}
    assert connected.heard.count(of13.OFPT_FLOW_MOD) == 1
    assert connected.heard.count(of13.OFPT_ECHO_REPLY) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("00010003", "the switch answers with an error: 0101000c"),
        ("00030000", "the switch's table is full: "),
    ],
)
def test_an_error_of_the_switch_is_told(endpoint, switch, body: str, said: str) -> None:
    answers = {
        of.OFPT_FEATURES_REQUEST: FEATURES,
        of.OFPT_BARRIER_REQUEST: message(of.OFPT_ERROR, bytes.fromhex(body)),
    }
    switch(answers)
    assert endpoint.accept(10) == 0x2A
    with pytest.raises(RunError, match=said):
        endpoint.load([barrier_request(1)])


def test_what_comes_in_one_segment_behind_the_awaited_message_is_kept(endpoint, switch) -> None:
    told = message(of.OFPT_PORT_STATUS, bytes(56))
    switch({of.OFPT_FEATURES_REQUEST: FEATURES + told + told})
    assert endpoint.accept(10) == 0x2A
    assert endpoint.expect(of.OFPT_PORT_STATUS, timeout_s=10) == told
    assert endpoint.messages() == [told]
    assert endpoint.messages() == []


def test_nothing_of_a_session_is_left_for_the_next_one(endpoint, switch) -> None:
    switch({of.OFPT_FEATURES_REQUEST: FEATURES + message(of.OFPT_PORT_STATUS, bytes(56))})
    assert endpoint.accept(10) == 0x2A
    switch({of.OFPT_FEATURES_REQUEST: FEATURES})
    assert endpoint.accept(10) == 0x2A
    assert endpoint.messages() == []


def test_a_connection_that_is_reset_before_it_is_accepted_is_passed_over(endpoint, switch) -> None:
    gone = socket.create_connection(("127.0.0.1", endpoint.port))
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone.close()
    switch({of.OFPT_FEATURES_REQUEST: FEATURES})
    assert endpoint.accept(10) == 0x2A


def test_no_switch_and_a_silent_one_are_waited_for_in_vain(endpoint, switch) -> None:
    assert endpoint.accept(0.05) is None
    with pytest.raises(RunError, match=r"no switch is connected to 127\.0\.0\.1"):
        endpoint.write(b"")
    switch({of.OFPT_FEATURES_REQUEST: FEATURES})
    assert endpoint.accept(10) == 0x2A
    with pytest.raises(RunError, match=r"no message of type 19 within 0\.05 s"):
        endpoint.expect(of.OFPT_BARRIER_REPLY, timeout_s=0.05)


def test_an_address_of_somebody_else_is_refused() -> None:
    with pytest.raises(RunError, match=r"cannot listen at 192\.0\.2\.1:6633 .* own addresses"):
        ControllerEndpoint("192.0.2.1", 6633)
