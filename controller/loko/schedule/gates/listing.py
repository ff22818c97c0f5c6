"""Gate control lists as readable text, in the notation of IEEE 802.1Q (o: open, C: closed; class 7 first)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from loko.schedule.gates.gate_list import GateLists
from loko.schedule.gates.options import ALL_CLOSED, TRAFFIC_CLASSES


def listings(gates: GateLists) -> Mapping[str, str]:
    """Return a text for each node, by the name of its file."""
    return {f"{node}.txt": "".join(f"{line}\n" for line in _lines(gates, node)) for node in gates.ports}


def states_text(states: int) -> str:
    """Write gate states as IEEE 802.1Q does, such as ``oCCCCCCC`` if only the gate of class 7 is open."""
    return "".join("o" if states >> place & 1 else "C" for place in reversed(range(TRAFFIC_CLASSES)))


def _lines(gates: GateLists, node: str) -> Iterator[str]:
    schedule, options = gates.schedule, gates.options
    timing = schedule.timing
    yield f"Gate control lists (IEEE 802.1Qbv) of {node} in lab {schedule.lab.name}"
    yield f"{schedule.slots} slots of {timing.slot_ns} ns in a base period of {timing.base_period_ns} ns"
    yield f"scheduled flows: traffic class {options.traffic_class}, which no other frame may have"
    yield f"hosts may be off their slots by {timing.guard_ns} ns, clocks of gates by {options.clock_ns} ns"
    meanings = {
        options.scheduled_open: "scheduled flows",
        options.others_open: "all others",
        ALL_CLOSED: "guard band",
    }
    for port in gates.ports[node]:
        yield ""
        yield f"port {port.end.port} ({port.interface}), {port.rate_bps} bit/s"
        yield f"base time {port.base_time_ns} ns, cycle {port.cycle_ns} ns"
        for entry in port.entries:
            yield f"  {states_text(entry.states)} {entry.interval_ns:>11} ns  {meanings[entry.states]}"
        others_ns = sum(e.interval_ns for e in port.entries if e.states == options.others_open)
        yield f"others may send {100 * others_ns / port.cycle_ns:.1f} % of the time"
