"""The largest set of flows that fits a lab, whatever the order in which they are requested.

An integer program proposes flows and their paths that together keep within every shared capacity. The
admission control decides. Each refusal becomes a row of the program: certain flows do not fit together,
whatever else is admitted. So each row holds for every set that fits, the program is never stricter than the
admission, and no set that fits is larger than the program's bound.

Flows that differ in id and ports alone are of one kind. The program counts how many of each kind fit.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from types import MappingProxyType
from typing import Final, NamedTuple

from loko.admission import Admission, Admitted, Refusal, ResourceDemand
from loko.admission.planning import Plan, plan
from loko.admission.port_queues import PortAdmission
from loko.admission.port_queues.vlans import vlans_of
from loko.admission.routing import admit, on_path, paths
from loko.lazy_mapping import LazyMapping
from loko.solvers.program import IntegerProgram, Solve, TimeBudget
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.topology.network import Hop

MOST_PATHS: Final = 16
"""The most paths of a flow that are considered, the shortest first; rings and trees have one or two."""
_WHOLE: Final = 10_000_000
"""A capacity in units of a row. Demands are rounded down to whole units, so that no row is too strict."""
_ROUNDING: Final = 1e-6
"""How much too small a solver's bound may be."""
_CONFLICTS_AT_ONCE: Final = 8
"""The most refusals of one proposal that become rows."""

Path = tuple[Hop, ...]


@dataclass(frozen=True, kw_only=True)
class LargestSet:
    """The largest set that was found, and what is proven about others."""

    plan: Plan
    """Flows of it that the admission control grants, and its refusals of the rest."""
    in_order: int
    """How many flows fit if they are requested in the given order."""
    bound: int
    """An upper bound: no set with more flows fits."""
    is_by_few_paths: bool
    """Whether some flow has more than `most_paths` paths; the bound says nothing about the others."""
    most_paths: int
    """The most paths of a flow that are considered."""
    lacks_vlans: bool = False
    """Whether the search ended as VLANs were missing: the bound knows nothing of them."""

    @property
    def is_proven(self) -> bool:
        """Whether no larger set fits."""
        return len(self.plan.accepted) == self.bound

    def as_values(self) -> dict[str, object]:
        """Return the proven result as plain values, for JSON."""
        return {
            "is_proven": self.is_proven,
            "bound": self.bound,
            "in_order": self.in_order,
            "is_by_few_paths": self.is_by_few_paths,
            "lacks_vlans": self.lacks_vlans,
        }

    def __str__(self) -> str:
        """Describe the result in one line."""
        if not self.plan.refused:
            return f"{self.plan.fit} fit: all of them"
        proven = "no larger set fits" if self.is_proven else f"no set of more than {self.bound:,} fits"
        if self.is_by_few_paths:
            proven += f" on the {self.most_paths} shortest paths of each flow"
        more = "" if self.is_proven else "; with a longer --time-limit more may be found or excluded"
        if self.lacks_vlans and more:
            more = "; VLANs are missing, and in another order they may be enough for more"
        return f"{self.plan.fit} fit, and {proven}; {self.in_order:,} in the order asked for{more}"


def largest(
    lab: Lab,
    flows: Sequence[Flow],
    admission: Admission,
    *,
    solve: Solve,
    clock: TimeBudget,
    deadlines_ns: Mapping[str, float] = MappingProxyType({}),
) -> LargestSet:
    """Look for the largest set until it is proven, or until the clock has run out.

    The result is never smaller than what fits in the given order; if no set is larger, it is just that. The
    admission control must be monotonic: if a set fits, so does every part of it, and so does the set with one
    flow replaced by one of its class that asks for less. It is left holding the flows of the answer. Raises
    `InputError` as `plan` does.
    """
    search = _SetSearch(lab, flows, admission, deadlines_ns)
    search.improve(solve, clock)
    return LargestSet(
        plan=search.plan(),
        in_order=search.in_order,
        bound=search.bound,
        is_by_few_paths=search.is_by_few_paths,
        most_paths=MOST_PATHS,
        lacks_vlans=search.lacks_vlans,
    )


