"""Figures of schedules on random networks: what is compared, and that it depends on the document alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from loko.document import InputError
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.schedule_check.graphs import GraphSchedule, graph_refutations
from loko_testbed.simulation.runner import RunError

pytest.importorskip("networkx")

from loko.schedule.packing import Paths, pack
from loko.schedule.problem import ScheduleSolution, SchedulingProblem, SchedulingScheme
from loko.solvers import Solver, solver_named
from loko_testbed.reproduce.figure_types.run_times import timing
from loko_testbed.reproduce.figure_types.schedules import scenario as scenarios
from loko_testbed.reproduce.figure_types.schedules.compute import scenarios_of
from loko_testbed.reproduce.figure_types.schedules.document import Topology
from loko_testbed.reproduce.figure_types.schedules.scenario import ScheduleScenario, network, run_scenario

FIGURE = experiments()["tssdn/fig4c"]


def scenario(flows=40, slots=3, seed=1, topology=FIGURE.topologies[0]) -> ScheduleScenario:
    return ScheduleScenario(
        topology=topology, hosts=FIGURE.hosts, switches=FIGURE.switches, flows=flows, slots=slots, seed=seed
    )


def test_the_paper_has_160_scenarios_of_8_topologies() -> None:
    drawn = scenarios_of(FIGURE, FIGURE.scale, seed=1)
    assert len(drawn) == len(set(drawn)) == 160
    assert {scenario.flows for scenario in drawn} == set(range(20, 111, 10))
    models = [topology.model for topology in FIGURE.topologies]
    assert [models.count(model) for model in ("random-regular", "erdos-renyi", "barabasi-albert")] == [
        3,
        2,
        3,
    ]


@pytest.mark.parametrize(
    "topology", FIGURE.topologies, ids=lambda topology: f"{topology.model}-{topology.seed}"
)
def test_a_scheme_that_allows_more_paths_schedules_as_many_flows_at_least(topology) -> None:
    row = run_scenario(scenario(topology=topology, flows=30))
    assert row.s_fr <= row.s_pr <= row.s_ur <= row.s_ur_bound <= row.flows
    assert row.s_fr <= row.s_fr_bound
    assert row.s_pr <= row.s_pr_bound


def test_a_scenario_gives_the_same_whenever_it_is_asked() -> None:
    assert run_scenario(scenario()) == run_scenario(scenario())
    assert run_scenario(scenario(seed=1)) != run_scenario(scenario(seed=2))


@pytest.mark.parametrize(
    ("model", "parameter", "cables"),
    [("erdos-renyi", 14, 14), ("random-regular", 4, 12), ("barabasi-albert", 2, 8), ("waxman", 2.0, None)],
)
def test_networks_are_of_their_models(model, parameter, cables) -> None:
    graph = network(Topology(model=model, parameter=float(parameter), seed=1), hosts=24, switches=6)
    assert len(graph.hosts) == 24
    if cables is not None:
        assert len(graph.links) == 2 * (24 + cables)


@pytest.mark.parametrize(
    ("model", "parameter", "told"),
    [("erdos-renyi", 1, "is not connected"), ("random-regular", 7, "random-regular")],
)
def test_a_network_that_cannot_be_is_told(model, parameter, told) -> None:
    with pytest.raises(InputError, match=told):
        network(Topology(model=model, parameter=float(parameter), seed=1), hosts=24, switches=6)


def two_in_one_slot(solution: ScheduleSolution) -> ScheduleSolution:
    """Put all flows into slot 0, like a scheduler that forgets which slots are in use."""
    assigned = {name: assignment._replace(slot=0) for name, assignment in solution.assignments.items()}
    return replace(solution, assignments=assigned)


@pytest.mark.parametrize("way", ["run_scenario", "ours", "time_indexed"])
def test_a_figure_fails_if_its_scheduler_is_wrong(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For figure 4c, and for 4d to 4f with this project's method and with the paper's program."""
    if way == "run_scenario":

        def wrong_at_last(
            problem: SchedulingProblem, paths: Paths | None, *args: Any, **more: Any
        ) -> ScheduleSolution:
            packed = pack(problem, paths, *args, **more)
            return two_in_one_slot(packed) if paths is None else packed

        monkeypatch.setattr(scenarios, "pack", wrong_at_last)
        with pytest.raises(RunError, match="the checker refutes a schedule of 40 flows by s-ur: slot 0: "):
            run_scenario(scenario())
        return
    graph = network(FIGURE.topologies[0], hosts=24, switches=6)
    problem = SchedulingProblem(graph, timing.demands(graph, 10, seed=1), 3)
    find, solve = getattr(timing, way), solver_named(Solver.HIGHS)
    right = timing.timed(find, problem, SchedulingScheme.PATH_SETS, solve, limit_s=20, seed=1)
    assert right.scheduled > 5
    with pytest.raises(RunError, match="the checker refutes a schedule of 10 flows by s-pr: slot 0: "):
        timing.timed(
            lambda *args: two_in_one_slot(find(*args)),
            problem,
            SchedulingScheme.PATH_SETS,
            solve,
            limit_s=20,
            seed=1,
        )


