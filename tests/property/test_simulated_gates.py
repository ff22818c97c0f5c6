"""Frames of boards in virtual time leave hosts and reach destinations while the gates are open.

The first port of a path is observed at its host, the last one at the destination.
"""

from __future__ import annotations

import numpy as np
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from scheduling import clock, states_at

from loko.control.entries import padding_entries
from loko.schedule.gates.gate_list import gate_lists
from loko.schedule.gates.options import GateOptions
from loko.schedule.lab_schedule import LabSchedule, SchedulingOptions, schedule
from loko.schedule.timed_flow import TimedFlow
from loko.solvers import Solver, solver_named
from loko.topology.lab import Endpoint, load_lab
from loko_testbed.simulation.traffic import Releases, Sender
from loko_testbed.simulation.virtual import PoweredLab, lab_network

LABS = (load_lab("two-switch"), load_lab("labs/ring/five.yml"))
GUARD_NS = 2_000
PERIODS = 20


def scheduled(lab, pairs, sizes, slots) -> LabSchedule:
    flows = [
        TimedFlow(f"f{number}", *ends, 1000 + number, 5000, size, None, None)
        for number, (ends, size) in enumerate(zip(pairs, sizes, strict=True))
    ]
    options = SchedulingOptions(slots=slots, guard_ns=GUARD_NS)
    return schedule(lab, flows, options, solver_named(Solver.HIGHS), clock())


@examples(20)
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_frames_meet_open_gates(data, seed) -> None:
    lab = data.draw(st.sampled_from(LABS))
    hosts = st.sampled_from(list(lab.hosts))
    pair = st.tuples(hosts, hosts).filter(lambda ends: ends[0] != ends[1])
    pairs = data.draw(st.lists(pair, min_size=1, max_size=8))
    sizes = data.draw(st.lists(st.integers(64, 700), min_size=len(pairs), max_size=len(pairs)))
    result = scheduled(lab, pairs, sizes, data.draw(st.integers(1, 5)))
    tables = {
        name: [*padding_entries(lab, result.table_entries - len(own)), *own]
        for name, own in result.entries.items()
    }
    powered = PoweredLab(lab, lab_network(lab, tables, seed=seed), seed)
    chance = np.random.default_rng(seed)
    base_ns = result.timing.base_period_ns
    senders = []
    for number, flow in enumerate(result.scheduled):
        due_ns = base_ns + flow.offset_ns + np.arange(PERIODS, dtype=np.int64) * flow.every_ns
        off_ns = chance.choice([-GUARD_NS, 0, GUARD_NS], PERIODS)
        senders.append(Sender.of(number, flow.routed.flow, Releases(instants_ns=due_ns + off_ns)))
    records = powered.run(senders, duration_ns=(PERIODS + 2) * base_ns, drain_ns=100_000_000)
    options = GateOptions(clock_ns=0)
    gates = {port.end: port for ports in gate_lists(result, options).ports.values() for port in ports}
    for number, flow in enumerate(result.scheduled):
        mine = records.flow == number
        assert mine.sum() == PERIODS
        assert (records.received_ns[mine] >= 0).all()
        first = gates[Endpoint(node=flow.timed.source, port=1)]
        last = gates[Endpoint(node=flow.path[-1].switch, port=flow.path[-1].output_port)]
        wire_ns = (flow.timed.frame_bytes + 8) * 8 * 10**9 // first.rate_bps
        for sent_ns in records.sent_ns[mine].tolist():
            assert states_at(first, sent_ns) == options.scheduled_open
            assert states_at(first, sent_ns + wire_ns) == options.scheduled_open
        for received_ns in records.received_ns[mine].tolist():
            assert states_at(last, received_ns) == options.scheduled_open
            assert states_at(last, received_ns - wire_ns) == options.scheduled_open