def conflicting(
    admission: Admission, flow: Flow, path: Path, granted: Sequence[tuple[Flow, Path]]
) -> list[int]:
    """Return the places of granted flows that stand in the way of a refused one, none of them needlessly.

    Those that come first are left out if possible. The admission control holds the granted flows again then.
    """
    needed = []
    for place, (other, other_path) in enumerate(granted):
        admission.cancel(other.id)
        if isinstance(admission.check(flow, path), Admitted):
            admission.request(other, other_path)
            needed.append(place)
    for other, other_path in granted:
        if other.id not in admission.admitted:
            admission.request(other, other_path)
    return needed


@contextmanager
def without_vlans(admission: Admission) -> Iterator[None]:
    """Empty an admission control, and let it take VLANs for unlimited meanwhile.

    A flow that it refuses then is refused beside any other flows, too; see `PortAdmission.without_vlans`.
    """
    admission.release_all()
    with admission.without_vlans() if isinstance(admission, PortAdmission) else nullcontext():
        yield


class _Column(NamedTuple):
    """Flows of one kind on one path. A variable of the program counts how many of them are admitted."""

    flows: Sequence[Flow]
    """All flows of the kind."""
    path: Path
    demands: tuple[ResourceDemand, ...]
    """Demand of each flow."""

    @property
    def path_and_kind(self) -> tuple[str, Path, int, int]:
        """Key of flows that only rate and burst tell apart."""
        first = self.flows[0]
        return first.source, self.path, first.frame_bytes, first.traffic_class

    def asks_for_all_of(self, other: _Column) -> bool:
        """Return whether a flow of this column asks for no less of anything than a flow of `other`."""
        mine, others = self.flows[0], other.flows[0]
        return (
            self.path_and_kind == other.path_and_kind
            and mine.rate_bps >= others.rate_bps
            and mine.burst_bytes >= others.burst_bytes
        )


def _greatest_part(column: _Column) -> float:
    """Return the largest fraction of a capacity that one of the flows takes."""
    return max((demand.amount / demand.capacity for demand in column.demands), default=0.0)


