"""The checker of schedules on graphs that are no labs, and figures whose scheduler errs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import evaluation.kinds.duel.accepted as duel
from evaluation.kinds.duel.document import DuelFigure
from evaluation.kinds.experiments import experiments
from evaluation.kinds.run_times.timing import timed
from evaluation.kinds.schedules import scenario as scenarios
from evaluation.kinds.schedules.document import Topology
from evaluation.kinds.schedules.scenario import Scenario, carry_out
from evaluation.runner import RunError
from evaluation.schedule_check.graphs import Given, Sought, graph_refutations
from loko.lab import load_lab
from loko.schedule.graph import graph_of
from loko.schedule.packing import pack
from loko.schedule.problem import Allotment, Demand, Problem, SchedulingScheme, Solution
from loko.solvers import Solver, solver_named

# A square of switches, with a host at each of three corners.
CABLES = [("s0", "s1"), ("s1", "s2"), ("s2", "s3"), ("s3", "s0"), ("a", "s0"), ("b", "s1"), ("c", "s2")]
HOSTS = ["a", "b", "c"]
SOUGHT = [Sought("f0", "a", "b"), Sought("f1", "b", "c"), Sought("f2", "a", "c")]
RIGHT = [
    Given("f0", 0, ("a", "s0", "s1", "b")),
    Given("f1", 0, ("b", "s1", "s2", "c")),
    Given("f2", 1, ("a", "s0", "s3", "s2", "c")),
]


def told(given: list[Given], *, slots: int = 2, bound: int = 3, shortest: bool = True) -> list[str]:
    return graph_refutations(CABLES, HOSTS, SOUGHT, given, slots=slots, bound=bound, shortest=shortest)


def test_what_is_right_is_not_refuted() -> None:
    assert told(RIGHT) == []
    assert told(RIGHT[:1]) == []


@pytest.mark.parametrize(
    ("place", "flow", "words"),
    [
        (2, RIGHT[2]._replace(slot=0), "f2: is not alone from a to s0 in slot 0: f0 is there, too"),
        (0, RIGHT[0]._replace(slot=2), "f0: slot 2 is not in 0 to 1"),
        (0, RIGHT[0]._replace(slot=-1), "f0: slot -1 is not in 0 to 1"),
        (0, Given("f0", 0, ("a", "s0", "s1")), "f0: its path does not lead from a to b"),
        (0, Given("f0", 0, ()), "f0: its path does not lead from a to b"),
        (0, Given("f0", 0, ("a", "s1", "b")), "f0: no cable leads from a to s1"),
        (0, Given("f0", 1, ("a", "s0", "s3", "s2", "s1", "b")), "f0: its path is not a shortest one"),
        (0, Given("f0", 0, ("a", "s0", "s1", "s0", "s1", "b")), "f0: its path has a loop: a s0 s1 s0 s1 b"),
        (2, Given("f2", 1, ("a", "s0", "s1", "b", "s1", "s2", "c")), "f2: its path leads through b"),
        (0, Given("f9", 0, ("a", "s0", "s1", "b")), "f9: nobody asked for it"),
        (1, RIGHT[0], "f0: has 2 slots"),
    ],
)
def test_a_mutation_is_refuted_for_its_own_reason(place: int, flow: Given, words: str) -> None:
    given = [*RIGHT]
    given[place] = flow
    assert any(line.startswith(words) for line in told(given)), told(given)


def test_more_flows_than_the_bound_allows_are_refuted() -> None:
    assert told(RIGHT, bound=2) == ["3 flows are scheduled, above the bound 2"]


def test_a_detour_is_right_where_any_path_is() -> None:
    detour = [Given("f0", 1, ("a", "s0", "s3", "s2", "s1", "b"))]
    assert told(detour, shortest=False) == []


def in_one_slot(solution: Solution) -> Solution:
    """A scheduler that gives every flow the same slot."""
    same = {name: Allotment(0, allotment.path) for name, allotment in solution.allotments.items()}
    return replace(solution, allotments=same)


def test_a_figure_of_schedules_fails_if_its_scheduler_errs(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = Topology(model="random-regular", parameter=3, seed=1)
    asked = Scenario(topology=topology, hosts=8, switches=6, flows=20, slots=4, seed=1)
    assert carry_out(asked).s_ur > 0
    monkeypatch.setattr(scenarios, "pack", lambda *given, **named: in_one_slot(pack(*given, **named)))
    with pytest.raises(RunError, match=r"the checker refutes a schedule of s-.*is not alone"):
        carry_out(asked)


def test_no_time_is_told_of_a_schedule_that_is_refuted() -> None:
    graph = graph_of(["a", "b", "c"], CABLES)
    problem = Problem(graph, (Demand("f0", "a", "b"), Demand("f2", "a", "c")), 2)
    solve = solver_named(Solver.HIGHS)

    def wrong(*given: Any) -> Solution:
        return in_one_slot(pack(*given))

    arguments = (problem, SchedulingScheme.UNCONSTRAINED, solve)
    assert timed(pack, *arguments, limit_s=60, seed=1).scheduled == 2
    with pytest.raises(RunError, match="f2: is not alone from a to s0 in slot 0: f0"):
        timed(wrong, *arguments, limit_s=60, seed=1)


def test_a_duel_with_refuted_slots_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = experiments()["tssdn/duel"]
    assert isinstance(figure, DuelFigure)
    arena = figure.arenas[0]
    lab = load_lab(arena.lab)
    wanted = duel.requests(figure, arena, lab, figure.rate_kbps)
    slots = next(contender for contender in figure.contenders if contender.system == "slots")
    found = duel.schedule_of(figure, slots, lab, wanted)
    assert duel.accepted(figure, slots, lab, wanted)
    broken = replace(found, scheduled=tuple(replace(flow, slot=0) for flow in found.scheduled))
    monkeypatch.setattr(duel, "schedule_of", lambda *_: broken)
    with pytest.raises(RunError, match="the checker refutes a schedule for two-switch"):
        duel.accepted(figure, slots, lab, wanted)


def test_times_to_admit_are_given_for_each_lab() -> None:
    values = experiments()["tssdn/duel"].model_dump(mode="json")
    del values["contenders"][0]["took"]["ring"]
    with pytest.raises(ValueError, match="took: of Loko fifth: give a time for each lab, and no others"):
        DuelFigure.model_validate(values)
