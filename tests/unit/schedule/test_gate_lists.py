"""Gate control lists of schedules: a planned frame meets an open gate, and no frame of others then."""

from __future__ import annotations

import json
import math

import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from scheduling import clock, states_at
from typer.testing import CliRunner

from loko.document import InputError
from loko.schedule.gates.gate_list import LONGEST_OTHER_BYTES, gate_lists
from loko.schedule.gates.listing import listings, states_text
from loko.schedule.gates.options import ALL_CLOSED, GateOptions
from loko.schedule.gates.yang import instance_data
from loko.schedule.lab_schedule import LabSchedule, SchedulingOptions, schedule
from loko.schedule.preemption import longest_wait_ns
from loko.schedule.timed_flow import TimedFlow
from loko.solvers import Solver, solver_named
from loko.topology.lab import Endpoint, load_lab
from loko_testbed.cli.main import app

LAB = load_lab("two-switch")
RING = load_lab("labs/ring/five.yml")
HIGHS = solver_named(Solver.HIGHS)
GUARD_NS = 2_000
MS = 1_000_000
FLOW = "{id: a, source: H1, destination: H3, udp_source: 1001, udp_destination: 5001, frame: 306 bytes}"


def scheduled(lab, pairs, *, slots, base_period_ns=None) -> LabSchedule:
    flows = [
        TimedFlow(f"f{number}", *ends, 1000 + number, 5000, 306, None, None)
        for number, ends in enumerate(pairs)
    ]
    options = SchedulingOptions(slots=slots, guard_ns=GUARD_NS, base_period_ns=base_period_ns)
    return schedule(lab, flows, options, HIGHS, clock())


def test_a_list_is_as_computed_by_hand() -> None:
    """Flows of slots 0 and 2 leave by one port, with time for others between them and none at the end."""
    result = scheduled(LAB, [("H1", "H3"), ("H2", "H4"), ("H2", "H3")], slots=3, base_period_ns=8 * MS)
    assert [flow.slot for flow in result.scheduled] == [0, 1, 2]
    bound_ns = math.ceil(result.scheduled[0].bound_ns)
    (gates, _) = gate_lists(result, GateOptions(clock_ns=1_000)).ports["s2"]
    assert gates.interface == "s2-eth1"
    window_ns = bound_ns + 2 * (GUARD_NS + 1_000)
    slot_ns = 8 * MS // 3
    band_ns = (1522 + 20) * 80
    left_ns = 8 * MS - 2 * slot_ns - window_ns
    assert gates.base_time_ns == 8 * MS - GUARD_NS - 1_000
    assert left_ns < band_ns + 84 * 80  # no time for the band and the shortest frame
    assert [(states_text(entry.states), entry.interval_ns) for entry in gates.entries] == [
        ("oCCCCCCC", window_ns),
        ("Cooooooo", 2 * slot_ns - window_ns - band_ns),
        ("CCCCCCCC", band_ns),
        ("oCCCCCCC", window_ns + left_ns),
    ]


@st.composite
def schedules(draw) -> LabSchedule:
    lab = draw(st.sampled_from((LAB, RING)))
    hosts = list(lab.hosts)
    pair = st.tuples(st.sampled_from(hosts), st.sampled_from(hosts)).filter(lambda ends: ends[0] != ends[1])
    pairs = draw(st.lists(pair, min_size=1, max_size=10))
    slots = draw(st.integers(1, 6))
    shortest = scheduled(lab, pairs, slots=slots)
    longer_ns = draw(st.one_of(st.just(0), st.integers(0, 1_000), st.integers(0, 10 * MS)))
    return scheduled(lab, pairs, slots=slots, base_period_ns=shortest.timing.base_period_ns + longer_ns)


@examples(60)
@given(
    result=schedules(),
    traffic_class=st.integers(0, 7),
    clock_ns=st.integers(0, 50_000),
    data=st.data(),
)
def test_a_planned_frame_meets_an_open_gate_and_no_frame_of_others(
    result, traffic_class, clock_ns, data
) -> None:
    """Lemmas 1 and 2 of docs/tssdn.md, for hosts and clocks of gates that are off as far as they may be."""
    options = GateOptions(traffic_class=traffic_class, clock_ns=clock_ns)
    lists = gate_lists(result, options)
    by_end = {port.end: port for ports in lists.ports.values() for port in ports}
    ends_of = {
        flow: [
            Endpoint(node=flow.timed.source, port=1),
            *(Endpoint(node=hop.switch, port=hop.output_port) for hop in flow.path),
        ]
        for flow in result.scheduled
    }
    assert set(by_end) == {end for ends in ends_of.values() for end in ends}
    for port in by_end.values():
        assert sum(entry.interval_ns for entry in port.entries) == port.cycle_ns
        assert all(
            entry.interval_ns >= longest_wait_ns(64, port.rate_bps, preempted=False) for entry in port.entries
        )
        for entry, following in zip(port.entries, port.entries[1:], strict=False):
            if entry.states == options.others_open:
                wait_ns = longest_wait_ns(LONGEST_OTHER_BYTES, port.rate_bps, preempted=False)
                assert following == (ALL_CLOSED, wait_ns)
    for flow, ends in ends_of.items():
        for end, bound_ns in zip(ends, flow.link_bounds_ns, strict=True):
            period = data.draw(st.integers(0, 3))
            off_ns = data.draw(st.sampled_from((-GUARD_NS, 0, GUARD_NS)))
            clock_off_ns = data.draw(st.sampled_from((-clock_ns, 0, clock_ns)))
            leaves_ns = period * flow.every_ns + flow.offset_ns + off_ns
            for part in (0.0, data.draw(st.floats(0, 1)), 1.0):
                now_ns = leaves_ns + math.floor(part * bound_ns) + clock_off_ns
                assert states_at(by_end[end], now_ns) == options.scheduled_open


