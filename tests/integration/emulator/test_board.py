"""The emulated board from Python: it fulfils its contract, and no input can crash it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path

import dpkt
import numpy as np
import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from switch_emulator import Board, Output

import loko
from loko.control.framing import framed

HELLO = bytes([1, 0, 0, 8, 0, 0, 0, 1])
FEATURES_REQUEST = bytes([1, 5, 0, 8, 0, 0, 0, 2])
BARRIER_REQUEST = bytes([1, 18, 0, 8, 0, 0, 0, 3])
SECOND_NS = 1_000_000_000
PROFILE = Path(__file__).parents[3] / "switch-emulator/profiles/zodiac-fx.toml"


def flow_mod(*, destination: bytes, port: int, priority: int = 1, cookie: int = 0) -> bytes:
    """Return a FLOW_MOD that adds an entry for IPv4 frames to an address."""
    match = {"dl_type": 0x0800, "nw_dst": str(IPv4Address(destination))}
    return loko.flow_mod(match, output=port, priority=priority, cookie=cookie, xid=7)


def ip_frame(destination: bytes, *, length: int = 302) -> bytes:
    udp = dpkt.udp.UDP(sport=1, dport=2, ulen=length - 34)
    ip = dpkt.ip.IP(src=b"\x0a\0\0\1", dst=destination, p=17, len=length - 14, data=udp)
    return bytes(dpkt.ethernet.Ethernet(src=bytes(6), dst=bytes(6), data=ip)).ljust(length, b"\x55")


def ready_board(*flow_mods: bytes, **config: object) -> Board:
    """Return a board with an established session and a filled table, at 3 s."""
    board = Board(config={"ofchecks": False, **config})
    board.connected(2 * SECOND_NS)
    for number, segment in enumerate([HELLO, FEATURES_REQUEST, *flow_mods]):
        board.segment(2 * SECOND_NS + 1_000_000 * (number + 1), segment)
    board.advance(3 * SECOND_NS)
    board.outputs()
    return board


def test_many_frames_at_once_are_the_same_as_one_after_another() -> None:
    hosts = [bytes([10, 0, 0, last]) for last in (3, 4)]
    entries = [flow_mod(destination=host, port=port) for host, port in zip(hosts, (2, 3), strict=True)]
    frames = [ip_frame(hosts[number % 3 % 2], length=60 + 40 * (number % 7)) for number in range(400)]
    frames = [frame[:-4] + number.to_bytes(4, "big") for number, frame in enumerate(frames)]
    at_ns = 3 * SECOND_NS + np.cumsum([20_000 * (number % 5) for number in range(400)])

    one_by_one, at_once = ready_board(*entries), ready_board(*entries)
    for instant, frame in zip(at_ns.tolist(), frames, strict=True):
        one_by_one.frame(instant, 1, frame)
    at_once.frames(at_ns, 1, frames)
    for board in (one_by_one, at_once):
        board.advance(4 * SECOND_NS)
    one, (columns, nothing) = one_by_one.outputs(), (at_once.departures(), at_once.departures())

    sent = [output for output in one if output.kind == "frame"]
    assert 0 < len(sent) < len(frames)  # the ring was full now and then
    assert columns.at_ns.tolist() == [output.at_ns for output in sent]
    assert columns.port.tolist() == [output.port for output in sent]
    assert columns.size.tolist() == [len(output.data) for output in sent]
    assert columns.tail.tolist() == [int.from_bytes(output.data[-8:], "big") for output in sent]
    assert (len(columns), columns.others) == (len(sent), len(one) - len(sent))
    assert (len(nothing), nothing.others) == (0, 0)
    assert [flow.packets for flow in at_once.flows()] == [flow.packets for flow in one_by_one.flows()]


@pytest.mark.parametrize(
    ("at_ns", "frames", "message"),
    [
        ([1], [], "1 instants for 0 frames"),
        ([5, 4], [bytes(60)] * 2, "4 after 5: give whole nanoseconds"),
        ([-1], [bytes(60)], "-1 after 0: give whole nanoseconds"),
        ([10**16], [bytes(60)], "up to 1000000000000000"),
    ],
)
def test_of_many_frames_all_are_right_or_none_is_taken(
    at_ns: list[int], frames: list[bytes], message: str
) -> None:
    board = Board()
    with pytest.raises(ValueError, match=message):
        board.frames(np.array(at_ns, dtype=np.int64), 1, frames)
    with pytest.raises(TypeError):
        board.frames(np.array([1], dtype=np.int64), 1, ["no bytes"])
    board.frame(0, 1, bytes(60))  # the board's time has not passed


def test_forwards_by_its_table() -> None:
    host = bytes([10, 0, 0, 3])
    board = ready_board(flow_mod(destination=host, port=3))
    data = ip_frame(host)
    board.frame(3 * SECOND_NS, 1, data)
    board.advance(4 * SECOND_NS)
    (output,) = board.outputs()
    assert (output.kind, output.port, output.data) == ("frame", 0b100, data)
    # 2 x 2.07 us, 2 x 25.2 us to and from the CPU, and less than 100 us of work for one entry.
    assert 54_000 < output.at_ns - 3 * SECOND_NS < 160_000
    assert board.outputs() == []


def test_sends_a_miss_to_the_controller() -> None:
    board = ready_board()
    data = ip_frame(bytes(4), length=100)
    board.frame(3 * SECOND_NS, 2, data)
    board.advance(4 * SECOND_NS)
    (output,) = board.outputs()
    assert (output.kind, output.port) == ("controller", 0)
    kind, length = struct.unpack_from("!xBH", output.data)
    assert (kind, length) == (10, len(output.data))
    assert output.data[18:] == data
    assert struct.unpack_from("!H", output.data, 14) == (2,)


def test_answers_the_handshake_in_order() -> None:
    board = Board()
    board.connected(0)
    board.segment(1_000_000, HELLO)
    board.segment(2_000_000, FEATURES_REQUEST)
    board.segment(3_000_000, BARRIER_REQUEST)
    board.advance(10_000_000)
    outputs = board.outputs()
    assert [output.data[1] for output in outputs] == [0, 6, 19]
    assert all(output.kind == "controller" for output in outputs)
    assert all(before.at_ns <= after.at_ns for before, after in pairwise(outputs))


def test_wants_to_connect_two_seconds_after_power_up() -> None:
    board = Board()
    board.advance(3 * SECOND_NS)
    output = board.outputs()[0]
    assert (output.kind, output.data) == ("event", b"connect")
    assert 2 * SECOND_NS <= output.at_ns < 2.1 * SECOND_NS


def test_shows_its_table_in_order() -> None:
    mods = [flow_mod(destination=bytes([10, 0, 0, n]), port=n, priority=n, cookie=100 + n) for n in (2, 1, 3)]
    board = ready_board(*mods)
    board.frame(3 * SECOND_NS, 3, ip_frame(bytes([10, 0, 0, 1])))
    board.advance(4 * SECOND_NS)
    flows = board.flows()
    assert [flow.priority for flow in flows] == [2, 1, 3]
    assert [flow.cookie for flow in flows] == [102, 101, 103]
    assert [flow.nw_dst for flow in flows] == ["10.0.0.2", "10.0.0.1", "10.0.0.3"]
    assert [flow.packets for flow in flows] == [0, 1, 0]
    assert [flow.bytes > 0 for flow in flows] == [False, True, False]
    assert flows[0].actions == [struct.pack("!HHHH", 0, 8, 2, 0xFFFF)]
    assert flows[0] != flows[1]
    assert "10.0.0.2" in repr(flows[0])


def test_what_a_board_gave_out_is_shown_short() -> None:
    board = ready_board(flow_mod(destination=bytes([10, 0, 0, 1]), port=1))
    board.frame(3 * SECOND_NS, 3, ip_frame(bytes([10, 0, 0, 1])) + bytes(1000))
    board.advance(4 * SECOND_NS)
    (output,) = (output for output in board.outputs() if output.kind == "frame")
    assert repr(output).endswith(f"...' ({len(output.data)} bytes))")
    assert len(repr(output)) < 260


def test_says_when_a_message_was_split() -> None:
    board = ready_board()
    board.segment(3 * SECOND_NS, flow_mod(destination=bytes(4), port=1)[:40])
    board.advance(4 * SECOND_NS)
    (output,) = board.outputs()
    assert output.kind == "event"
    assert "split" in output.data.decode()
    assert board.flows() == []


def test_the_seed_fixes_when_the_main_loop_looks() -> None:
    def departure_ns(seed: int) -> int:
        board = Board(config={"ofchecks": False}, seed=seed)
        board.connected(0)
        host = bytes([10, 0, 0, 1])
        for segment in (HELLO, FEATURES_REQUEST, flow_mod(destination=host, port=1)):
            board.segment(0, segment)
        board.frame(100_000_000, 2, ip_frame(host))
        board.advance(SECOND_NS)
        return board.outputs()[-1].at_ns

    assert departure_ns(1) == departure_ns(1)
    drawn_ns = {departure_ns(seed) for seed in range(20)}
    assert len(drawn_ns) > 10
    # A lone frame waits for the next pass of the idle main loop, at most 4.9 us.
    assert max(drawn_ns) - min(drawn_ns) <= 4_900


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"profile": "zodiac-hx"}, "zodiac-hx"),
        ({"profile": "./missing.toml"}, "missing.toml"),
        ({"config": {"colour": "red"}}, "colour"),
        ({"config": {"fail_state": "open"}}, "fail_state|open"),
        ({"config": {"openflow_ports": [1, 9]}}, "port"),
        ({"config": {"mac": "70:b3"}}, "MAC"),
        ({"config": {"name": "x" * 16}}, "name"),
        ({"seed": -1}, "seed"),
    ],
)
def test_refuses_settings_in_one_line(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError, match=word) as refused:
        Board(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)


def test_refuses_wrong_types() -> None:
    board = Board()
    with pytest.raises(TypeError):
        board.advance("soon")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        board.frame(0, 1, "text")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Board(config=[1])  # type: ignore[arg-type]


@pytest.mark.parametrize("port", [0, 5, -1, 2**70])
def test_refuses_ports_that_do_not_exist(port: int) -> None:
    with pytest.raises(ValueError, match="port"):
        Board().frame(0, port, bytes(60))
    with pytest.raises(ValueError, match="port"):
        Board().link(0, port, True)


@pytest.mark.parametrize("at_ns", [-1, 10**15 + 1, 2**63, 2**70])
def test_refuses_instants_out_of_range(at_ns: int) -> None:
    with pytest.raises(ValueError, match="nanoseconds"):
        Board().advance(at_ns)


def test_time_does_not_run_backwards() -> None:
    board = Board()
    board.advance(10)
    calls: list[Callable[[], None]] = [
        lambda: board.advance(9),
        lambda: board.connected(9),
        lambda: board.disconnected(9),
        lambda: board.finished(9),
        lambda: board.reset(9),
        lambda: board.link(9, 1, False),
        lambda: board.segment(9, b""),
        lambda: board.frame(9, 1, bytes(60)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="order of time"):
            call()
    board.advance(10)


def port_states(board: Board, at_ns: int) -> list[int]:
    """Return for each port the state that the board's features report; 1 means that the link is down."""
    board.segment(at_ns, FEATURES_REQUEST)
    board.advance(at_ns + 5_000_000)
    reply = next(
        output.data for output in board.outputs() if output.kind == "controller" and output.data[1] == 6
    )
    return [int.from_bytes(port[28:32]) for port in (reply[at : at + 48] for at in range(32, len(reply), 48))]


