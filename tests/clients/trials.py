"""The trials for controllers. A trial yields the exercises, and whether the expected effect occurred."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench import SETTLE_S, Bench
from board_network import DATAPATH_ID
from wiretap import Kind

LARGE = 600
"""Payload of an echo request whose frame exceeds the 512 bytes that fit in a PACKET_OUT."""

PACKET_IN_FRAME = 10
"""Offset of the frame in the body of a PACKET_IN."""
LLDP = bytes.fromhex("88cc")

BOARD_ECHO_XID = 0xD204_0000
NO_SESSION_PATIENCE_S = 3.5
PREPARED_UDP_PORTS = 20
"""`with-flows.txt` has an entry for each of this many ports, and one per direction for all other traffic."""
RETRANSMISSION_S = 1.0
COLD_START, COLD_START_S = 15, 2.0
"""Number of entries that Faucet installs first, and time for the last of them."""
BURST_PORT, BURST_FRAMES = 5000, 12
MOST = 125
IDLE_S = 5.0
"""The idle timeout of 2 s, 1.5 s until the board checks it, and a margin."""


def learning_switch(bench: Bench) -> Iterator[tuple[str, bool]]:
    """A learning switch that sets up flow entries."""
    yield from reachability(bench)
    yield from flow_entries(bench)
    yield from large_frames(bench)
    yield from echoes(bench)
    yield from ipv6(bench)
    yield from reconnection(bench)


def vlan_with_acl(bench: Bench) -> Iterator[tuple[str, bool]]:
    """A controller that fills several tables when the board connects, and then learns hosts."""
    features = bench.handshake()
    yield "handshake", int.from_bytes(features.body[:8], "big") == DATAPATH_ID
    bench.tap.wait(Kind.FLOW_MOD, from_board=False, count=COLD_START, timeout_s=30.0)
    time.sleep(COLD_START_S)
    yield "cold start", not bench.tap.from_board(Kind.ERROR)
    yield "ARP and ping", bench.network.ping(1, 2, count=3) >= 1
    bench.network.ping(2, 1)
    yield from flow_entries(bench)
    yield from ipv6(bench)
    exercise = "an ACL that drops ICMP of a port, not ICMPv6"
    if bench.asks(exercise):
        bench.network.enable_ipv6(3)  # in addition to hosts 1 and 2
        passes = bench.network.ping(3, 1, count=3, version=6) >= 1
        yield exercise, passes and bench.network.ping(3, 1, count=3) == 0
    yield from reconnection(bench)


def idle_flows(bench: Bench) -> Iterator[tuple[str, bool]]:
    """A learning switch whose entries should expire after two idle seconds."""
    yield from reachability(bench)
    before = bench.packet_ins()
    time.sleep(IDLE_S)
    yield "idle timeout of flow entries", bench.network.ping(1, 2) == 1 and bench.packet_ins() > before


def first_packets(bench: Bench) -> Iterator[tuple[str, bool]]:
    """A controller that may lose the packet for which it sets up a flow entry."""
    yield from reachability(bench)
    bench.network.ping(1, 2, count=3)
    yield from flow_entries(bench)


def hub(bench: Bench) -> Iterator[tuple[str, bool]]:
    """A hub that floods every frame."""
    yield from reachability(bench)


def no_flows(bench: Bench) -> Iterator[tuple[str, bool]]:
    """A controller that forwards every frame itself."""
    yield from reachability(bench)
    before = bench.packet_ins()
    replies = bench.network.ping(1, 2, count=5)
    yield "forwarding by the controller", replies == 5 and bench.packet_ins() >= before + 10
    yield from large_frames(bench)


def early_burst(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Hosts send as soon as the session is established, when TCP's congestion window is still small."""
    bench.handshake()
    bench.network.udp_frames(1, 3, ports=[BURST_PORT] * BURST_FRAMES, gap_s=0)
    # Frames after the burst may be lost until the controller acknowledges; a stalled connection stays so.
    yield "12 frames at once, at the beginning", bench.network.ping(1, 2, count=4, interval_s=0.5) >= 1


