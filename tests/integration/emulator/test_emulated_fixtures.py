"""The pytest fixtures that the package offers for tests of other projects."""

from __future__ import annotations

import os
import socketserver
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import dpkt
import pytest
from disposable_root import ROOT
from os_ken.ofproto import ofproto_parser, ofproto_protocol
from os_ken.ofproto import ofproto_v1_0 as openflow
from os_ken.ofproto import ofproto_v1_0_parser as parser

SWITCH = ofproto_protocol.ProtocolDesc(openflow.OFP_VERSION)
S = 1_000_000_000


def frame(ip=None):
    udp = dpkt.udp.UDP(sport=5000, dport=6000, data=bytes(30))
    ip = ip or dpkt.ip.IP(src=bytes(4), dst=bytes(4), p=dpkt.ip.IP_PROTO_UDP, data=udp)
    return bytes(dpkt.ethernet.Ethernet(src=b"\2aaaaa", dst=b"\2bbbbb", data=ip))


def everything_to(port):
    actions = [parser.OFPActionOutput(port)]
    return parser.OFPFlowMod(SWITCH, parser.OFPMatch(), 0, openflow.OFPFC_ADD, priority=1, actions=actions)


def test_a_board_answers_forwards_and_tells_of_misses(emulated_board):
    assert emulated_board.frame(1, frame()) == {}
    (packet_in,) = emulated_board.messages
    message = ofproto_parser.msg(SWITCH, *ofproto_parser.header(packet_in), packet_in)
    assert (message.in_port, bytes(message.data)) == (1, frame())
    assert emulated_board.send(everything_to(3)) == []
    (reply,) = emulated_board.send(parser.OFPBarrierRequest(SWITCH))
    assert reply[1] == openflow.OFPT_BARRIER_REPLY
    assert emulated_board.frame(1, frame()) == {3: frame()}
    assert [flow.packets for flow in emulated_board.flows()] == [1]


def test_the_example_of_the_page_holds(emulated_board):
    section = (ROOT / "docs" / "library.md").read_text().split("## In tests of a controller")[1]
    lines = [line for line in section.splitlines() if line.startswith("    ") or not line]
    code = textwrap.dedent("\n".join(lines)).partition("def test_my_controller")[0]
    names: dict[str, Any] = {}
    exec(code, names)
    names["test_a_flow_is_counted"](emulated_board)


def test_a_board_says_why_it_ignores_a_frame(emulated_board):
    emulated_board.send(everything_to(3))
    six = frame(dpkt.ip6.IP6(src=bytes(16), dst=bytes(16), nxt=17, data=b""))
    assert emulated_board.frame(1, six) == {}
    (event,) = emulated_board.events
    assert "type 0x86dd" in event
    assert "quirk 61" in event


def test_a_board_keeps_its_session_for_as_long_as_the_test_waits(emulated_board):
    emulated_board.wait(60 * S)
    assert emulated_board.events == []
    assert emulated_board.send(parser.OFPBarrierRequest(SWITCH))


def added_twice(board) -> int:
    for port in (2, 3):
        board.send(everything_to(port))
    return len(board.flows())


def test_a_board_has_all_quirks(emulated_board):
    assert added_twice(emulated_board) == 2


@pytest.mark.quirks(without=["broken-flow-mods"])
def test_a_board_lacks_the_quirks_that_the_marker_names(emulated_board):
    assert added_twice(emulated_board) == 1
    emulated_board.send(everything_to(3))
    six = frame(dpkt.ip6.IP6(src=bytes(16), dst=bytes(16), nxt=17, data=b""))
    assert emulated_board.frame(1, six) == {}


@pytest.mark.quirks("spec")
def test_a_marker_may_name_the_specification(emulated_board, emulated_network, controller):
    assert added_twice(emulated_board) == 1
    network = emulated_network("two-switch", controller)
    network.wait_until(lambda: network.flows("s1"), timeout_s=60)
    six = frame(dpkt.ip6.IP6(src=bytes(16), dst=bytes(16), nxt=17, data=b""))
    network.send("H1", six)
    network.wait_until(lambda: network.flows("s1")[0].packets, timeout_s=60)


TESTS = """
import pytest

def test_by_the_environment(emulated_board):
    assert emulated_board.board.advance

@pytest.mark.quirks(only=["no-such"])
def test_by_a_wrong_marker(emulated_board):
    raise AssertionError
"""


@pytest.mark.parametrize(
    ("text", "outcome", "line"),
    [
        ('"spec"', "1 passed, 1 error", "marker quirks: config: no quirk is called `no-such`"),
        ("spec", "2 errors", "LOKO_QUIRKS: spec is no JSON"),
    ],
)
def test_wrong_quirks_are_told_before_a_test_begins(tmp_path: Path, text: str, outcome: str, line: str):
    (tmp_path / "test_mine.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", tmp_path],
        env=os.environ | {"LOKO_QUIRKS": text},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout, done.stdout
    assert line in done.stdout


def test_a_message_that_no_segment_holds_is_refused(emulated_board):
    with pytest.raises(ValueError, match="has 537 bytes; a segment to the board holds 536"):
        emulated_board.send(bytes(537))


class Controller(socketserver.BaseRequestHandler):
    """Sends every frame to port 3, so frames from hosts at ports 1 and 2 go to the other switch."""

    def handle(self):
        for message in (parser.OFPHello(SWITCH), parser.OFPFeaturesRequest(SWITCH), everything_to(3)):
            message.serialize()
            self.request.sendall(message.buf)
        while self.request.recv(4096):
            pass


@pytest.fixture
def controller():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Controller) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address
        server.shutdown()


def test_a_network_connects_to_a_controller_and_carries_frames(emulated_network, controller):
    network = emulated_network("two-switch", controller)
    network.wait_until(lambda: network.flows("s1") and network.flows("s2"), timeout_s=60)
    network.send("H1", frame())
    network.wait_until(lambda: network.flows("s2")[0].packets, timeout_s=60)
    assert [flow.packets for flow in network.flows("s1")] == [1]
    assert network.received("H3") == []


def test_what_does_not_come_true_is_waited_for_in_vain(emulated_network):
    with pytest.raises(TimeoutError, match="does the controller listen"):
        emulated_network("two-switch", ("127.0.0.1", 9)).wait_until(lambda: False, timeout_s=0.01)


def test_who_does_not_ask_for_a_board_loads_no_emulator():
    script = "import sys, loko_testbed.live.emulation.pytest_plugin; print('switch_emulator' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "False\n"
