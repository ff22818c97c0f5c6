"""Networks in virtual time: the paper's two switches, from Python."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from switch_emulator import Network, RunResult
from test_board import FEATURES_REQUEST, HELLO, flow_mod, ip_frame

SECOND_NS = 1_000_000_000
HOSTS = ("H1", "H2", "H3", "H4")
MIRROR = {"H1": "H3", "H2": "H4", "H3": "H1", "H4": "H2"}
RATE_BPS, BURST_BYTES = 395_000.0, 344.336
"""r2, b2 of equation 8 with the fifth-rate allocation and N = 2; r1 and b1 are twice that."""


def address(host: str) -> bytes:
    return bytes([10, 0, 0, int(host[1])])


def two_switches(seed: int = 1, *, entries: int = 17, **config: object) -> Network:
    network = Network(seed=seed)
    for switch in ("s1", "s2"):
        network.add_board(switch, config={"ofchecks": False, **config})
    for index, host in enumerate(HOSTS):
        network.add_host(host)
        network.connect(host, 1, f"s{index // 2 + 1}", index % 2 + 1)
    network.connect("s1", 3, "s2", 3)
    dummies = [
        flow_mod(destination=bytes([192, 168, 0, n]), port=1, priority=n + 1) for n in range(entries - 4)
    ]
    for switch, local in (("s1", HOSTS[:2]), ("s2", HOSTS[2:])):
        used = [
            flow_mod(
                destination=address(host),
                port=local.index(host) + 1 if host in local else 3,
                priority=100 + index,
            )
            for index, host in enumerate(HOSTS)
        ]
        replies = network.control(switch, [HELLO, FEATURES_REQUEST, *dummies, *used])
        assert [reply[1] for reply in replies] == [0, 6]
    return network


def source(**changes: Any) -> dict[str, Any]:
    return {
        "flow": 0,
        "frame": ip_frame(address("H3")),
        "sequence_offset": 50,
        "shaper_rate_bps": RATE_BPS,
        "shaper_burst_bytes": BURST_BYTES,
        "offered_rate_bps": RATE_BPS,
        "burst_bytes": BURST_BYTES,
        "queue_bytes": 15_300,
    } | changes


def add_sources(
    network: Network, *, rate_factor: float = 1.0, observed: tuple[int, ...] = (0, 1, 2, 3)
) -> None:
    for flow, host in enumerate(HOSTS):
        share = 2 - flow % 2
        network.add_source(
            host,
            **source(
                flow=flow,
                frame=ip_frame(address(MIRROR[host])),
                shaper_rate_bps=share * RATE_BPS * rate_factor,
                offered_rate_bps=share * RATE_BPS * rate_factor,
                shaper_burst_bytes=share * BURST_BYTES,
                burst_bytes=share * BURST_BYTES,
                observed=flow in observed,
                destination=MIRROR[host],
            ),
        )


def run(seed: int = 1, seconds: int = 2, **load: Any) -> RunResult:
    network = two_switches(seed)
    add_sources(network, **load)
    return network.run(duration_ns=seconds * SECOND_NS)


def test_admitted_traffic_keeps_the_guarantee() -> None:
    result = run(seconds=10)
    delay_ns = result.received_ns - result.sent_ns
    assert len(result.flow) == result.packets > 5000
    assert np.all(result.received_ns >= 0)
    assert delay_ns.max() <= 4_130_000
    assert result.events == []
    assert result.boards["s1"]["dropped_buffer"] == 0
    # Each frame passes both switches.
    assert result.boards["s1"]["forwarded"] + result.boards["s2"]["forwarded"] == 2 * result.packets


def test_columns_are_typed_and_ordered() -> None:
    result = run(observed=(0, 2))
    narrow, wide = (result.flow, result.size), (result.sequence, result.sent_ns, result.received_ns)
    assert [column.dtype.name for column in (*narrow, *wide)] == ["int32"] * 2 + ["int64"] * 3
    assert set(result.flow.tolist()) == {0, 2}
    assert set(result.size.tolist()) == {306}
    assert np.all(np.diff(result.flow) >= 0)
    for flow in (0, 2):
        rows = result.flow == flow
        assert result.sequence[rows].tolist() == list(range(int(rows.sum())))
        assert np.all(np.diff(result.sent_ns[rows]) >= 326 * 80)
    assert result.flows[1]["sent"] > 0


def test_overload_is_lost_and_accounted_for() -> None:
    result = run(rate_factor=11)
    lost = int((result.received_ns == -1).sum())
    assert lost == result.packets - sum(flow["received"] for flow in result.flows.values())
    places = ("dropped_buffer", "dropped_switch", "dropped_return")
    dropped = sum(board[place] for board in result.boards.values() for place in places)
    assert lost == dropped > result.packets // 4
    assert (result.in_flight, result.unidentified) == (0, 0)
    assert {board["ring_units_peak"] for board in result.boards.values()} == {24}


def test_what_is_on_a_pulled_cable_is_lost_and_the_rest_arrives() -> None:
    network = two_switches()
    add_sources(network)
    network.unplug("s1", 3, at_ns=SECOND_NS // 2)
    network.plug("s2", 3, at_ns=SECOND_NS)
    result = network.run(duration_ns=2 * SECOND_NS)
    lost = result.received_ns == -1
    assert int(lost.sum()) == result.lost_on_link_down > 100
    # No frame is lost that passed before or came after; a frame needs at most 4.13 ms.
    out = (result.sent_ns > SECOND_NS // 2 - 4_130_000) & (result.sent_ns < SECOND_NS)
    assert not np.any(lost & ~out)
    well_out = (result.sent_ns > SECOND_NS // 2) & (result.sent_ns < SECOND_NS - 4_130_000)
    assert np.all(lost[well_out])


def test_cables_that_are_not_there_are_refused() -> None:
    network = two_switches()
    for name, port, word in [("s1", 4, "no cable"), ("nobody", 1, "add it first")]:
        with pytest.raises(ValueError, match=word):
            network.unplug(name, port, at_ns=0)
    network.unplug("s1", 3, at_ns=5)
    with pytest.raises(ValueError, match="at_ns"):
        network.plug("s1", 3, at_ns=4)


def test_the_seed_fixes_every_number() -> None:
    def columns(result: RunResult) -> list[list[int]]:
        return [
            c.tolist()
            for c in (result.flow, result.sequence, result.sent_ns, result.received_ns, result.size)
        ]

    assert columns(run(5)) == columns(run(5))
    assert run(5).sent_ns.tolist() != run(6).sent_ns.tolist()


def test_a_frame_at_the_wrong_host_is_lost() -> None:
    network = two_switches()
    network.add_source("H1", **source(destination="H4"))
    result = network.run(duration_ns=SECOND_NS)
    counts = result.flows[0]
    assert counts["misdelivered"] == counts["sent"] > 0
    assert np.all(result.received_ns == -1)


def test_propagation_and_wire_add_up() -> None:
    network = Network(seed=1)
    for host in ("A", "B"):
        network.add_host(host)
    network.connect("A", 1, "B", 1, rate_bps=10_000_000, propagation_ns=777)
    network.add_source("A", **source())
    result = network.run(duration_ns=SECOND_NS)
    assert len(result.flow) > 0
    # Both taps stamp the start of a frame, so its transmission time does not count.
    assert set((result.received_ns - result.sent_ns).tolist()) == {777}


def test_frames_for_nobody_do_no_harm() -> None:
    network = two_switches()
    network.add_source("H1", **source(frame=ip_frame(bytes([172, 16, 0, 1]))))
    network.add_source("H2", **source(flow=1, frame=bytes(60), sequence_offset=20))
    result = network.run(duration_ns=SECOND_NS)
    assert np.all(result.received_ns == -1)
    assert result.boards["s1"]["missed"] == result.packets > 0


def test_a_port_without_a_cable_is_counted() -> None:
    network = Network(seed=1)
    network.add_board("s", config={"ofchecks": False})
    network.add_host("H1")
    network.connect("H1", 1, "s", 1)
    network.control("s", [HELLO, FEATURES_REQUEST, flow_mod(destination=address("H3"), port=2)])
    network.add_source("H1", **source())
    result = network.run(duration_ns=SECOND_NS)
    assert result.boards["s"]["unconnected"] == result.packets > 0


def test_events_of_a_board_are_reported() -> None:
    network = two_switches()
    network.control("s1", [HELLO[:4]])
    result = network.run(duration_ns=0)
    (event,) = result.events
    assert (event.board, event.at_ns < 0) == ("s1", True)
    assert event.text
    assert "s1" in repr(event)


def test_messages_that_a_board_misreads_are_no_events() -> None:
    network = two_switches()
    to_all = bytes.fromhex("010d005400000009ffffffff0001000800000008fffcffff") + bytes(60)
    network.control("s1", [to_all] * 1001)
    result = network.run(duration_ns=0)
    assert (result.events, result.events_omitted) == ([], 0)
    assert (len(result.deviations), result.deviations_omitted) == (1000, 1)
    first = result.deviations[0]
    assert (first.board, first.at_ns < 0, "quirks 73, 80" in first.text) == ("s1", True, True)


def test_two_threads_run_at_once() -> None:
    """A run releases the interpreter lock, so that another thread continues meanwhile.

    The number of turns that the other thread gets depends on the machine, so the runs get longer and longer.
    If the lock were kept, it would get one or two turns, before and after a run, however long the run.
    """
    turns: list[int] = []
    for seconds in (50, 200, 800, 3200):
        turns.append(_turns_during(seconds))
        if turns[-1] > 10:
            return
    pytest.fail(f"turns during runs: {turns}")


def _turns_during(seconds: int) -> int:
    network = two_switches()
    add_sources(network, rate_factor=3)
    done = threading.Event()

    def simulate() -> None:
        network.run(duration_ns=seconds * SECOND_NS)
        done.set()

    thread = threading.Thread(target=simulate)
    thread.start()
    turns = 0
    while not done.is_set():
        time.sleep(sys.getswitchinterval() / 10)
        turns += 1
    thread.join()
    return turns


def test_control_traffic_as_frames():
    network = Network(seed=1)
    network.add_controller("C")
    for number in (1, 2):
        addresses = {"mac": f"70:b3:d5:6c:00:{number:02x}", "ip_address": f"10.0.1.{100 + number}"}
        network.add_board(f"s{number}", config={"control": "network", "ofchecks": False, **addresses})
        network.connect("C", number, f"s{number}", 4)
        network.add_host(f"H{number}")
        network.connect(f"H{number}", 1, f"s{number}", 1)
    network.connect("s1", 3, "s2", 3)
    for switch, port in (("s1", 3), ("s2", 1)):
        flow = flow_mod(destination=address("H2"), port=port, priority=1)
        replies = network.control(switch, [HELLO, FEATURES_REQUEST, flow])
        assert [reply[1] for reply in replies] == [0, 6]
    network.add_source("H1", **source(frame=ip_frame(address("H2")), destination="H2"))
    result = network.run(duration_ns=10 * SECOND_NS)
    assert result.flows[0]["received"] == result.flows[0]["sent"] > 0
    for counters in result.boards.values():
        assert counters["native_received"] > 0
        assert counters["native_sent"] > 0
        assert counters["received"] == counters["forwarded"] == result.flows[0]["sent"]


def twice(call: Callable[[Network], object]) -> Callable[[Network], object]:
    def both(network: Network) -> None:
        call(network)
        call(network)

    return both


REFUSED: list[tuple[str, Callable[[Network], object]]] = [
    ('neither board nor host nor controller named "x"', lambda n: n.connect("x", 1, "s1", 4)),
    ("no port 5", lambda n: n.connect("H9", 1, "s1", 5)),
    ("only port is 1", lambda n: n.connect("H1", 2, "s1", 4)),
    ("connected already", lambda n: n.connect("H1", 1, "s1", 4)),
    ("rate_bps", lambda n: n.connect("H9", 1, "s1", 4, rate_bps=1e9)),
    ("rate_bps is NaN", lambda n: n.connect("H9", 1, "s1", 4, rate_bps=float("nan"))),
    ("propagation_ns", lambda n: n.connect("H9", 1, "s1", 4, propagation_ns=-1)),
    ("itself", lambda n: n.connect("H9", 1, "H9", 1)),
    ("already", lambda n: n.add_host("s1")),
    ("already", lambda n: n.add_board("H1")),
    ("no_such", lambda n: n.add_board("s9", profile="no_such")),
    ("colour", lambda n: n.add_board("s9", config={"colour": 1})),
    ("ofchecks", lambda n: n.add_board("s9", profile="banana-pi-r1", config={"ofchecks": False})),
    ("already", lambda n: n.add_controller("s1")),
    ("colour", lambda n: n.add_controller("C", config={"colour": 1})),
    ("single stations", lambda n: n.add_controller("C", config={"ip_address": "224.0.0.1"})),
    ('no board named "H1"', lambda n: n.control("H1", [])),
    ('no host named "s1"', lambda n: n.add_source("s1", **source())),
    ('no host named "H7"', lambda n: n.add_source("H1", **source(destination="H7"))),
    ("not connected", lambda n: n.add_source("H9", **source())),
    ("flow 0: is there already", twice(lambda n: n.add_source("H1", **source()))),
    ("flow is", lambda n: n.add_source("H1", **source(flow=2**31))),
    ("shaper_burst_bytes", lambda n: n.add_source("H1", **source(shaper_burst_bytes=305))),
    ("shaper_rate_bps", lambda n: n.add_source("H1", **source(shaper_rate_bps=0))),
    ("queue_bytes", lambda n: n.add_source("H1", **source(queue_bytes=0))),
    ("sequence_offset", lambda n: n.add_source("H1", **source(sequence_offset=300))),
    ("offered_rate_bps", lambda n: n.add_source("H1", **source(offered_rate_bps=float("inf")))),
    ("duration_ns", lambda n: n.run(duration_ns=-1)),
    ("second time", twice(lambda n: n.run(duration_ns=0))),
    ("before the run", lambda n: [n.run(duration_ns=0), n.control("s1", [])]),
]


@pytest.mark.parametrize(("reason", "call"), REFUSED, ids=[reason for reason, _ in REFUSED])
def test_refuses_in_one_line(reason: str, call: Callable[[Network], object]) -> None:
    network = two_switches()
    network.add_host("H9")
    with pytest.raises(ValueError, match=r".") as refused:
        call(network)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


@examples(50)
@given(
    segments=st.lists(st.binary(max_size=600), max_size=10),
    frame=st.binary(min_size=20, max_size=1514),
    offset=st.integers(4, 16),
    seed=st.integers(0, 2**64 - 1),
)
def test_any_segment_and_frame_runs_to_the_end(
    segments: list[bytes], frame: bytes, offset: int, seed: int
) -> None:
    network = two_switches(seed)
    network.control("s1", segments)
    network.add_source(
        "H1", **source(frame=frame, sequence_offset=offset, shaper_burst_bytes=1600, queue_bytes=16_000)
    )
    result = network.run(duration_ns=SECOND_NS // 10)
    assert len(result.sent_ns) == len(result.received_ns) == result.packets