def a_schedule(**changes: object) -> GraphSchedule:
    """A triangle of switches with one host each, and a second sending host at switch A."""
    cables = [("a", "A"), ("a2", "A"), ("b", "B"), ("c", "C"), ("A", "B"), ("B", "C"), ("C", "A")]
    right = GraphSchedule(
        hosts=["a", "a2", "b", "c"],
        links=[*cables, *((head, tail) for tail, head in cables)],
        flows={"f": ("a", "b"), "g": ("a2", "b"), "h": ("b", "c")},
        allowed={"f": [("a", "A", "B", "b")], "g": [("a2", "A", "B", "b")], "h": [("b", "B", "C", "c")]},
        is_shortest=True,
        slots=2,
        bound=3,
        assigned={
            "f": (0, ("a", "A", "B", "b")),
            "g": (1, ("a2", "A", "B", "b")),
            "h": (0, ("b", "B", "C", "c")),
        },
    )
    return replace(right, **changes)  # type: ignore[arg-type]


def with_path(*nodes: str, **changes: object) -> GraphSchedule:
    return a_schedule(assigned={"f": (0, nodes)}, **changes)


WRONG: dict[str, Callable[[], GraphSchedule]] = {
    "above the bound 2": lambda: a_schedule(bound=2),
    "slot 1 is not in 0 to 0": lambda: a_schedule(slots=1),
    "g: nobody asked for it": lambda: a_schedule(flows={"f": ("a", "b"), "h": ("b", "c")}),
    "2 flows are on the link from A to B": lambda: a_schedule(
        assigned=a_schedule().assigned | {"g": (0, ("a2", "A", "B", "b"))}
    ),
    "waits at A for that of another flow": lambda: a_schedule(
        assigned=a_schedule().assigned | {"g": (0, ("a2", "A", "B", "b"))}
    ),
    "does not lead from a to b": lambda: with_path("a", "A", "C", "c"),
    "has a loop": lambda: with_path("a", "A", "C", "A", "B", "b"),
    "no cable leads from A to b": lambda: with_path("a", "A", "b"),
    "the frame of f is lost at A": lambda: with_path("a", "A", "b"),
    "passes through the host c": lambda: with_path("a", "A", "C", "c", "C", "B", "b"),
    "takes 4 links, the shortest path 3": lambda: with_path("a", "A", "C", "B", "b"),
    "is not the one that was drawn": lambda: with_path("a", "A", "C", "B", "b", is_shortest=False),
}


@pytest.mark.parametrize("told", WRONG)
def test_the_checker_of_graphs_refutes_what_is_wrong(told: str) -> None:
    assert graph_refutations(a_schedule()) == []
    assert graph_refutations(with_path("a", "A", "C", "B", "b", is_shortest=False, allowed=None)) == []
    assert any(told in line for line in graph_refutations(WRONG[told]()))
