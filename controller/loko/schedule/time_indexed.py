"""The integer programs of the TSSDN paper, equation by equation: the reference for whatever is quicker.

Names of equations: those of the paper's facts (`labs/papers/tssdn.yml`). A program's rows carry them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loko.schedule.graph import Path
from loko.schedule.problem import Assignment, SchedulingProblem
from loko.solvers.program import IntegerProgram


@dataclass(frozen=True, kw_only=True)
class TimeIndexedProgram:
    """A program, with what its variables mean."""

    program: IntegerProgram
    problem: SchedulingProblem
    slot_of: Sequence[Mapping[int, tuple[int, Path | None]]]
    """By flow: the variables that give it a slot, with this, and with the path if that is fixed too."""
    link_of: Sequence[Mapping[int, int]]
    """By flow: the variables that put it on a link, with that; empty where paths are given."""

    def assignments(self, values: Sequence[int]) -> dict[str, Assignment]:
        """The schedule that these values mean.

        Of an answer that is not optimal, a flow's links may hold more than a path; the path is taken.
        """
        assignments = {}
        for number, demand in enumerate(self.problem.demands):
            for variable, (slot, path) in self.slot_of[number].items():
                if not values[variable]:
                    continue
                assignments[demand.id] = Assignment(slot=slot, path=path or self._path(number, values))
        return assignments

    def _path(self, number: int, values: Sequence[int]) -> Path:
        demand = self.problem.demands[number]
        links = [link for on, link in self.link_of[number].items() if values[on]]
        path = self.problem.graph.path_within(demand.source, demand.destination, links)
        assert path is not None, "a flow's links lead to its destination: c_sur_2"
        return path

    def flows(self, objective: float) -> int:
        """How many flows at most have a slot if no value of the objective is above this."""
        weight = len(self.problem.demands) * len(self.problem.graph.links) + 1 if self.link_of else 1
        # The secondary objective is above -weight and at most 0.
        return min(len(self.problem.demands), int((objective + weight - 1 + 1e-6) // weight))


def unconstrained(problem: SchedulingProblem) -> TimeIndexedProgram:
    """S/UR (section 3.2). The objective is multiplied by |TS| |E| + 1, so that all numbers are whole."""
    graph, slots = problem.graph, range(problem.slots)
    program = IntegerProgram()
    weight = len(problem.demands) * len(graph.links) + 1
    on: list[dict[int, int]] = []  # f[i,j], by link
    at: list[list[int]] = []  # t[i,k], by slot
    carried: dict[tuple[int, int], list[int]] = {}  # m[i,j,k] of all i, by link and slot
    for demand in problem.demands:
        # obj_sur: primary objective weight * t[i,k], secondary objective -f[i,j]
        own_links = {link: program.variable(-1) for link in graph.usable(demand.source, demand.destination)}
        own_slots = [program.variable(weight) for _ in slots]
        program.row("c_sur_1", own_slots, high=1)
        for node in graph.nodes:
            coming = [own_links[link] for link in graph.incoming.get(node, ()) if link in own_links]
            leaving = [own_links[link] for link in graph.outgoing.get(node, ()) if link in own_links]
            if node == demand.source:
                program.row("c_sur_2", coming, low=0, high=0)
                program.row("c_sur_2", leaving, low=1, high=1)
            elif node == demand.destination:
                program.row("c_sur_2", coming, low=1, high=1)
                program.row("c_sur_2", leaving, low=0, high=0)
            elif coming or leaving:
                factors = [1] * len(coming) + [-1] * len(leaving)
                program.row("c_sur_2", coming + leaving, factors, low=0, high=0)
        for link, f in own_links.items():
            for slot, t in enumerate(own_slots):
                m = program.variable()
                carried.setdefault((link, slot), []).append(m)
                program.row("c_sur_4", (m, f), (1, -1), high=0)
                program.row("c_sur_4", (m, t), (1, -1), high=0)
                program.row("c_sur_4", (m, f, t), (1, -1, -1), low=-1)
        on.append({variable: link for link, variable in own_links.items()})
        at.append(own_slots)
    for flows in carried.values():
        program.row("c_sur_3", flows, high=1)
    slot_of = [{t: (slot, None) for slot, t in enumerate(own)} for own in at]
    return TimeIndexedProgram(program=program, problem=problem, slot_of=slot_of, link_of=on)


def path_sets(problem: SchedulingProblem, paths: Sequence[Sequence[Path]]) -> TimeIndexedProgram:
    """S/PR (section 3.3) on these paths of each flow.

    The paths are spr_paths (`loko.schedule.problem.candidate_paths`). The last constraint has pl[l,j]; the
    paper prints pl[i,j].
    """
    program = IntegerProgram()
    slot_of: list[dict[int, tuple[int, Path | None]]] = []
    carried: dict[tuple[int, int], list[int]] = {}
    for own in paths:
        meaning: dict[int, tuple[int, Path | None]] = {}
        for path in own:
            row = []
            for slot in range(problem.slots):
                variable = program.variable(1)  # obj_spr: pt[l,k]
                row.append(variable)
                meaning[variable] = slot, path
                for link in path:
                    carried.setdefault((link, slot), []).append(variable)
            program.row("c_spr_1", row, high=1)
        program.row("c_spr_2", meaning, high=1)
        slot_of.append(meaning)
    for row in carried.values():
        program.row("c_spr_3", row, high=1)
    return TimeIndexedProgram(program=program, problem=problem, slot_of=slot_of, link_of=())


def fixed_paths(problem: SchedulingProblem, paths: Sequence[Path]) -> TimeIndexedProgram:
    """S/FR (section 3.4) on this path of each flow."""
    program = IntegerProgram()
    slot_of: list[dict[int, tuple[int, Path | None]]] = []
    carried: dict[tuple[int, int], list[int]] = {}
    for path in paths:
        meaning: dict[int, tuple[int, Path | None]] = {}
        for slot in range(problem.slots):
            variable = program.variable(1)  # obj_sfr: t[i,k]
            meaning[variable] = slot, path
            for link in path:
                carried.setdefault((link, slot), []).append(variable)
        program.row("c_sfr_1", meaning, high=1)
        slot_of.append(meaning)
    for row in carried.values():
        program.row("c_sfr_2", row, high=1)
    return TimeIndexedProgram(program=program, problem=problem, slot_of=slot_of, link_of=())
