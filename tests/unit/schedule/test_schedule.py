"""Schedules of TSSDN: the paper's programs, faster methods, and that both agree."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import pytest
import yaml
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from integer_programs import violated_row
from scheduling import benchmark_topology, clock, problems, refuted

import loko.schedule
from loko.document import LABS, InputError
from loko.schedule import packing
from loko.schedule.graph import graph_of
from loko.schedule.packing import LpRelaxation, SlotSearch, pack
from loko.schedule.problem import Assignment, SchedulingProblem, SlotDemand, candidate_paths, random_paths
from loko.schedule.time_indexed import fixed_paths, path_sets, unconstrained
from loko.schedule.timetable import Timetable
from loko.solvers import Solver, solver_named
from loko.solvers.program import UNLIMITED, IntegerProgram, TimeBudget

HIGHS = solver_named(Solver.HIGHS)
FEW = examples(40)

CROSSING = tuple(SlotDemand(f"F{number}", f"A{number}", f"B{number}") for number in range(1, 6))
"""The flows of fig. 2."""


def best_by_trying(problem, paths) -> int:
    """Return the largest number of flows with slots, by brute force from the definition."""
    graph = problem.graph

    def most(number, used) -> int:
        if number == len(problem.demands):
            return 0
        best = most(number + 1, used)
        for path in paths[number]:
            for slot in range(problem.slots):
                wanted = frozenset((slot, link) for link in path)
                if not wanted & used:
                    best = max(best, 1 + most(number + 1, used | wanted))
        return best

    assert graph.links
    return most(0, frozenset())


def all_paths(problem) -> list[list[tuple[int, ...]]]:
    """Return every loop-free path of every flow."""
    graph = problem.graph
    all_paths = []
    for demand in problem.demands:
        own, waiting = [], [((), demand.source)]
        while waiting:
            path, node = waiting.pop()
            if node == demand.destination:
                own.append(path)
                continue
            seen = {demand.source} | {graph.links[link].head for link in path}
            waiting += [
                ((*path, link), graph.links[link].head)
                for link in graph.outgoing[node]
                if graph.links[link].head not in seen
                and (
                    graph.links[link].head not in graph.hosts or graph.links[link].head == demand.destination
                )
            ]
        all_paths.append(own)
    return all_paths


@FEW
@given(problems(most_flows=4, most_slots=2))
def test_programs_have_the_optimum_of_their_definition(problem) -> None:
    shortest = candidate_paths(problem)
    for time_indexed, paths in (
        (unconstrained(problem), all_paths(problem)),
        (path_sets(problem, shortest), shortest),
        (fixed_paths(problem, [own[0] for own in shortest]), [own[:1] for own in shortest]),
    ):
        answer = HIGHS(time_indexed.program, time_limit_s=60)
        assert answer.is_optimal
        assert violated_row(time_indexed.program, answer.values) is None
        assert len(time_indexed.assignments(answer.values)) == best_by_trying(problem, paths)
        assert time_indexed.flows(answer.bound) == len(time_indexed.assignments(answer.values))


@FEW
@given(problems(), st.integers(0, 2**32))
def test_quick_schedules_agree_with_the_time_indexed_programs(problem, seed) -> None:
    shortest = candidate_paths(problem)
    fixed = random_paths(shortest, [random.Random(seed).random() for _ in shortest])
    programs = (
        (None, unconstrained(problem)),
        (shortest, path_sets(problem, shortest)),
        (fixed, fixed_paths(problem, [own[0] for own in fixed])),
    )
    for paths, time_indexed in programs:
        solution = pack(problem, paths, HIGHS, clock())
        assert refuted(problem, solution) is None
        answer = HIGHS(time_indexed.program, time_limit_s=60)
        assert solution.is_optimal
        assert len(solution.assignments) == len(time_indexed.assignments(answer.values))
        for flow, assignment in solution.assignments.items():
            if paths is not None:
                number = next(at for at, demand in enumerate(problem.demands) if demand.id == flow)
                assert assignment.path in paths[number]


@FEW
@given(problems(most_flows=12))
def test_what_was_found_when_time_is_out_is_a_schedule_below_its_bound(problem) -> None:
    over = TimeBudget(now_ns=lambda: 1, end_ns=0)
    for paths in (None, candidate_paths(problem)):
        solution = pack(problem, paths, HIGHS, over)
        assert refuted(problem, solution) is None
        best = pack(problem, paths, HIGHS, clock())
        assert len(solution.assignments) <= len(best.assignments) <= solution.bound
        assert solution.is_optimal == (solution.gap_percent == 0)


@FEW
@given(problems(most_flows=12))
def test_a_schedule_to_begin_with_is_never_lost(problem) -> None:
    best = pack(problem, None, HIGHS, clock())
    over = TimeBudget(now_ns=lambda: 1, end_ns=0)
    again = pack(problem, None, HIGHS, over, start=best.assignments)
    assert refuted(problem, again) is None
    assert len(again.assignments) == len(best.assignments)


@pytest.mark.parametrize("scheme", ["s-ur", "s-pr"])
def test_flows_of_figure_2_need_a_slot_each(scheme) -> None:
    graph = benchmark_topology()
    for slots in range(1, 6):
        problem = SchedulingProblem(graph, CROSSING, slots)
        solution = pack(problem, None if scheme == "s-ur" else candidate_paths(problem), HIGHS, clock())
        assert len(solution.assignments) == solution.bound == slots
        assert refuted(problem, solution) is None


def test_both_directions_of_a_cable_are_two_links() -> None:
    demands = (SlotDemand("there", "A1", "B1"), SlotDemand("back", "B2", "A2"))
    problem = SchedulingProblem(benchmark_topology(), demands, 1)
    assert len(pack(problem, None, HIGHS, clock()).assignments) == 2


def test_unconstrained_routing_goes_round_where_shortest_paths_are_full() -> None:
    cables = [("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"), ("x", "y"), ("x", "z"), ("z", "y")]
    problem = SchedulingProblem(
        graph_of("abcd", cables), (SlotDemand("1", "a", "c"), SlotDemand("2", "b", "d")), 1
    )
    assert len(pack(problem, candidate_paths(problem), HIGHS, clock()).assignments) == 1
    assert len(pack(problem, None, HIGHS, clock()).assignments) == 2


def test_program_without_its_collision_rows_would_schedule_more() -> None:
    """Only c_sur_3 keeps all crossing flows out of one slot."""
    whole, without = (unconstrained(SchedulingProblem(benchmark_topology(), CROSSING, 1)) for _ in range(2))
    assert {"c_sur_1", "c_sur_2", "c_sur_3", "c_sur_4"} == set(whole.program.equations)
    without.program.highs = [
        UNLIMITED if equation == "c_sur_3" else high
        for equation, high in zip(without.program.equations, without.program.highs, strict=True)
    ]

    def best(program: IntegerProgram) -> list[int]:
        answer = HIGHS(program, time_limit_s=60)
        assert answer.is_optimal
        assert answer.values is not None
        return answer.values

    crowd = best(without.program)
    assert len(whole.assignments(best(whole.program))) < len(without.assignments(crowd)) == len(CROSSING)
    assert violated_row(whole.program, crowd) == "c_sur_3"


@FEW
@given(problems(most_flows=12), st.randoms(use_true_random=False))
def test_flows_that_come_and_go_move_no_other(problem, chance) -> None:
    table = Timetable(problem.graph, problem.slots)
    for _ in range(40):
        number = chance.randrange(len(problem.demands))
        demand, before = problem.demands[number], table.assignments()
        if table.assignment(number) is not None:
            table.remove(number)
            del before[number]
        elif (assignment := table.first_anywhere(demand.source, demand.destination)) is not None:
            table.put(number, assignment)
            before[number] = assignment
        else:
            taken = {(slot, link) for slot, path in before.values() for link in path}
            for slot, path in itertools.product(range(problem.slots), all_paths(problem)[number]):
                assert any((slot, link) in taken for link in path), "there was room"
        assert table.assignments() == before


def test_timetable_refuses_two_flows_on_one_link_in_one_slot() -> None:
    graph = benchmark_topology()
    table = Timetable(graph, 2)
    paths = [graph.shortest_paths(demand.source, demand.destination)[0] for demand in CROSSING]
    table.put(0, Assignment(slot=1, path=paths[0]))
    assert table.free_slots(paths[1]) == 0b01
    with pytest.raises(AssertionError):
        table.put(1, Assignment(slot=1, path=paths[1]))


def test_every_shortest_path_is_a_candidate() -> None:
    cables = [("a", "w"), ("w", "x"), ("w", "y"), ("x", "z"), ("y", "z"), ("x", "y"), ("z", "b")]
    problem = SchedulingProblem(graph_of("ab", cables), (SlotDemand("f", "a", "b"),), 1)
    names = [[problem.graph.links[link].head for link in path] for path in candidate_paths(problem)[0]]
    assert sorted(names) == [["w", "x", "z", "b"], ["w", "y", "z", "b"]]
    assert random_paths(candidate_paths(problem), [0.0]) != random_paths(candidate_paths(problem), [0.999])


@pytest.mark.parametrize(
    ("demand", "slots", "told"),
    [
        (SlotDemand("f", "A1", "nowhere"), 1, "flow 'f': there is no host 'nowhere'"),
        (SlotDemand("f", "A1", "A1"), 1, "flow 'f': A1 sends to itself"),
        (SlotDemand("f", "A1", "B1"), 0, "0 slots: no flow could have one"),
    ],
)
def test_what_cannot_be_asked_for_is_told_in_one_line(demand, slots, told) -> None:
    with pytest.raises(InputError, match=told):
        SchedulingProblem(benchmark_topology(), (demand,), slots)


def test_a_destination_that_cannot_be_reached_is_told() -> None:
    graph = graph_of("ab", [("a", "x"), ("b", "y")])
    problem = SchedulingProblem(graph, (SlotDemand("f", "a", "b"),), 1)
    with pytest.raises(InputError, match="flow 'f': no path leads from a to b"):
        candidate_paths(problem)
    with pytest.raises(InputError, match="flow 'f': no path leads from a to b"):
        pack(problem, None, HIGHS, clock())


def test_flows_of_the_bound_may_have_all_of_their_paths(monkeypatch) -> None:
    """On full links, fewer of these flows find slots if restricted to the paths of the relaxation."""
    networkx = pytest.importorskip("networkx")
    model = networkx.random_regular_graph(4, 40, seed=1)
    hosts = [f"h{number}" for number in range(40)]
    cables = [(f"s{a}", f"s{b}") for a, b in model.edges]
    graph = graph_of(hosts, [*cables, *((f"h{number}", f"s{number}") for number in range(40))])
    chance = random.Random(1)
    demands = tuple(SlotDemand(f"f{number}", *chance.sample(hosts, 2)) for number in range(400))
    problem = SchedulingProblem(graph, demands, 10)
    paths = candidate_paths(problem)
    never = TimeBudget(now_ns=lambda: 0, end_ns=24 * 3600 * 10**9)
    loads = LpRelaxation(problem, paths)
    routes = loads.routes(HIGHS(loads.program, time_limit_s=60).values)
    search = SlotSearch(problem, [(routes[flow],) if flow in routes else () for flow in range(len(demands))])
    search.fill(sorted(routes, key=lambda flow: -len(routes[flow])))
    search.improve(len(routes), never)
    among_all = SlotSearch(problem, paths)
    among_all.restart(search.best)
    among_all.improve(len(routes), never)
    monkeypatch.setattr(packing, "_ROUNDS", 1)
    best = pack(problem, paths, HIGHS, never, is_thorough=False)
    assert len(search.best) <= len(among_all.best) < len(best.assignments) <= best.bound
    assert refuted(problem, best) is None


def test_the_code_names_each_equation_of_the_paper() -> None:
    facts = yaml.load((LABS / "papers" / "tssdn.yml").read_text(), Loader=yaml.CSafeLoader)
    code = "\n".join(path.read_text() for path in Path(loko.schedule.__file__).parent.glob("*.py"))
    names = [equation["id"] for equation in facts["equations"]]
    assert len(names) == 14
    assert [name for name in names if not re.search(rf"\b{name}\b", code)] == []
