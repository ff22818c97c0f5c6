"""Schedules that are quicker to find than by the time-indexed programs, and proven as well as they are.

All slots are alike, so a program over slots has every schedule as often as slots can be exchanged. Here slots
are left out of what is proven, and programs out of what is found (docs/tssdn.md):

- a *bound*: as many flows as links could carry if a link held its slots' worth of flows in any order;
- a *schedule*: flows are put where they fit, and then moved by a search that keeps what it has (tabu search,
  as PARTIALCOL does for colourings: Bloechliger and Zufferey, Computers & Operations Research 35(3), 2008).

Where both meet, the schedule is optimal. Where they do not, the time-indexed program has the rest of the
time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from loko.schedule.graph import Path
from loko.schedule.problem import Assignment, ScheduleSolution, SchedulingProblem, refuse_unreachable
from loko.schedule.time_indexed import TimeIndexedProgram, fixed_paths, path_sets, unconstrained
from loko.schedule.timetable import Timetable
from loko.solvers.program import IntegerProgram, Solve, SolverResult, TimeBudget

Paths = Sequence[Sequence[Path]]
"""Of each flow, those that it may use."""


class LpRelaxation:
    """The relaxation: each link carries at most as many flows as there are slots. No slots, no symmetry.

    Every schedule keeps this, so no schedule has more flows than its optimum.

    Flows that may go anywhere are counted together if they begin at one switch: so many on a link. What is
    carried falls apart into paths again (`routes`).
    """

    def __init__(self, problem: SchedulingProblem, paths: Paths | None) -> None:
        self.program = IntegerProgram()
        self._problem = problem
        self._flows = [self.program.variable(1) for _ in problem.demands]
        """By flow, the variable that says whether it is carried."""
        self._paths: list[dict[int, Path]] = []
        """By flow, the variables of its paths, if they are given."""
        self._links: dict[str, dict[int, int]] = {}
        """By the node where flows begin, the variables of links, by link, if no paths are given."""
        self._carried: dict[int, list[int]] = {}
        """By link, the variables that load it."""
        if paths is None:
            self._anywhere()
        else:
            for flow, own in zip(self._flows, paths, strict=True):
                self._on(flow, own)
        for load in self._carried.values():
            if sum(self.program.tops[variable] for variable in load) > problem.slots:
                self.program.row("slots of a link", load, high=problem.slots)

    def _on(self, flow: int, paths: Sequence[Path]) -> None:
        own = {self.program.variable(): path for path in paths}
        self.program.row("one path", [*own, flow], [1] * len(own) + [-1], low=0, high=0)
        for variable, path in own.items():
            for link in path:
                self._carried.setdefault(link, []).append(variable)
        self._paths.append(own)

    def _anywhere(self) -> None:
        graph = self._problem.graph
        begins: dict[str, list[int]] = {}
        for number, demand in enumerate(self._problem.demands):
            first, begin, _, last = graph.ends(demand.source, demand.destination)
            begins.setdefault(begin, []).append(number)
            for link in (first, last):
                if link is not None:
                    self._carried.setdefault(link, []).append(self._flows[number])
        for begin, numbers in begins.items():
            self._links[begin] = self._together(begin, numbers)

    def _together(self, begin: str, numbers: Sequence[int]) -> dict[int, int]:
        """Count together the flows that begin at one node, with a variable for each link.

        A row for each node says that what comes in goes on or ends there.
        """
        graph, program, demands = self._problem.graph, self.program, self._problem.demands
        ends: dict[str, list[int]] = {}
        for number in numbers:
            end = graph.ends(demands[number].source, demands[number].destination)[2]
            if end != begin:
                ends.setdefault(end, []).append(self._flows[number])
        away = {flow for flows in ends.values() for flow in flows}
        top = min(len(numbers), self._problem.slots)
        hosts = set(graph.hosts)
        on = {}
        for link, (tail, head, _) in enumerate(graph.links):
            if head != begin and (tail not in hosts or tail == begin) and (head not in hosts or head in ends):
                on[link] = program.variable(top=top)
                self._carried.setdefault(link, []).append(on[link])
        for node in graph.nodes:
            coming = [on[link] for link in graph.incoming.get(node, ()) if link in on]
            leaving = [on[link] for link in graph.outgoing.get(node, ()) if link in on]
            begun = sorted(away) if node == begin else []
            ended = ends.get(node, [])
            if node in hosts and node not in ends and node != begin:
                continue
            terms = coming + leaving + begun + ended
            factors = [1] * len(coming) + [-1] * len(leaving) + [1] * len(begun) + [-1] * len(ended)
            if terms:
                program.row("goes on or ends", terms, factors, low=0, high=0)
        return on

    def prefer(self, gains: Sequence[int]) -> None:
        """Among the most flows, prefer those of more gain, and short paths.

        A gain is at least 0; all together, and all paths, count less than one flow.
        """
        links = len(self._problem.graph.links) * len(self._flows)
        weight = (sum(gains) + 1) * (links + 1)
        self.program.tolerance = weight / 2  # as many flows as can be; the rest is a preference
        for flow, gain in zip(self._flows, gains, strict=True):
            self.program.gains[flow] = weight + gain * (links + 1)
        for own in self._paths:
            for variable, path in own.items():
                self.program.gains[variable] = -len(path)
        for on in self._links.values():
            for variable in on.values():
                self.program.gains[variable] = -1

    def routes(self, values: Sequence[int]) -> dict[int, Path]:
        """The flows that are carried, and their paths."""
        carried = [number for number, flow in enumerate(self._flows) if values[flow]]
        if self._paths:
            return {
                number: next(path for variable, path in self._paths[number].items() if values[variable])
                for number in carried
            }
        graph = self._problem.graph
        loads = {
            begin: {link: values[variable] for link, variable in on.items() if values[variable]}
            for begin, on in self._links.items()
        }
        paths: dict[int, Path] = {}
        for number in carried:
            demand = self._problem.demands[number]
            first, begin, _, last = graph.ends(demand.source, demand.destination)
            fixed = [link for link in (first, last) if link is not None]
            path = graph.path_within(demand.source, demand.destination, [*fixed, *loads[begin]])
            assert path is not None, "what begins goes on or ends"
            for link in path:
                if link not in fixed:
                    loads[begin][link] -= 1
                    if not loads[begin][link]:
                        del loads[begin][link]
            paths[number] = path
        return paths


_PATIENCE: Final = 3_000
"""Moves in a row by which no further flow finds a slot, after which the search gives up; at least."""
_PATIENCE_A_FLOW: Final = 20
"""Paths of each flow, where there are several."""
_MOVES_AT_ONCE: Final = 64
"""Moves between two looks at the clock."""
_ROUNDS: Final = 8
"""Choices of flows that are tried, before the time-indexed program has to decide."""
_MOST_VARIABLES: Final = 60_000
"""Of a time-indexed program that is worth the attempt."""
_ROUNDING: Final = 1e-6
"""Error by which a solver's bound may be too small."""
_NO_LINK: Final = "no link holds more flows than slots"
_SHARE: Final = 0.3
"""Of the time that is left, for one program at most."""