def queues(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Frames are sent to a queue of a port."""
    bench.handshake()
    yield "ENQUEUE in place of OUTPUT", bench.network.ping(1, 2) == 1


def prepared_flows(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Flow entries are written one after another as soon as the board connects."""
    bench.handshake()
    bench.tap.wait(Kind.FLOW_MOD, from_board=False, count=PREPARED_UDP_PORTS + 2)
    time.sleep(RETRANSMISSION_S)
    chosen = bench.network.udp_frames(1, 3, ports=range(1, PREPARED_UDP_PORTS + 1))
    replies = bench.network.ping(1, 2, count=3)
    # Without an entry, the controller would flood the frame, which would also reach its target.
    yield (
        "22 flow entries at once",
        (chosen, replies, bench.packet_ins()) == (PREPARED_UDP_PORTS, 3, 0),
    )


def newer_version(bench: Bench) -> Iterator[tuple[str, bool]]:
    """A controller that prefers or requires a newer version of OpenFlow."""
    bench.tap.wait(Kind.HELLO, from_board=False, timeout_s=30.0)
    deadline = time.monotonic() + NO_SESSION_PATIENCE_S
    while time.monotonic() < deadline and not bench.tap.from_board(Kind.FEATURES_REPLY):
        time.sleep(0.1)
    known = bool(bench.tap.from_board(Kind.FEATURES_REPLY))
    yield "handshake", known
    if known and bench.asks("ARP and ping"):
        time.sleep(SETTLE_S)
        yield "ARP and ping", bench.network.ping(1, 2) == 1


def topology(bench: Bench) -> Iterator[tuple[str, bool]]:
    """LLDP frames that leave one port come back at another."""
    bench.handshake()
    switches = bench.request("GET", "/v1.0/topology/switches")
    yield (
        "switch and ports",
        [(int(s["dpid"], 16), len(s["ports"])) for s in switches] == [(DATAPATH_ID, 3)],
    )
    # Ryu ignores links from a switch to itself, so the test is that LLDP frames come back.
    seen = bench.tap.wait(Kind.PACKET_IN, from_board=True, count=2)
    types = [packet_in.body[PACKET_IN_FRAME:][12:14] for packet_in in seen]
    yield "LLDP from port to port", types.count(LLDP) == 2


def firewall(bench: Bench) -> Iterator[tuple[str, bool]]:
    """An application that relies on the switch's own forwarding by port NORMAL."""
    bench.handshake()
    time.sleep(0.5)
    yield "flow entry with port NORMAL", not bench.tap.from_board(Kind.ERROR)


def barriers(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Requests that end with a barrier."""
    bench.handshake()
    time.sleep(1)
    log = bench.controller_log()
    yield "flow entry and barrier", "barrier passed" in log
    yield "description and barrier, not awaited between", "description: 0.84" in log


def reachability(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Handshake, ARP and ICMP."""
    features = bench.handshake()
    yield "handshake", int.from_bytes(features.body[:8], "big") == DATAPATH_ID
    yield "ARP and ping", bench.network.ping(1, 2) == 1 and bench.network.ping(2, 3) == 1


def flow_entries(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Packets of a known flow do not reach the controller."""
    before = bench.packet_ins()
    replies = bench.network.ping(1, 2, count=5)
    yield "forwarding by flow entries", replies == 5 and bench.packet_ins() == before


def large_frames(bench: Bench) -> Iterator[tuple[str, bool]]:
    """The first frame to an address is large, so the controller has to send it."""
    exercise = "PACKET_OUT with a frame of more than 512 bytes"
    if bench.asks(exercise):
        bench.network.introduce(1, 3)
        yield exercise, bench.network.ping(1, 3, size=LARGE) == 1


def asking_controller(bench: Bench) -> Iterator[tuple[str, bool]]:
    """A controller that sends echo requests from the start of the session."""
    bench.handshake()
    requests = {request.xid for request in bench.tap.wait(Kind.ECHO_REQUEST, from_board=False)}
    replies = {reply.xid for reply in bench.tap.wait(Kind.ECHO_REPLY, from_board=True, timeout_s=20.0)}
    yield "echo, asked by the controller", bool(replies) and replies <= requests


def echoes(bench: Bench) -> Iterator[tuple[str, bool]]:
    """The board sends echo requests to the controller."""
    if bench.asks("echo, asked by the board"):
        bench.tap.wait(Kind.ECHO_REQUEST, from_board=True)
        replies = bench.tap.wait(Kind.ECHO_REPLY, from_board=False)
        yield "echo, asked by the board", replies[0].xid == BOARD_ECHO_XID


def ipv6(bench: Bench) -> Iterator[tuple[str, bool]]:
    """IPv6 between two hosts: a few packets, then more than the table has entries."""
    few, many = "flow entries for IPv6", "130 IPv6 packets in one session"
    if not (bench.asks(few) or bench.asks(many)):
        return
    bench.network.enable_ipv6(1, 2)
    bench.network.ping(1, 2, count=2, version=6)
    if bench.asks(few):
        before = bench.packet_ins()
        replies = bench.network.ping(1, 2, count=5, version=6)
        yield few, replies == 5 and bench.packet_ins() < before + 5
    if bench.asks(many):
        session = bench.tap.messages[-1].session
        replies = bench.network.ping(1, 2, count=130, interval_s=0.01, version=6)
        refused = bench.tap.from_board(Kind.ERROR)
        yield many, replies >= MOST and bench.tap.messages[-1].session == session and not refused


def reconnection(bench: Bench) -> Iterator[tuple[str, bool]]:
    """The controller is killed and restarted."""
    if bench.asks("reconnection"):
        bench.end_controller()
        sessions = len(bench.tap.from_board(Kind.FEATURES_REPLY))
        bench.start_controller()
        bench.tap.wait(Kind.FEATURES_REPLY, from_board=True, count=sessions + 1, timeout_s=30.0)
        time.sleep(0.2)
        yield "reconnection", bench.network.ping(1, 2, count=3) == 3