def test_a_window_is_no_longer_than_its_lemma_says() -> None:
    """One ns before and after its window, the gate of the only flow is closed."""
    result = scheduled(LAB, [("H1", "H3")], slots=2)
    (flow,) = result.scheduled
    lists = gate_lists(result, GateOptions(clock_ns=700))
    wire_ns = (306 + 8) * 80
    assert wire_ns <= flow.link_bounds_ns[0] < wire_ns + 1_000  # a long cable, and clocks that are off
    for node, bound_ns in zip(("H1", "s1", "s2"), flow.link_bounds_ns, strict=True):
        (port,) = lists.ports[node]
        first_ns = flow.offset_ns - GUARD_NS - 700
        end_ns = flow.offset_ns + math.ceil(bound_ns) + GUARD_NS + 700
        assert [states_at(port, now_ns) for now_ns in (first_ns - 1, first_ns, end_ns - 1, end_ns)] == [
            ALL_CLOSED,
            0x80,
            0x80,
            0x7F,
        ]


def test_a_full_port_has_one_entry() -> None:
    result = scheduled(LAB, [("H1", "H3")] * 3, slots=3)
    lists = gate_lists(result, GateOptions())
    (gates,) = lists.ports["s2"]
    assert gates.entries == ((0x80, result.timing.base_period_ns),)
    assert "others may send 0.0 % of the time" in listings(lists)["s2.txt"]


def test_a_cycle_that_no_list_can_express_is_refused() -> None:
    result = scheduled(LAB, [("H1", "H3")], slots=1, base_period_ns=2**32)
    with pytest.raises(InputError, match=r"a base period of 4.29497 s: .* cycles of at most 4.29 s"):
        gate_lists(result, GateOptions())


def test_instance_data_says_what_the_list_says() -> None:
    lists = gate_lists(scheduled(LAB, [("H1", "H3"), ("H2", "H4")], slots=4), GateOptions())
    files = instance_data(lists)
    assert files.keys() == {"s1.json", "s2.json"}
    content = json.loads(files["s1.json"])["ietf-yang-instance-data:instance-data-set"]["content-data"]
    (interface,) = content["ietf-interfaces:interfaces"]["interface"]
    (port,) = lists.ports["s1"]
    assert interface["name"] == port.interface == "s1-eth3"
    table = interface["ieee802-dot1q-bridge:bridge-port"]["ieee802-dot1q-sched-bridge:gate-parameter-table"]
    told = [
        (row["gate-states-value"], row["time-interval-value"])
        for row in table["admin-control-list"]["gate-control-entry"]
    ]
    assert told == list(port.entries)
    base = table["admin-base-time"]
    assert int(base["seconds"]) * 10**9 + base["nanoseconds"] == port.base_time_ns
    assert table["admin-cycle-time"]["numerator"] == port.cycle_ns


def run(folder, *options):
    flows = folder / "flows.yml"
    flows.write_text(f"- {FLOW}\n")
    return CliRunner().invoke(app, ["schedule", "two-switch", str(flows), "--slots", "2", *options])


def test_the_command_writes_a_file_for_each_node(tmp_path) -> None:
    out = tmp_path / "gates"
    done = run(tmp_path, "--export", "listing", "--out", str(out), "--gate-class", "5", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["slots"] == 2
    assert sorted(path.name for path in out.iterdir()) == ["H1.txt", "s1.txt", "s2.txt"]
    assert "CCoCCCCC" in (out / "s1.txt").read_text()


def test_the_command_replaces_files_only_if_told_to(tmp_path) -> None:
    out = tmp_path / "gates"
    out.mkdir()
    (out / "s1.txt").write_text("mine")
    refused = run(tmp_path, "--export", "listing", "--out", str(out))
    assert refused.exit_code == 2
    assert "s1.txt: is there already" in refused.stderr
    assert [path.name for path in out.iterdir()] == ["s1.txt"]
    assert run(tmp_path, "--export", "listing", "--out", str(out), "--force").exit_code == 0
    assert "oCCCCCCC" in (out / "s1.txt").read_text()