def pack(
    problem: SchedulingProblem,
    paths: Paths | None,
    solve: Solve,
    clock: TimeBudget,
    *,
    seed: int = 0,
    start: Mapping[str, Assignment] = MappingProxyType({}),
    is_thorough: bool = True,
) -> ScheduleSolution:
    """The best schedule that is found in time, with a proven bound; without `paths` flows may go anywhere.

    It begins with `start`, a schedule of some of the flows. If it `is_thorough`, the time-indexed program has
    the rest of the time where the bound is not met. Deterministic, unless the time ends it. Raises
    `InputError` as the solver, or if no path leads to a destination.
    """
    count = len(problem.demands)
    refuse_unreachable(problem)
    search = SlotSearch(problem, paths, seed=seed)
    search.fill(range(count))
    if len(start) > len(search.best):
        search.restart(
            {number: start[demand.id] for number, demand in enumerate(problem.demands) if demand.id in start}
        )
    if len(search.best) == count:
        return _solution(problem, search, count, "every flow has a slot")
    loads = LpRelaxation(problem, paths)
    answer = solve(loads.program, time_limit_s=max(clock.remaining_s * _SHARE, 0.1))
    bound, why = _most(problem, answer), _NO_LINK
    chance = np.random.default_rng(seed)
    for attempt in range(_ROUNDS):
        if len(search.best) == bound or answer.values is None or not clock.remaining_s:
            break
        _around(search, loads.routes(answer.values), bound, clock, seed=attempt)
        if len(search.best) < bound:
            loads.prefer([int(gain) for gain in chance.integers(0, 4, count)])
            answer = solve(loads.program, time_limit_s=max(clock.remaining_s * _SHARE, 0.1))
    if is_thorough and len(search.best) < bound and clock.remaining_s:
        proven = _solve_program(search, solve, clock)
        if proven < bound:
            bound, why = proven, "the time-indexed program"
    return _solution(problem, search, bound, why)


