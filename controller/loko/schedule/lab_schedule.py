"""A lab's schedule: from its switches and flows to slots, paths, the controller's entries, send times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from loko.control.entries import EVALUATION_ENTRIES, FlowEntry, path_entries
from loko.document import InputError
from loko.schedule.graph import DirectedLink, Graph, Path
from loko.schedule.packing import Paths, pack, solve_time_indexed
from loko.schedule.problem import (
    Assignment,
    ScheduleSolution,
    SchedulingProblem,
    SchedulingScheme,
    SlotDemand,
    candidate_paths,
    random_paths,
)
from loko.schedule.timed_flow import TimedFlow
from loko.schedule.timing import (
    CrossingTimes,
    CycleTiming,
    Exclusive,
    crossing_times,
    overloaded_switches,
    slot_ns,
    switches_with_small_buffers,
)
from loko.solvers.program import Solve, TimeBudget
from loko.switch_model.allocation import Frontier
from loko.switch_model.control_traffic import driver_traffic
from loko.switch_model.scenario import OpenFlow, loko_scenario
from loko.topology.lab import Lab
from loko.topology.lab_allocation import Allocator
from loko.topology.network import Hop, RoutedFlow, refuse_ends

_INSIDE: Final = " (inside)"
"""After the name of a switch: where its frames are once its CPU has handled them. No name has a space."""


def lab_graph(lab: Lab, exclusive: Exclusive) -> Graph:
    """The lab's links, both directions of a cable each; a switch is a link too, if it is exclusive."""
    links = []
    splits = exclusive is Exclusive.SWITCHES
    for node in (*lab.hosts, *lab.switches):
        tail = node + _INSIDE if splits and node in lab.switches else node
        links += [DirectedLink(tail, far.node, port) for port, far in lab.outgoing_cables(node)]
        if tail != node:
            links.append(DirectedLink(node, tail))
    return Graph(hosts=tuple(lab.hosts), links=tuple(links))


def switch_of(lab: Lab, link: DirectedLink) -> str:
    """The switch that frames leave by a link of its graph, or that they come to from a host."""
    name = link.tail.removesuffix(_INSIDE)
    return link.head if name in lab.hosts else name


def hops_of(lab: Lab, graph: Graph, path: Path) -> tuple[Hop, ...]:
    """The switches of a path, with the ports that frames leave by."""
    passed = (graph.links[link] for link in path)
    ends = ((link.tail.removesuffix(_INSIDE), link.port) for link in passed if link.port)
    return tuple(Hop(switch=name, output_port=port) for name, port in ends if name in lab.switches)


def path_of(graph: Graph, source: str, destination: str, hops: Sequence[Hop]) -> Path | None:
    """The path that crosses these switches and leaves them by these ports; None if it does not lead there."""
    if not hops:
        return None
    path: list[int] = []
    node = source
    for tail, port in [(source, 0), *((hop.switch, hop.output_port) for hop in hops)]:
        if node.removesuffix(_INSIDE) != tail:
            return None
        inside = node if node == source else node + _INSIDE
        for number in graph.outgoing.get(node, ()):
            if graph.links[number].head == inside:  # the switch is a link, too
                path.append(number)
                node = inside
                break
        onward = [
            number
            for number in graph.outgoing.get(node, ())
            if (
                graph.links[number].head == hops[0].switch
                if node == source
                else graph.links[number].port == port
            )
        ]
        if not onward:
            return None
        path.append(onward[0])
        node = graph.links[onward[0]].head
    return tuple(path) if node == destination else None


@dataclass(frozen=True, kw_only=True)
class ScheduledFlow:
    """A flow with its slot. It is a `Routed`: tables are made from it, as from an admitted flow."""

    timed: TimedFlow
    slot: int
    routed: RoutedFlow
    offset_ns: int
    """When in a base period it sends, and so in each period of its own."""
    every_ns: int
    link_bounds_ns: tuple[float, ...]
    """By link of its path: from the first bit that leaves the source until the last has passed the link."""

    @property
    def bound_ns(self) -> float:
        """From the first bit that leaves the source until the last has come to the destination."""
        return self.link_bounds_ns[-1]

    @property
    def path(self) -> tuple[Hop, ...]:
        """The switches that it crosses, in order."""
        return self.routed.path


@dataclass(frozen=True, kw_only=True)
class LabSchedule:
    """Who sends when, and on which path."""

    lab: Lab
    scheme: SchedulingScheme
    exclusive: Exclusive
    slots: int
    timing: CycleTiming
    scheduled: tuple[ScheduledFlow, ...]
    unscheduled: tuple[TimedFlow, ...]
    solution: ScheduleSolution
    entries: Mapping[str, tuple[FlowEntry, ...]]
    """Of each switch, the entries of the flows that cross it."""
    table_entries: int
    """How many entries a table may have: the slot is long enough for as many."""
    changes_per_s: float
    """How often each table may change while flows send: the slot is long enough for that, too."""
    openflow: OpenFlow
    """Of the switches' sessions, on which depends how long a table is searched and what a message costs."""

    @property
    def rate_limited_flows(self) -> tuple[ScheduledFlow, ...]:
        """Flows whose stated rate needs more than a frame each time that they may send."""
        return tuple(
            flow
            for flow in self.scheduled
            if flow.timed.requested_ns is not None and flow.every_ns > flow.timed.requested_ns
        )


