"""Tries to refute a schedule by arithmetic: checks TSSDN's conditions on the documents alone."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence

from loko.topology.lab import Lab
from loko_testbed.reproduce.schedule_check.document import Entry, ScheduleDocument, ScheduledSlot, WantedFlow

_SLACK_US = 2e-3
"""Instants are whole nanoseconds: two may be rounded."""

Use = tuple[str, str, int]
"""A resource that a flow occupies in its slot: its kind, a node, and the node's output port (0: none)."""


def refutations(lab: Lab, flows: Sequence[WantedFlow], schedule: ScheduleDocument) -> list[str]:
    """Return everything that is wrong with a schedule, one line each; empty if nothing is."""
    wanted = {flow.id: flow for flow in flows}
    refutations = [*_completeness(wanted, schedule), *_cycle(schedule)]
    for assigned in schedule.scheduled:
        if assigned.id not in wanted:
            continue
        flow = wanted[assigned.id]
        refutations += of_flow(lab, flow, assigned, schedule, with_entries=True)
    refutations += _collisions(schedule, wanted)
    refutations += _foreign_entries(lab, wanted, schedule)
    return refutations


def of_flow(
    lab: Lab, flow: WantedFlow, slot: ScheduledSlot, schedule: ScheduleDocument, *, with_entries: bool
) -> Iterator[str]:
    """Yield what is wrong with a flow's slot and path, apart from collisions with other flows.

    `with_entries` also checks the flow's entries.
    """
    yield from _instants(slot, flow, schedule)
    broken = list(_path(lab, flow, slot))
    yield from broken
    if not broken:
        yield from _length(lab, flow, slot, schedule.scheme)
        if with_entries:
            yield from _tables(lab, flow, slot, schedule)


def _completeness(wanted: dict[str, WantedFlow], schedule: ScheduleDocument) -> Iterator[str]:
    told = Counter([*(flow.id for flow in schedule.scheduled), *schedule.unscheduled])
    for name in wanted:
        if told[name] != 1:
            yield f"{name}: is there {told[name]} times, scheduled or not; a flow has one slot at most"
    for name in told:
        if name not in wanted:
            yield f"{name}: nobody asked for it"
    if len(schedule.scheduled) > schedule.bound:
        yield f"{len(schedule.scheduled)} flows are scheduled, above the bound {schedule.bound}"
    if schedule.optimal != (len(schedule.scheduled) == schedule.bound):
        called = "optimal" if schedule.optimal else "not optimal"
        yield f"{len(schedule.scheduled)} flows of at most {schedule.bound} are called {called}"


def _cycle(schedule: ScheduleDocument) -> Iterator[str]:
    needed_us = schedule.slots * schedule.slot_us
    if needed_us > schedule.base_period_us + _SLACK_US:
        yield (
            f"{schedule.slots} slots of {schedule.slot_us:g} us need {needed_us:g} us, the base period has"
            f" {schedule.base_period_us:g}"
        )


def _instants(slot: ScheduledSlot, flow: WantedFlow, schedule: ScheduleDocument) -> Iterator[str]:
    if not 0 <= slot.slot < schedule.slots:
        yield f"{slot.id}: slot {slot.slot} is not in 0 to {schedule.slots - 1}"
    if slot.send.host != flow.source:
        yield f"{slot.id}: {slot.send.host} is told to send, its source is {flow.source}"
    begin_us = slot.slot * schedule.slot_us
    if abs(slot.send.offset_us - begin_us) > _SLACK_US * max(schedule.slots, 1):
        yield f"{slot.id}: sends at {slot.send.offset_us:g} us, its slot begins at {begin_us:g}"
    cycles = slot.send.period_us / schedule.base_period_us
    if cycles < 1 or abs(cycles - round(cycles)) > 1e-6:
        yield f"{slot.id}: its period is {cycles:g} base periods; it has to be a whole number of them"
    if flow.period_us is not None and abs(flow.period_us - slot.send.period_us) > _SLACK_US:
        yield f"{slot.id}: sends every {slot.send.period_us:g} us, and wants {flow.period_us:g}"
    if slot.guarantee_us + 2 * schedule.guard_us > schedule.slot_us + _SLACK_US:
        yield (
            f"{slot.id}: a frame may take {slot.guarantee_us:g} us, hosts may be {schedule.guard_us:g} us"
            f" off: more than a slot of {schedule.slot_us:g} us"
        )


