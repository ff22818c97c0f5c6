"""Checks within seconds that a switch is wired as its inventory says, before anything long starts."""

from __future__ import annotations

import itertools
from contextlib import ExitStack

from loko.control.messages import barrier_request
from loko_testbed.instruments.cable_probe import arrival, let_out, probes, refuse_unless_broken
from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.instruments.packet_tap import PacketTap
from loko_testbed.measure.bench.live.bench import Bench
from loko_testbed.measure.bench.wiring import NOTHING, Observations, Wiring, diagnose
from loko_testbed.simulation.runner import RunError


def self_test(bench: Bench, *, connect_s: float) -> None:
    """Wait for the switch and check its wiring. Raises `RunError` with the line of `diagnose`."""
    around = bench.around
    wiring = Wiring(ports=around.ports, controller=around.controller, datapath_id=around.datapath_id)
    for session in itertools.count(1):
        seen = observe(bench, connect_s=connect_s)
        problem = diagnose(wiring, seen)
        if problem is None:
            return
        error = RunError(f"{bench.name}: {problem}")
        if seen is NOTHING:
            raise error
        refuse_unless_broken(around.endpoint, bench.name, error, session)


def observe(bench: Bench, *, connect_s: float) -> Observations:
    """Send probes along every cable and return what was observed. Empties the table."""
    datapath_id = bench.around.endpoint.accept(connect_s)
    if datapath_id is None:
        return NOTHING
    said = bench.device.control([0], [barrier_request(7)])
    bench.device.load([])
    with ExitStack() as stack:
        ends = {
            port: stack.enter_context(PacketTap(end.interface)) for port, end in bench.around.ports.items()
        }
        taps = {
            port: stack.enter_context(PacketTap(end.tap_interface))
            for port, end in bench.around.ports.items()
        }
        arrived, at_entrance = {}, frozenset[int]()
        for port in (IN_PORT, OUT_PORT):
            arrived[port] = arrival(bench.around.endpoint, bench.around.ports[port].interface)
            saw = {
                tap
                for tap, probe in taps.items()
                if probes(probe.read(), passive=bench.around.ports[tap].passive)
            }
            if port == IN_PORT:
                at_entrance = frozenset(saw)
        came_out: dict[int, frozenset[int]] = {}
        for port in (IN_PORT, OUT_PORT):
            for socket in (*ends.values(), *taps.values()):
                socket.purge()
            let_out(bench.around.endpoint, port)
            came_out[port] = frozenset(end for end, probe in ends.items() if probes(probe.read()))
        at_exit = frozenset(tap for tap, probe in taps.items() if probes(probe.read()))
    return Observations(
        datapath_id=datapath_id,
        control_tap_saw={message.from_switch for message in said} == {True, False},
        arrived_at=arrived,
        came_out_at=came_out,
        taps_at_entrance=at_entrance,
        taps_at_exit=at_exit,
    )