@dataclass(frozen=True, kw_only=True)
class SchedulingOptions:
    """Options of a schedule; None leaves the choice to the program."""

    scheme: SchedulingScheme = SchedulingScheme.UNCONSTRAINED
    slots: int | None = None
    base_period_ns: int | None = None
    exclusive: Exclusive | None = None
    guard_ns: int = 0
    entries: int | None = None
    changes_per_s: float = 0.0
    """Of each table, while flows send; 0: tables stay as they are."""
    is_time_indexed: bool = False
    """Solve the paper's program instead of the quicker method."""
    is_thorough: bool = True
    """Whether the paper's program has the time that is left where the quicker search proves nothing."""
    seed: int = 0
    """Of the paths that S/FR draws."""
    openflow: OpenFlow = OpenFlow.V1_0


class NoSlotError(InputError):
    """The base period is too short for a single slot."""


def schedule(
    lab: Lab, flows: Sequence[TimedFlow], options: SchedulingOptions, solve: Solve, clock: TimeBudget
) -> LabSchedule:
    """Schedule flows on a lab.

    Raises `InputError` for whatever does not fit together, `NoSlotError` if a base period holds no slot.
    """
    refuse_unknown_hosts(lab, flows)
    frame_bytes = max(flow.frame_bytes for flow in flows)
    entries = _entries(lab, flows, options.entries)
    sizes = {flow.frame_bytes for flow in flows}
    frontiers = frontiers_of(
        lab, sizes, entries, changes_per_s=options.changes_per_s, openflow=options.openflow
    )
    exclusive = exclusive_of(lab, frontiers, frame_bytes, options.exclusive)
    graph = lab_graph(lab, exclusive)
    demands = tuple(SlotDemand(flow.id, flow.source, flow.destination) for flow in flows)
    shortest = None
    if options.scheme is not SchedulingScheme.UNCONSTRAINED:
        shortest = candidate_paths(SchedulingProblem(graph, demands, 1))
    crossed = crossing_times(lab, frontiers, frame_bytes, exclusive)
    timing, slots = _timing(
        flows, options, slot_ns(longest_ns(lab, graph, crossed, shortest), options.guard_ns)
    )
    refuse_overload(lab, frontiers, frame_bytes, exclusive, timing)
    problem = SchedulingProblem(graph, demands, slots)
    paths: Paths | None = shortest
    if shortest is not None and options.scheme is SchedulingScheme.FIXED:
        paths = random_paths(shortest, list(np.random.default_rng(options.seed).random(len(flows))))
    if options.is_time_indexed:
        solution = solve_time_indexed(problem, paths, solve, clock)
    else:
        solution = pack(problem, paths, solve, clock, is_thorough=options.is_thorough)
    scheduled = tuple(
        scheduled_flow(lab, graph, flow, solution.assignments[flow.id], timing=timing, crossed=crossed)
        for flow in flows
        if flow.id in solution.assignments
    )
    return LabSchedule(
        lab=lab,
        scheme=options.scheme,
        exclusive=exclusive,
        slots=slots,
        timing=timing,
        scheduled=scheduled,
        unscheduled=tuple(flow for flow in flows if flow.id not in solution.assignments),
        solution=solution,
        entries=tables(lab, scheduled, entries, "plan more with --entries, or schedule fewer flows"),
        table_entries=entries,
        changes_per_s=options.changes_per_s,
        openflow=options.openflow,
    )


def refuse_unknown_hosts(lab: Lab, flows: Sequence[TimedFlow]) -> None:
    """Raise `InputError` for a flow that does not lead from one host of the lab to another."""
    for flow in flows:
        try:
            refuse_ends(lab, flow.source, flow.destination)
        except InputError as error:
            raise InputError(f"flow '{flow.id}': {error}") from None


def frontiers_of(
    lab: Lab,
    frame_bytes: Iterable[int],
    entries: int,
    *,
    changes_per_s: float = 0.0,
    openflow: OpenFlow = OpenFlow.V1_0,
) -> Mapping[str, Frontier]:
    """Return the properties of each switch for frames of these sizes.

    Its own work is reserved, and what the driver sends: so many changes of its table, or a heartbeat alone.
    """
    sizes = tuple(sorted(set(frame_bytes)))
    scenario = loko_scenario(entries=entries, packet_sizes_bytes=sizes, openflow=openflow)
    return Allocator(lab, scenario, driver_traffic(changes_per_s)).frontiers()