def most_flows(
    problem: SchedulingProblem, paths: Paths | None, solve: Solve, clock: TimeBudget
) -> tuple[int, str]:
    """How many flows a schedule can have at most, and why. Raises `InputError` as the solver."""
    return _most(
        problem, solve(LpRelaxation(problem, paths).program, time_limit_s=max(clock.remaining_s, 0.1))
    ), _NO_LINK


def _most(problem: SchedulingProblem, answer: SolverResult) -> int:
    return math.floor(min(len(problem.demands), answer.bound + _ROUNDING))


def time_indexed_program(problem: SchedulingProblem, paths: Paths | None) -> TimeIndexedProgram:
    """The paper's program for these paths: S/UR without any, S/FR with one a flow, else S/PR."""
    if paths is None:
        return unconstrained(problem)
    if all(len(own) == 1 for own in paths):
        return fixed_paths(problem, [own[0] for own in paths])
    return path_sets(problem, paths)


def solve_time_indexed(
    problem: SchedulingProblem, paths: Paths | None, solve: Solve, clock: TimeBudget
) -> ScheduleSolution:
    """The paper's program alone: what `pack` is compared with. Raises `InputError` as `pack`."""
    refuse_unreachable(problem)
    time_indexed = time_indexed_program(problem, paths)
    answer = solve(time_indexed.program, time_limit_s=clock.remaining_s)
    assignments = {} if answer.values is None else time_indexed.assignments(answer.values)
    return ScheduleSolution(
        assignments=assignments, bound=time_indexed.flows(answer.bound), why="the time-indexed program"
    )


def _around(search: SlotSearch, routes: dict[int, Path], bound: int, clock: TimeBudget, *, seed: int) -> None:
    """Find slots for the flows that the relaxation carries, on its paths; then for all others beside them.

    If that is not enough, find slots for those that it carries on any of their paths: where links are full,
    far more of them find one.
    """
    problem, paths = search.problem, search.paths
    order = sorted(routes, key=lambda flow: -len(routes[flow]))
    chosen = SlotSearch(
        problem, _of_routes(problem, {flow: (path,) for flow, path in routes.items()}), seed=seed
    )
    chosen.fill(order)
    chosen.improve(bound, clock)
    search.restart(chosen.best)
    search.improve(bound, clock)
    if paths is None or len(search.best) >= bound or all(len(paths[flow]) == 1 for flow in routes):
        return
    wider = SlotSearch(problem, _of_routes(problem, {flow: paths[flow] for flow in routes}), seed=seed)
    wider.fill(order)
    wider.improve(bound, clock)
    search.restart(wider.best)


def _of_routes(problem: SchedulingProblem, ways: Mapping[int, Sequence[Path]]) -> Paths:
    return [ways.get(flow, ()) for flow in range(len(problem.demands))]


def _solve_program(search: SlotSearch, solve: Solve, clock: TimeBudget) -> int:
    """Let the time-indexed program find what is left to find, or prove that nothing is: its bound."""
    problem, paths = search.problem, search.paths
    count = len(problem.demands) if paths is None else sum(len(own) for own in paths)
    if count * problem.slots * (len(problem.graph.links) if paths is None else 1) > _MOST_VARIABLES:
        return len(problem.demands)
    time_indexed = time_indexed_program(problem, paths)
    answer = solve(time_indexed.program, time_limit_s=clock.remaining_s)
    if answer.values is not None:
        numbers = {demand.id: number for number, demand in enumerate(problem.demands)}
        assignments = time_indexed.assignments(answer.values)
        if len(assignments) > len(search.best):
            search.restart({numbers[flow]: assignment for flow, assignment in assignments.items()})
    return time_indexed.flows(answer.bound)