def _path(lab: Lab, flow: WantedFlow, slot: ScheduledSlot) -> Iterator[str]:
    if len(slot.path) != len(slot.ports):
        yield f"{slot.id}: {len(slot.path)} switches, but {len(slot.ports)} ports"
        return
    if len(set(slot.path)) != len(slot.path):
        yield f"{slot.id}: its path has a loop: {' '.join(slot.path)}"
    starts = {far.node for _, far in lab.outgoing_cables(flow.source)}
    here = slot.path[0] if slot.path else flow.destination
    if here not in starts:
        yield f"{slot.id}: no cable leads from {flow.source} to {here}"
    for place, (switch, port) in enumerate(zip(slot.path, slot.ports, strict=True)):
        there = slot.path[place + 1] if place + 1 < len(slot.path) else flow.destination
        ends = dict(lab.outgoing_cables(switch)) if switch in lab.switches else {}
        if port not in ends or ends[port].node != there:
            yield f"{slot.id}: port {port} of {switch} does not lead to {there}"


def _length(lab: Lab, flow: WantedFlow, slot: ScheduledSlot, scheme: str) -> Iterator[str]:
    if scheme == "s-ur":
        return
    fewest = _distance(lab, flow.source, flow.destination)
    if len(slot.path) != fewest:
        yield (
            f"{slot.id}: crosses {len(slot.path)} switches, {scheme} allows shortest paths only, of {fewest}"
        )


def _distance(lab: Lab, source: str, destination: str) -> int:
    """Return the least number of switches between two hosts; -1 if there is no path."""
    waiting, seen = deque([(source, -1)]), {source}
    while waiting:
        node, switches = waiting.popleft()
        if node == destination:
            return switches
        for _, far in lab.outgoing_cables(node):
            if far.node not in seen and (far.node in lab.switches or far.node == destination):
                seen.add(far.node)
                waiting.append((far.node, switches + 1))
    return -1


def _collisions(schedule: ScheduleDocument, wanted: dict[str, WantedFlow]) -> Iterator[str]:
    owners: dict[tuple[int, Use], str] = {}
    for flow in schedule.scheduled:
        source = wanted[flow.id].source if flow.id in wanted else None
        for use in uses(flow, source, schedule.exclusive):
            other = owners.setdefault((flow.slot, use), flow.id)
            if other != flow.id:
                kind, node, port = use
                what = f"port {port} of {node}" if kind == "port" else node
                yield f"{flow.id}: is not alone on {what} in slot {flow.slot}: {other} is there, too"


def uses(slot: ScheduledSlot, source: str | None, exclusive: str) -> Iterator[Use]:
    """Yield what no other flow may use in the slot; `source` is the flow's source host, if known."""
    if source is not None:
        yield "port", source, 1
    for switch, port in zip(slot.path, slot.ports, strict=False):
        yield "port", switch, port
        if exclusive == "switches":
            yield "switch", switch, 0


def _tables(lab: Lab, flow: WantedFlow, slot: ScheduledSlot, schedule: ScheduleDocument) -> Iterator[str]:
    """Follow a frame from entry to entry."""
    for switch, port in zip(slot.path, slot.ports, strict=True):
        own = (entry for entry in schedule.entries.get(switch, []) if _is_of(lab, entry, flow))
        out = [entry.output_port for entry in own]
        if out != [port]:
            yield f"{slot.id}: the entries of {switch} send it to ports {out}, not {port}"


def _foreign_entries(lab: Lab, wanted: dict[str, WantedFlow], schedule: ScheduleDocument) -> Iterator[str]:
    paths = {flow.id: flow.path for flow in schedule.scheduled}
    for switch, entries in schedule.entries.items():
        if len(entries) > schedule.table_entries:
            yield f"{switch}: {len(entries)} entries, planned for {schedule.table_entries}"
        for entry in entries:
            owners = [flow.id for flow in wanted.values() if _is_of(lab, entry, flow)]
            if not any(switch in paths.get(owner, ()) for owner in owners):
                yield f"{switch}: an entry for {entry.nw_src}:{entry.tp_src} is of no flow that crosses it"


def _is_of(lab: Lab, entry: Entry, flow: WantedFlow) -> bool:
    if flow.source not in lab.hosts or flow.destination not in lab.hosts:
        return False
    ends = str(lab.hosts[flow.source].ip.ip), str(lab.hosts[flow.destination].ip.ip)
    return (entry.nw_src, entry.nw_dst, entry.tp_src, entry.tp_dst) == (
        *ends,
        flow.udp_source,
        flow.udp_destination,
    )
