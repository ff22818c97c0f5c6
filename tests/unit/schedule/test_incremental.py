"""Flows come and go one by one: no other flow is moved, and the cost of that is bounded."""

from __future__ import annotations

import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from scheduling import benchmark_topology, clock, problems, refuted

from loko.document import InputError
from loko.schedule.incremental import IncrementalSchedule
from loko.schedule.packing import pack
from loko.schedule.problem import (
    Assignment,
    ScheduleSolution,
    SchedulingProblem,
    SchedulingScheme,
    SlotDemand,
    candidate_paths,
)
from loko.solvers import Solver, solver_named

HIGHS = solver_named(Solver.HIGHS)


@examples(30)
@given(
    problems(most_flows=10),
    st.sampled_from([SchedulingScheme.UNCONSTRAINED, SchedulingScheme.PATH_SETS]),
    st.data(),
)
def test_nobody_is_moved_and_the_cost_is_within_its_bound(problem, scheme, data) -> None:
    incremental = IncrementalSchedule(problem.graph, problem.slots, scheme)
    there: list[SlotDemand] = []
    for demand in problem.demands:
        before = incremental.assignments
        assignment = incremental.add(demand)
        there.append(demand)
        assert incremental.assignments == before | ({} if assignment is None else {demand.id: assignment})
    for demand in data.draw(st.lists(st.sampled_from(problem.demands), unique=True)):
        before = incremental.assignments
        incremental.remove(demand.id)
        there.remove(demand)
        before.pop(demand.id, None)
        assert incremental.assignments == before
    left = SchedulingProblem(problem.graph, tuple(there), problem.slots)
    assignments = incremental.assignments
    assert refuted(left, ScheduleSolution(assignments=assignments, bound=len(there), why="")) is None
    best = pack(
        left, None if scheme is SchedulingScheme.UNCONSTRAINED else candidate_paths(left), HIGHS, clock()
    )
    assert 0 <= len(best.assignments) - len(assignments) <= incremental.optimality_gap


@pytest.mark.parametrize("scheme", SchedulingScheme)
def test_a_flow_gets_the_slot_that_another_left(scheme) -> None:
    incremental = IncrementalSchedule(benchmark_topology(), 2, scheme)
    flows = [SlotDemand(f"F{n}", f"A{n}", f"B{n}") for n in (1, 2, 3)]
    assert [incremental.add(flow) is None for flow in flows] == [False, False, True]
    assert incremental.optimality_gap == 1, "no cable of a host is full: a bound that knows no more"
    freed = incremental.assignments["F1"].slot
    incremental.remove("F1")
    incremental.remove("F3")
    assignment = incremental.add(flows[2])
    assert assignment is not None
    assert assignment.slot == freed


def test_what_stands_already_is_kept_or_refused() -> None:
    graph = benchmark_topology()
    (path,), (other,) = graph.shortest_paths("A1", "B1"), graph.shortest_paths("A2", "B2")
    incremental = IncrementalSchedule(graph, 2, SchedulingScheme.PATH_SETS)
    incremental.restore(SlotDemand("F1", "A1", "B1"), Assignment(slot=1, path=path))
    with pytest.raises(InputError, match="flow 'F2': 'F1' has one of its links in slot 1"):
        incremental.restore(SlotDemand("F2", "A2", "B2"), Assignment(slot=1, path=other))
    with pytest.raises(InputError, match="there is no slot 2 of 2"):
        incremental.restore(SlotDemand("F3", "A3", "B3"), Assignment(slot=2, path=path))
    with pytest.raises(InputError, match="flow 'F1': exists already"):
        incremental.add(SlotDemand("F1", "A1", "B1"))
    with pytest.raises(InputError, match="flow 'F9': is not there"):
        incremental.remove("F9")