class _SetSearch:
    """A program that learns from what the admission refuses, and the best set so far."""

    def __init__(
        self,
        lab: Lab,
        flows: Sequence[Flow],
        admission: Admission,
        deadlines_ns: Mapping[str, float],
    ) -> None:
        self._lab, self._flows, self._admission = lab, flows, admission
        self._deadlines_ns = deadlines_ns
        self._in_order = self._plan(flows)
        self._best = {accepted.flow.id: accepted.path for accepted in self._in_order.accepted}
        self.in_order = len(self._best)
        self.bound = len(flows)
        self.is_by_few_paths = self.lacks_vlans = False
        self._ways: LazyMapping[tuple[str, str], list[Path]] = LazyMapping(self._find_ways)
        """Paths by source and destination."""
        self._program = IntegerProgram()
        self._columns: list[_Column] = []
        """In the order of the program's first variables."""
        self._capped: dict[tuple[int, int], int] = {}
        """By column and count: the variable that is at least the smaller of the two numbers."""

    def improve(self, solve: Solve, clock: TimeBudget) -> None:
        """Propose sets and learn from refusals, until no larger set is possible or time is up."""
        if not self._in_order.refused:
            return
        self._write_program()
        is_first = True
        while len(self._best) < self.bound and clock.remaining_s > 0:
            answer = solve(self._program, time_limit_s=clock.remaining_s)
            self.bound = min(self.bound, math.floor(answer.bound + _ROUNDING))
            if answer.values is None:
                return
            proposed = self._proposed(answer.values)
            with without_vlans(self._admission):
                granted = self._learn(proposed, clock)
            is_refused = len(granted) < len(proposed)
            if is_refused or vlans_of(self._lab):
                granted = self._filled_up(granted)
                if is_first:
                    self._take(self._filled_up({}))
                    is_first = False
            self._take(granted)
            if not is_refused and len(self._best) < len(proposed):
                self.lacks_vlans = True  # No row says so: the same set would be proposed again.
                return

    def plan(self) -> Plan:
        """Return the plan that requests the best set first, then the other flows.

        The best set is routed anew if all of it fits that way; otherwise it keeps the paths of the search.
        """
        best = self._best
        if len(best) == self.in_order:
            return self._plan(self._flows)
        flows = sorted(self._flows, key=lambda flow: flow.id not in best)
        self._admission.release_all()
        is_free = all(isinstance(self._admit(flow), Admitted) for flow in flows[: len(best)])
        found = self._plan(flows, {} if is_free else best)
        # In this order VLANs may be missing.
        return found if len(found.accepted) > self.in_order else self._plan(self._flows)

    def _plan(self, flows: Sequence[Flow], paths_of: Mapping[str, Path] = MappingProxyType({})) -> Plan:
        self._admission.release_all()
        return plan(self._lab, flows, self._admission, paths_of, self._deadlines_ns)

    def _admit(self, flow: Flow) -> Admitted | Refusal:
        return admit(self._lab, self._admission, flow, self._deadlines_ns.get(flow.id))

    def _take(self, granted: Mapping[str, Path]) -> None:
        if len(granted) > len(self._best):
            self._best = dict(granted)

    def _filled_up(self, granted: Mapping[str, Path]) -> dict[str, Path]:
        """Return the granted paths with those of all other flows that fit, the smallest flows first."""
        admission, smallest_first = self._admission, sorted(self._columns, key=_greatest_part)
        admission.release_all()
        for column in smallest_first:
            for flow in column.flows:
                if flow.id in granted and granted[flow.id] == column.path:
                    admission.request(flow, column.path)
        for column in smallest_first:
            for flow in column.flows:
                if flow.id not in admission.admitted and isinstance(self._admit(flow), Refusal):
                    break
        return {flow_id: admitted.path for flow_id, admitted in admission.admitted.items()}

    def _write_program(self) -> None:
        rows: dict[tuple[str, str], list[tuple[int, ResourceDemand]]] = {}
        for columns in self._needed(list(self._each_kind())):
            first, top = len(self._columns), len(columns[0].flows)
            for number, column in enumerate(columns, first):
                self._program.variable(gain=1, top=top)
                for demand in column.demands:
                    rows.setdefault((demand.server, demand.quantity), []).append((number, demand))
            self._columns += columns
            if len(columns) > 1:
                self._program.row("as many as there are", range(first, len(self._columns)), high=top)
        for demands in rows.values():
            parts = {number: int(_WHOLE * demand.amount / demand.capacity) for number, demand in demands}
            self._program.row("capacity", parts.keys(), parts.values(), high=_WHOLE)

    def _each_kind(self) -> Iterator[list[_Column]]:
        """Yield the columns of each kind: the paths on which one of its flows, alone, is granted."""
        kinds: dict[tuple[object, ...], list[Flow]] = {}
        for flow in self._flows:
            key = (flow.source, flow.destination, *flow[5:], self._deadlines_ns.get(flow.id))
            kinds.setdefault(key, []).append(flow)
        admission = self._admission
        admission.release_all()
        for flows in kinds.values():
            first = flows[0]
            ways = dict.fromkeys(self._ways[first.source, first.destination])
            ways |= dict.fromkeys(self._best[flow.id] for flow in flows if flow.id in self._best)
            columns = []
            for path in ways:
                answer = on_path(admission, path, self._deadlines_ns.get(first.id), first)
                if isinstance(answer, Admitted):
                    demands = tuple(admission.demands(answer))
                    columns.append(_Column(flows, path, demands))
            if columns:
                yield columns

    def _needed(self, kinds: Sequence[list[_Column]]) -> Iterator[list[_Column]]:
        """Yield the kinds that a largest set may need.

        A flow can be replaced by one of its class between the same hosts that asks for less. So a kind is not
        needed if there are as many smaller flows as fit together at most.
        """
        alike: dict[tuple[object, ...], list[list[_Column]]] = {}
        for columns in kinds:
            first = columns[0].flows[0]
            deadline_ns = self._deadlines_ns.get(first.id)
            asked = first.frame_bytes, deadline_ns, first.traffic_class
            alike.setdefault((first.source, first.destination, *asked), []).append(columns)
        for group in alike.values():
            most = self._most_together(group)
            smaller: list[float] = []
            for columns in sorted(group, key=lambda columns: columns[0].flows[0][5:7]):
                flows = columns[0].flows
                if bisect_right(smaller, flows[0].burst_bytes) < most:
                    yield columns
                for _ in flows[:most]:
                    insort(smaller, flows[0].burst_bytes)

    @staticmethod
    def _most_together(group: Iterable[list[_Column]]) -> int:
        """Return an upper bound on how many flows of a group fit together, whichever they are.

        On every path, it counts how many fit if each asks for the least that any of them asks for.
        """
        least: dict[tuple[Path, str, str], tuple[float, float]] = {}
        for column in chain.from_iterable(group):
            for demand in column.demands:
                key = column.path, demand.server, demand.quantity
                least[key] = min(least.get(key, (math.inf, 0.0)), (demand.amount, demand.capacity))
        most: dict[Path, int] = {}
        for (path, _, _), (amount, capacity) in least.items():
            count = math.floor(capacity / amount * (1 + _ROUNDING)) if amount else sys.maxsize
            most[path] = min(most.get(path, sys.maxsize), count)
        return sum(most.values())

    def _find_ways(self, ends: tuple[str, str]) -> list[Path]:
        ways = list(islice(paths(self._lab, *ends), MOST_PATHS + 1))
        if len(ways) > MOST_PATHS:
            self.is_by_few_paths = True
        return ways[:MOST_PATHS]

    def _proposed(self, values: Sequence[int]) -> list[tuple[Flow, int]]:
        """Return the flows of a proposal, each with the number of its column."""
        left: dict[int, Sequence[Flow]] = {}
        proposed = []
        for number, column in enumerate(self._columns):
            flows = left.get(id(column.flows), column.flows)
            proposed += [(flow, number) for flow in flows[: values[number]]]
            left[id(column.flows)] = flows[values[number] :]
        return proposed

    def _learn(self, proposed: Sequence[tuple[Flow, int]], clock: TimeBudget) -> dict[str, Path]:
        """Request a proposal from an empty admission control, and return the granted paths by flow id.

        Refusals become rows: the refused flow does not fit together with those that stand in its way.
        """
        admission, columns = self._admission, self._columns
        granted: list[tuple[Flow, int]] = []
        refused: list[tuple[Flow, int]] = []
        for flow, number in proposed:
            answer = admission.request(flow, columns[number].path)
            (granted if isinstance(answer, Admitted) else refused).append((flow, number))
        granted.sort(key=lambda admitted: _greatest_part(columns[admitted[1]]))
        for flow, number in refused[:_CONFLICTS_AT_ONCE]:
            standing = [(other, columns[column].path) for other, column in granted]
            in_the_way = conflicting(admission, flow, columns[number].path, standing)
            self._exclude(Counter([number, *(granted[place][1] for place in in_the_way)]))
            if not clock.remaining_s:
                break
        return {flow.id: columns[number].path for flow, number in granted}

    def _exclude(self, conflict: Counter[int]) -> None:
        """Add a row that forbids a conflict, given as the number of its flows in each column.

        If all have the same way, a flow that asks for as much as each of them may replace any of them (the
        extended cover inequality of a knapsack: Balas 1975).
        """
        columns, counted = self._columns, dict(conflict)
        for number, column in enumerate(columns):
            if all(column.asks_for_all_of(columns[member]) for member in conflict):
                counted[number] = len(column.flows)
        variables = [self._at_least(number, count) for number, count in counted.items()]
        self._program.row("conflict", variables, high=conflict.total() - 1)

    def _at_least(self, number: int, count: int) -> int:
        """Return a variable that is no less than the smaller of a column's variable and `count`."""
        top = len(self._columns[number].flows)
        if count >= top:
            return number
        if (number, count) not in self._capped:
            program = self._program
            capped, is_full = program.variable(top=count), program.variable()
            program.row("capped", (number, capped, is_full), (1, -1, count - top), high=0)
            program.row("full", (is_full, capped), (count, -1), high=0)
            self._capped[number, count] = capped
        return self._capped[number, count]