def _solution(problem: SchedulingProblem, search: SlotSearch, bound: int, why: str) -> ScheduleSolution:
    assignments = {problem.demands[flow].id: assignment for flow, assignment in sorted(search.best.items())}
    return ScheduleSolution(assignments=assignments, bound=bound, why=why)


class SlotSearch:
    """Finds slots for as many flows as it can."""

    def __init__(self, problem: SchedulingProblem, paths: Paths | None, *, seed: int = 0) -> None:
        self.problem = problem
        self.paths = paths
        self._random = np.random.default_rng(seed)
        self._table = Timetable(problem.graph, problem.slots)
        self._left: list[int] = []
        """Flows without a slot."""
        self._banned: dict[tuple[int, int], int] = {}
        """By flow and slot: up to which move it may not come back."""
        self._move = 0
        self.best: dict[int, Assignment] = {}

    def fill(self, order: Sequence[int]) -> None:
        """Give each flow, in this order, the first slot in which it fits. Flows that have a slot keep it."""
        for flow in order:
            assignment = self._first(flow)
            if assignment is None:
                self._left.append(flow)
            else:
                self._table.put(flow, assignment)
        self._keep()

    def restart(self, assignments: Mapping[int, Assignment]) -> None:
        """Start again from these slots and paths, and then add all other flows where they fit."""
        self._table = Timetable(self.problem.graph, self.problem.slots)
        self._left, self._banned, self._move = [], {}, 0
        for flow, assignment in assignments.items():
            self._table.put(flow, assignment)
        self.fill([flow for flow in range(len(self.problem.demands)) if flow not in assignments])

    def improve(self, target: int, clock: TimeBudget) -> None:
        """Move flows until so many have slots, no progress is made in many moves, or time is out."""
        idle, moves = 0, max(_PATIENCE, _PATIENCE_A_FLOW * len(self.problem.demands))
        while len(self.best) < target and self._left and idle < moves:
            if idle % _MOVES_AT_ONCE == 0 and not clock.remaining_s:
                return
            idle += 1
            self._step()
            if self._keep():
                idle = 0

    def _first(self, flow: int) -> Assignment | None:
        if self.paths is not None:
            return self._table.first_on(self.paths[flow])
        demand = self.problem.demands[flow]
        return self._table.first_anywhere(demand.source, demand.destination)

    def _keep(self) -> bool:
        if len(self._table) <= len(self.best):
            return False
        self.best = self._table.assignments()
        return True

    def _step(self) -> None:
        """Give one flow a slot, and take it from as few other flows as possible."""
        self._move += 1
        place = int(self._random.integers(len(self._left)))
        flow = self._left[place]
        chosen = self._first(flow)
        out: set[int] = set()
        if chosen is None:
            least = self._least(flow)
            if least is None:
                return
            chosen, out = least
        self._left[place] = self._left[-1]
        self._left.pop()
        for other in out:
            was = self._table.assignment(other)
            assert was is not None
            self._table.remove(other)
            self._left.append(other)
            tenure = int(self._random.integers(5, 10)) + len(self._left)
            self._banned[other, was.slot] = self._move + tenure
        self._table.put(flow, chosen)

    def _least(self, flow: int) -> tuple[Assignment, set[int]] | None:
        """Return the slot and path on which the fewest flows are in the way of this one.

        Among equals, a random one.
        """
        best: list[tuple[Assignment, set[int]]] = []
        fewest = len(self.problem.demands) + 1
        for slot in range(self.problem.slots):
            if self._banned.get((flow, slot), 0) > self._move:
                continue
            for path in self._ways(flow, slot):
                assignment = Assignment(slot=slot, path=path)
                out = self._table.conflicting_flows(assignment)
                if len(out) < fewest:
                    fewest, best = len(out), []
                if len(out) == fewest:
                    best.append((assignment, out))
        return best[int(self._random.integers(len(best)))] if best else None

    def _ways(self, flow: int, slot: int) -> Sequence[Path]:
        if self.paths is not None:
            return self.paths[flow]
        demand = self.problem.demands[flow]
        path = self._table.least_conflicting_path(demand.source, demand.destination, slot)
        return () if path is None else (path,)
