"""A lab's schedule that stands while flows come and go one by one, as a service keeps it (docs/service.md).

No flow is ever moved, and what was promised to one never changes: frame sizes, table sizes and slots are
those that the schedule began with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from loko.document import InputError
from loko.schedule.graph import Path
from loko.schedule.incremental import IncrementalSchedule
from loko.schedule.lab_schedule import (
    ScheduledFlow,
    exclusive_of,
    frontiers_of,
    hops_of,
    lab_graph,
    longest_ns,
    path_of,
    refuse_overload,
    refuse_unknown_hosts,
    scheduled_flow,
    switch_of,
)
from loko.schedule.problem import Assignment, SchedulingScheme, SlotDemand
from loko.schedule.saved_schedule import SavedSchedule
from loko.schedule.timed_flow import TimedFlow
from loko.schedule.timing import crossing_times, slot_ns
from loko.switch_model.flow import DuplicateFlowError, FiveTuple
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab
from loko.topology.network import Hop
from loko.units import NS_PER_US


@dataclass(frozen=True, kw_only=True)
class NoFreeSlot:
    """Why a flow gets no slot without moving others."""

    switch: str
    quantity: str
    """`slots`: no slot is free on all links of a path. `entries`: the table has no room for it."""
    allowed: int
    """So many there are, and all are used: in each slot some link of every path is taken."""
    optimality_gap: int | None = None
    """Of slots: how many flows more a schedule of all might have in which all may be moved."""


class IncrementalLabSchedule:
    """The slots of a lab's schedule, and the flows that have them."""

    def __init__(
        self,
        lab: Lab,
        kept: SavedSchedule,
        *,
        frame_bytes: Iterable[int],
        openflow: OpenFlow = OpenFlow.V1_0,
        seed: int = 0,
    ) -> None:
        """The cycle of a schedule, without its flows. Flows will have frames of these sizes, and no others.

        `seed` is that of the paths that S/FR draws. Raises `InputError` if the slots are not long enough for
        the frames, for the OpenFlow version, or for so many changes of tables.
        """
        self.lab, self.scheme, self.slots = lab, kept.scheme, kept.slots
        self.timing, self.table_entries = kept.timing, kept.table_entries
        self.sizes = tuple(sorted(set(frame_bytes)))
        self._seed = seed
        frontiers = frontiers_of(
            lab, self.sizes, kept.table_entries, changes_per_s=kept.changes_per_s, openflow=openflow
        )
        self.exclusive = exclusive_of(lab, frontiers, self.sizes[-1], kept.exclusive)
        refuse_overload(lab, frontiers, self.sizes[-1], self.exclusive, self.timing)
        self._crossed = crossing_times(lab, frontiers, self.sizes[-1], self.exclusive)
        self._graph = lab_graph(lab, self.exclusive)
        self._standing = IncrementalSchedule(self._graph, kept.slots, kept.scheme)
        self._links_of: dict[str, list[int]] = {name: [] for name in lab.switches}
        for number, link in enumerate(self._graph.links):
            if link.tail not in lab.hosts:
                self._links_of[switch_of(lab, link)].append(number)
        self._entries: Counter[str] = Counter()
        self._scheduled: dict[str, ScheduledFlow] = {}
        self._five_tuples: dict[FiveTuple, str] = {}
        if kept.scheme is SchedulingScheme.UNCONSTRAINED:
            self._refuse_longer(longest_ns(lab, self._graph, self._crossed, None), "the longest path")

    def restore(self, flow: TimedFlow, slot: int, hops: Sequence[Hop]) -> ScheduledFlow:
        """Record the slot and path that a flow already has.

        Raises `InputError` if it does not fit beside the others.
        """
        self._refuse(flow)
        path = path_of(self._graph, flow.source, flow.destination, hops)
        if path is None:
            raise InputError(
                f"flow '{flow.id}': its path does not lead from {flow.source} to {flow.destination};"
                " schedule anew"
            )
        full = self._full_table(hops)
        if full is not None:
            raise InputError(
                f"flow '{flow.id}': the table of {full.switch} is planned for {full.allowed} entries, and is"
                " full; schedule fewer flows"
            )
        assignment = Assignment(slot=slot, path=path)
        scheduled = self._made(flow, assignment)
        self._standing.restore(_demand(flow), assignment)
        return self._note(scheduled)

    def add(self, flow: TimedFlow) -> ScheduledFlow | NoFreeSlot:
        """The first slot that is free on a path of a further flow, or why it gets none.

        Raises `InputError` for hosts, frames or a period that the schedule does not know, or if no path leads
        there; `DuplicateFlowError` if the id, or hosts and ports, are in use.
        """
        self._refuse(flow)
        assignment = self._standing.add(_demand(flow), self._draw(flow.id))
        try:
            if assignment is None:
                return self._no_slot(flow)
            full = self._full_table(hops_of(self.lab, self._graph, assignment.path))
            if full is None:
                return self._note(self._made(flow, assignment))
            return full
        finally:
            if flow.id not in self._scheduled:
                self._standing.remove(flow.id)

    def remove(self, flow_id: str) -> None:
        """Remove a flow of which no frame is on its way any more. Raises `InputError` if it has no slot."""
        self._standing.remove(flow_id)
        scheduled = self._scheduled.pop(flow_id)
        del self._five_tuples[scheduled.timed[1:5]]
        self._entries.subtract(hop.switch for hop in scheduled.path)

    @property
    def optimality_gap(self) -> int:
        """How many flows more a schedule of the same flows might have in which all may be moved."""
        return self._standing.optimality_gap

    def entries(self, switch: str) -> int:
        """How many entries of a switch's table belong to flows."""
        return self._entries[switch]

    def busy_slots(self, switch: str) -> int:
        """How many slots are in use on the busiest link that leaves a switch, or inside it."""
        return max((self._standing.used_slots(link) for link in self._links_of[switch]), default=0)

    def delay_ns(self, switch: str) -> float:
        """The longest time that a scheduled frame can spend in a switch."""
        return self._crossed.switch_ns[switch]

    def delays_ns(self, path: Sequence[Hop]) -> list[float]:
        """The parts of a path's bound: of each switch with the cable behind it; the host's with the first."""
        cable_ns = self._crossed.cable_ns
        parts = [self._crossed.switch_ns[hop.switch] + cable_ns[hop.switch] for hop in path]
        if parts:
            parts[0] += cable_ns[path[0].switch]
        return parts

    def _refuse(self, flow: TimedFlow) -> None:
        """Refuse a flow that is wrong by itself, or whose id or ports another flow has."""
        refuse_unknown_hosts(self.lab, [flow])
        if flow.id in self._scheduled:
            raise DuplicateFlowError(f"flow id '{flow.id}' is used twice; rename one")
        other = self._five_tuples.get(flow[1:5])
        if other is not None:
            raise DuplicateFlowError(
                f"flows '{other}' and '{flow.id}' have the same hosts and ports; change a port"
            )
        if flow.frame_bytes not in self.sizes:
            sizes = ", ".join(map(str, self.sizes))
            raise InputError(
                f"flow '{flow.id}': its frames have {flow.frame_bytes} bytes, the slots are planned for"
                f" {sizes}; send such frames, or schedule anew"
            )
        flow.every(self.timing.base_period_ns)

    def _draw(self, flow_id: str) -> float:
        """Return the number in [0, 1) that chooses a flow's path.

        It depends on the seed and the flow's id only.
        """
        return float(np.random.default_rng([self._seed, *flow_id.encode()]).random())

    def _made(self, flow: TimedFlow, assignment: Assignment) -> ScheduledFlow:
        scheduled = scheduled_flow(
            self.lab, self._graph, flow, assignment, timing=self.timing, crossed=self._crossed
        )
        self._refuse_longer(scheduled.bound_ns, f"the path of flow '{flow.id}'")
        return scheduled

    def _note(self, scheduled: ScheduledFlow) -> ScheduledFlow:
        self._scheduled[scheduled.timed.id] = scheduled
        self._five_tuples[scheduled.timed[1:5]] = scheduled.timed.id
        self._entries.update(hop.switch for hop in scheduled.path)
        return scheduled

    def _refuse_longer(self, bound_ns: float, what: str) -> None:
        needed_ns = slot_ns(bound_ns, self.timing.guard_ns)
        if needed_ns > self.timing.slot_ns:
            raise InputError(
                f"slots of {needed_ns / NS_PER_US:g} us are needed for {what}, those of the schedule have"
                f" {self.timing.slot_ns / NS_PER_US:g} us; schedule anew, with a longer --base-period-us"
            )

    def _full_table(self, hops: Iterable[Hop]) -> NoFreeSlot | None:
        for hop in hops:
            if self._entries[hop.switch] >= self.table_entries:
                return NoFreeSlot(switch=hop.switch, quantity="entries", allowed=self.table_entries)
        return None

    def _no_slot(self, flow: TimedFlow) -> NoFreeSlot:
        shortest: Path = self._graph.shortest_paths(flow.source, flow.destination)[0]
        fullest = max(shortest, key=self._standing.used_slots)
        return NoFreeSlot(
            switch=switch_of(self.lab, self._graph.links[fullest]),
            quantity="slots",
            allowed=self.slots,
            optimality_gap=self.optimality_gap,
        )


def _demand(flow: TimedFlow) -> SlotDemand:
    return SlotDemand(flow.id, flow.source, flow.destination)