def longest_ns(lab: Lab, graph: Graph, crossed: CrossingTimes, paths: Paths | None) -> float:
    """The longest that a frame may take on any of these paths; without `paths` they may lead anywhere."""
    if paths is None:  # a path without loops crosses each switch once at most
        return crossed.bound_ns(tuple(lab.switches))
    crossings = ([hop.switch for hop in hops_of(lab, graph, path)] for own in paths for path in own)
    return max(crossed.bound_ns(names) for names in crossings)


def _entries(lab: Lab, flows: Sequence[TimedFlow], wanted: int | None) -> int:
    """How many entries a table may have. The slot is as long as a frame needs that is compared with all."""
    limit = min(switch.profile.table.entries.value for switch in lab.switches.values())
    entries = max(EVALUATION_ENTRIES, min(len(flows), limit)) if wanted is None else wanted
    if entries > limit:
        raise InputError(f"{entries} entries planned, a table of {lab.name} holds {limit}; plan fewer")
    return entries


def exclusive_of(
    lab: Lab, frontiers: Mapping[str, Frontier], frame_bytes: int, wanted: Exclusive | None = None
) -> Exclusive:
    """Links, if the switches hold the frames that may meet in them; else switches, too.

    Raises `InputError` if that is not what is wanted, or if a switch does not hold a single frame.
    """
    small = switches_with_small_buffers(lab, frontiers, frame_bytes, Exclusive.LINKS)
    if not small:
        return wanted or Exclusive.LINKS
    if wanted is Exclusive.LINKS:
        raise InputError(
            f"--exclusive links: {small[0]} does not hold the frames of {frame_bytes} bytes that may meet in"
            " it in one slot; choose --exclusive switches, or smaller frames"
        )
    alone = switches_with_small_buffers(lab, frontiers, frame_bytes, Exclusive.SWITCHES)
    if alone:
        raise InputError(
            f"{alone[0]}: its buffer does not hold a frame of {frame_bytes} bytes; send smaller ones"
        )
    return Exclusive.SWITCHES


def refuse_overload(
    lab: Lab, frontiers: Mapping[str, Frontier], frame_bytes: int, exclusive: Exclusive, timing: CycleTiming
) -> None:
    """Raise `InputError` if a switch has no time for the frames of one slot after another."""
    busy = overloaded_switches(lab, frontiers, frame_bytes, exclusive, timing.slot_ns)
    if busy:
        raise InputError(
            f"{busy[0]}: changes of its table leave no time for the frames of every slot; allow for fewer"
            " with --changes-per-s, or lengthen --base-period-us"
        )


def _timing(
    flows: Sequence[TimedFlow], options: SchedulingOptions, shortest_slot_ns: int
) -> tuple[CycleTiming, int]:
    """The cycle, and its slots. Raises `InputError` if the base period does not hold them."""
    stated = [flow.period_ns for flow in flows if flow.period_ns is not None]
    base_ns = options.base_period_ns or (min(stated) if stated else None)
    slots = options.slots
    if base_ns is None:
        if slots is None:
            raise InputError("how many slots? Give --slots, --base-period-us, or flows with a period_us")
        base_ns = slots * shortest_slot_ns
    for flow in flows:
        flow.every(base_ns)
    held = base_ns // shortest_slot_ns
    if slots is None:
        slots = held
    if slots > held or held == 0:
        raise (InputError if held else NoSlotError)(
            f"a base period of {base_ns / 1e3:g} us holds {held} slots of {shortest_slot_ns / 1e3:g} us, not"
            f" {max(slots, 1)}; lengthen it with --base-period-us, or take fewer slots"
        )
    return CycleTiming(base_period_ns=base_ns, slot_ns=base_ns // slots, guard_ns=options.guard_ns), slots


def scheduled_flow(
    lab: Lab,
    graph: Graph,
    flow: TimedFlow,
    assignment: Assignment,
    *,
    timing: CycleTiming,
    crossed: CrossingTimes,
) -> ScheduledFlow:
    """A flow with what its slot and path mean on the lab. Raises `InputError` for a period that is none."""
    hops = hops_of(lab, graph, assignment.path)
    return ScheduledFlow(
        timed=flow,
        slot=assignment.slot,
        routed=RoutedFlow(flow.sent(timing.base_period_ns), hops),
        offset_ns=timing.offset_ns(assignment.slot),
        every_ns=flow.every(timing.base_period_ns),
        link_bounds_ns=crossed.link_bounds_ns([hop.switch for hop in hops]),
    )


def tables(
    lab: Lab, scheduled: Sequence[ScheduledFlow], entries: int, advice: str
) -> dict[str, tuple[FlowEntry, ...]]:
    """The entries of every switch. Raises `InputError` with this advice for more than a table may have."""
    entries_of: dict[str, list[FlowEntry]] = {name: [] for name in lab.switches}
    for flow in scheduled:
        for visit, entry in path_entries(lab, flow.routed):
            entries_of[visit.switch].append(entry)
    for name, table in entries_of.items():
        if len(table) > entries:
            raise InputError(
                f"{name}: {len(table)} scheduled flows cross it, its table is planned for {entries}; {advice}"
            )
    return {name: tuple(table) for name, table in entries_of.items()}
