"""Flows that come and go without moving others, and what that can cost (left to future work by the paper)."""

from __future__ import annotations

from collections import Counter
from itertools import count

from loko.document import InputError
from loko.schedule.graph import Graph
from loko.schedule.problem import (
    Assignment,
    SchedulingProblem,
    SchedulingScheme,
    SlotDemand,
    candidate_paths,
    refuse_unreachable,
)
from loko.schedule.timetable import Timetable


class IncrementalSchedule:
    """A schedule that stands: a flow that has a slot keeps it, with its path, until it leaves."""

    def __init__(self, graph: Graph, slots: int, scheme: SchedulingScheme) -> None:
        self._graph, self._slots, self._scheme = graph, slots, scheme
        self._table = Timetable(graph, slots)
        self._numbers: dict[str, int] = {}
        self._fresh = count()
        self._wanted: dict[str, SlotDemand] = {}
        """Everybody who asked and has not left, with a slot or without."""
        self._sends: Counter[str] = Counter()
        self._receives: Counter[str] = Counter()
        self._cables = (
            {host: len(graph.outgoing.get(host, ())) for host in graph.hosts},
            {host: len(graph.incoming.get(host, ())) for host in graph.hosts},
        )

    def restore(self, demand: SlotDemand, assignment: Assignment) -> None:
        """Record the slot and path that a flow already has.

        Raises `InputError` if another flow uses one of the links in that slot.
        """
        if not 0 <= assignment.slot < self._slots:
            raise InputError(
                f"flow '{demand.id}': there is no slot {assignment.slot} of {self._slots}; schedule anew"
            )
        others = self._table.conflicting_flows(assignment)
        if others:
            owner = next(flow for flow, number in self._numbers.items() if number in others)
            raise InputError(
                f"flow '{demand.id}': '{owner}' has one of its links in slot {assignment.slot}; schedule anew"
            )
        self._want(demand)
        self._table.put(self._numbers[demand.id], assignment)

    def add(self, demand: SlotDemand, draw: float = 0.0) -> Assignment | None:
        """The slot and path of a further flow; None if there is none without moving others.

        `draw` in [0, 1) chooses the path for S/FR. Raises `InputError` as `candidate_paths`.
        """
        problem = SchedulingProblem(self._graph, (demand,), self._slots)
        if self._scheme is SchedulingScheme.UNCONSTRAINED:
            refuse_unreachable(problem)
            assignment = self._table.first_anywhere(demand.source, demand.destination)
        else:
            own = candidate_paths(problem)[0]
            if self._scheme is SchedulingScheme.FIXED:
                own = [own[int(draw * len(own))]]
            assignment = self._table.first_on(own)
        self._want(demand)
        if assignment is not None:
            self._table.put(self._numbers[demand.id], assignment)
        return assignment

    def remove(self, flow: str) -> None:
        """Remove a flow. Raises `InputError` if it was never added."""
        demand = self._wanted.pop(flow, None)
        if demand is None:
            raise InputError(f"flow '{flow}': is not there; name one that is")
        number = self._numbers.pop(flow)
        if self._table.assignment(number) is not None:
            self._table.remove(number)
        self._sends[demand.source] -= 1
        self._receives[demand.destination] -= 1

    @property
    def assignments(self) -> dict[str, Assignment]:
        """The slot and path of every flow that has one."""
        assignments = ((flow, self._table.assignment(number)) for flow, number in self._numbers.items())
        return {flow: assignment for flow, assignment in assignments if assignment is not None}

    def used_slots(self, link: int) -> int:
        """By the number of a link, how many of its slots are in use."""
        return self._table.used_slots(link)

    @property
    def upper_bound(self) -> int:
        """No schedule of all that asked has more flows: a host's cable carries one flow a slot each way."""
        return min(
            sum(min(asked, self._slots * cables[host]) for host, asked in wanted.items())
            for wanted, cables in zip((self._sends, self._receives), self._cables, strict=True)
        )

    @property
    def optimality_gap(self) -> int:
        """How many flows more a schedule might have in which all may be moved: the bound of the cost."""
        return self.upper_bound - len(self._table)

    def _want(self, demand: SlotDemand) -> None:
        if demand.id in self._wanted:
            raise InputError(f"flow '{demand.id}': exists already; give another id")
        self._wanted[demand.id] = demand
        self._numbers[demand.id] = next(self._fresh)
        self._sends[demand.source] += 1
        self._receives[demand.destination] += 1