def test_cables_are_pulled_and_plugged() -> None:
    board = ready_board()
    now_ns = 3 * SECOND_NS
    board.link(now_ns, 2, False)
    assert port_states(board, now_ns) == [0, 1, 0]
    board.link(now_ns + SECOND_NS, 2, True)
    assert port_states(board, now_ns + SECOND_NS) == [0, 0, 0]


@pytest.mark.parametrize("ended", ["finished", "reset", "disconnected"])
def test_only_a_half_closed_session_still_takes_messages(ended: str) -> None:
    board = Board(config={"fail_state": "safe"})
    board.connected(0)
    board.segment(1_000_000, HELLO)
    board.advance(9_000_000)
    getattr(board, ended)(10_000_000)
    board.outputs()
    board.frame(20_000_000, 1, bytes(60))
    board.advance(30_000_000)
    packet_ins = [output for output in board.outputs() if output.kind == "controller"]
    assert len(packet_ins) == (ended == "finished")


def test_a_profile_may_be_a_path(tmp_path: Path) -> None:
    copy = tmp_path / "faster.toml"
    copy.write_text(PROFILE.read_text(encoding="utf-8"), encoding="utf-8")
    assert Board(profile=str(copy)).flows() == []
    copy.write_text("format = 1\nname = 3\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"faster\.toml: profile, line 2"):
        Board(profile=str(copy))


def test_a_board_is_a_zodiac_fx() -> None:
    with pytest.raises(ValueError, match=r"another kind of device .* add_board\(\)") as refused:
        Board(profile="banana-pi-r1")
    assert "\n" not in str(refused.value)


bytes_in = st.one_of(
    st.tuples(st.just("frame"), st.integers(1, 4), st.binary(max_size=1600)),
    st.tuples(st.just("segment"), st.just(0), st.binary(max_size=600)),
    st.tuples(
        st.just("segment"),
        st.just(0),
        # Valid headers reach deeper code.
        st.builds(
            lambda kind, body: framed(1, kind, 9, body),
            st.integers(0, 30),
            st.binary(max_size=200),
        ),
    ),
    st.tuples(st.sampled_from(["connected", "disconnected", "finished", "reset"]), st.just(0), st.just(b"")),
    st.tuples(st.sampled_from(["plug", "unplug"]), st.integers(1, 4), st.just(b"")),
)


@examples(200)
@given(steps=st.lists(st.tuples(st.integers(0, 2 * SECOND_NS), bytes_in), max_size=30), session=st.booleans())
def test_survives_any_input(steps: list[tuple[int, tuple[str, int, bytes]]], session: bool) -> None:
    board = ready_board(flow_mod(destination=bytes([10, 0, 0, 3]), port=3)) if session else Board()
    now_ns = 3 * SECOND_NS
    outputs: list[Output] = []
    for pause_ns, (call, port, data) in steps:
        now_ns += pause_ns
        if call == "frame":
            board.frame(now_ns, port, data)
        elif call == "segment":
            board.segment(now_ns, data)
        elif call in {"plug", "unplug"}:
            board.link(now_ns, port, call == "plug")
        else:
            getattr(board, call)(now_ns)
        outputs += board.outputs()
    board.advance(now_ns + 10 * SECOND_NS)
    outputs += board.outputs()
    for output in outputs:
        assert output.kind in {"frame", "controller", "event"}
        assert (output.kind == "frame") == (output.port != 0)
        assert output.data
    assert len(board.flows()) <= 128


def test_the_console_is_a_door_like_the_others() -> None:
    board = Board()
    board.console(SECOND_NS, b"\rconfig\rset name s9\rsave\rrestart\r")
    board.advance(10 * SECOND_NS)
    outputs = board.outputs()
    text = b"".join(output.data for output in outputs if output.kind == "console")
    assert text.endswith(b"open the terminal again\r\n")
    events = [output.data for output in outputs if output.kind == "event"]
    assert [event for event in events if event in (b"eeprom", b"detach", b"attach")] == [
        b"eeprom",
        b"detach",
        b"attach",
    ]

    again = Board(eeprom=board.eeprom())
    again.console(0, b"\r")
    again.advance(SECOND_NS)
    assert again.outputs()[0].data.endswith(b"\r\ns9# ")
    with pytest.raises(ValueError, match="eeprom: 3 bytes"):
        Board(eeprom=b"abc")
