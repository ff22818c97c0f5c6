"""Flows come and go one by one: no other flow is moved, and the cost of that is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling import benchmark_topology, clock, problems, refuted

from loko.document import InputError
from loko.schedule.incremental import Standing
from loko.schedule.packing import pack
from loko.schedule.problem import Allotment, Demand, Problem, SchedulingScheme, Solution, candidates
from loko.solvers import Solver, solver_named

HIGHS = solver_named(Solver.HIGHS)


@settings(max_examples=30, deadline=None)
@given(
    problems(most_flows=10),
    st.sampled_from([SchedulingScheme.UNCONSTRAINED, SchedulingScheme.PATH_SETS]),
    st.data(),
)
def test_nobody_is_moved_and_the_cost_is_within_its_bound(problem, scheme, data) -> None:
    standing = Standing(problem.graph, problem.slots, scheme)
    there: list[Demand] = []
    for demand in problem.demands:
        before = standing.allotments
        allotment = standing.add(demand)
        there.append(demand)
        assert standing.allotments == before | ({} if allotment is None else {demand.id: allotment})
    for demand in data.draw(st.lists(st.sampled_from(problem.demands), unique=True)):
        before = standing.allotments
        standing.remove(demand.id)
        there.remove(demand)
        before.pop(demand.id, None)
        assert standing.allotments == before
    left = Problem(problem.graph, tuple(there), problem.slots)
    allotments = standing.allotments
    assert refuted(left, Solution(allotments=allotments, bound=len(there), why="")) is None
    best = pack(left, None if scheme is SchedulingScheme.UNCONSTRAINED else candidates(left), HIGHS, clock())
    assert 0 <= len(best.allotments) - len(allotments) <= standing.cost_at_most


@pytest.mark.parametrize("scheme", SchedulingScheme)
def test_a_flow_gets_the_slot_that_another_left(scheme) -> None:
    standing = Standing(benchmark_topology(), 2, scheme)
    flows = [Demand(f"F{n}", f"A{n}", f"B{n}") for n in (1, 2, 3)]
    assert [standing.add(flow) is None for flow in flows] == [False, False, True]
    assert standing.cost_at_most == 1, "no cable of a host is full: a bound that knows no more"
    freed = standing.allotments["F1"].slot
    standing.remove("F1")
    standing.remove("F3")
    allotment = standing.add(flows[2])
    assert allotment is not None
    assert allotment.slot == freed


def test_what_stands_already_is_kept_or_refused() -> None:
    graph = benchmark_topology()
    (path,), (other,) = graph.shortest_paths("A1", "B1"), graph.shortest_paths("A2", "B2")
    standing = Standing(graph, 2, SchedulingScheme.PATH_SETS)
    standing.keep(Demand("F1", "A1", "B1"), Allotment(slot=1, path=path))
    with pytest.raises(InputError, match="flow 'F2': 'F1' has one of its links in slot 1"):
        standing.keep(Demand("F2", "A2", "B2"), Allotment(slot=1, path=other))
    with pytest.raises(InputError, match="there is no slot 2 of 2"):
        standing.keep(Demand("F3", "A3", "B3"), Allotment(slot=2, path=path))
    with pytest.raises(InputError, match="flow 'F1': exists already"):
        standing.add(Demand("F1", "A1", "B1"))
    with pytest.raises(InputError, match="flow 'F9': is not there"):
        standing.remove("F9")
