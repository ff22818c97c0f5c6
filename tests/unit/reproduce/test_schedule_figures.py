"""Figures of schedules: what is compared, that it depends on the document alone, and what run times mean."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from no_rendering import no_rendering
from pydantic import ValidationError

from loko.document import InputError
from loko_testbed.cli import main as cli
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types import figure_type_named
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.schedules.document import RunTimes, Topology
from loko_testbed.reproduce.figure_types.schedules.timing import Find, ours, time_indexed, timed
from loko_testbed.reproduce.result import FigureResult
from loko_testbed.reproduce.schedule_check.graphs import GraphSchedule, graph_refutations
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.progress import NoProgress

pytest.importorskip("networkx")

from benchmarks import schedule
from loko.schedule.packing import Paths, pack
from loko.schedule.problem import ScheduleSolution, SchedulingProblem, SchedulingScheme
from loko.solvers import Solver, solver_named
from loko.solvers.program import Solve, TimeBudget
from loko_testbed.reproduce.figure_types.schedules import run_times, timing
from loko_testbed.reproduce.figure_types.schedules import scenario as scenarios
from loko_testbed.reproduce.figure_types.schedules.run_times import points_of
from loko_testbed.reproduce.figure_types.schedules.scenario import ScheduleScenario, network, run_scenario
from loko_testbed.reproduce.figure_types.schedules.scheduled_flows import scenarios_of

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


NAMES = ("tssdn/fig4d", "tssdn/fig4e", "tssdn/fig4f")


def figure(name: str = "tssdn/fig4d", **changes: Any) -> RunTimes:
    """Return a figure of the paper with some values changed."""
    document = experiments()[name]
    assert isinstance(document, RunTimes)
    return RunTimes.model_validate({**document.model_dump(mode="json"), **changes})


def small(**changes: Any) -> RunTimes:
    """Return a figure with three numbers of flows that take milliseconds."""
    return figure(flows=[2, 4, 8], schemes=["s-pr", "s-fr"], runs=2, **changes)


def options(out: Path, *, quick: bool = False) -> Options:
    return Options(mode="live", seed=1, out=out, quick=quick)


def measured(document: RunTimes, chosen: Options) -> FigureResult:
    with no_rendering():
        (result,) = evaluate([document], chosen, NoProgress())
    return result


def test_sizes_are_the_papers() -> None:
    by_flows, by_slots, by_links = (points_of(figure(name), seed=1) for name in NAMES)
    assert {point.links for point in by_flows} == {38}
    assert (by_flows[0].x, by_flows[-1].x) == (20, 110)
    assert {len(point.problem.demands) for point in by_slots} == {300}
    assert (by_slots[0].x, by_slots[-1].x) == (5, 50)
    assert [point.x for point in by_links[::2]] == [30, 84, 170, 256]


def test_a_run_takes_time_and_finds_what_the_other_way_finds() -> None:
    (point, *_) = points_of(small(), seed=1)
    solve = solver_named(Solver.HIGHS)
    our_run, time_indexed_run = (
        timed(find, point.problem, point.scheme, solve, limit_s=20, seed=1) for find in (ours, time_indexed)
    )
    assert our_run.is_optimal
    assert time_indexed_run.is_optimal
    assert our_run.scheduled == time_indexed_run.scheduled == 2
    assert 0 < time_indexed_run.solving_s < time_indexed_run.seconds
    assert our_run.solving_s == 0, "every flow has a slot at once: no solver is asked"


def test_a_result_has_the_times_of_every_scheme_and_way(tmp_path: Path) -> None:
    result = measured(small(), options(tmp_path))
    series = [f"{way}_{scheme}" for way in ("ours", "time_indexed") for scheme in ("pr", "fr")]
    for name in series:
        times = [result.findings[f"{name}_{flows}_ms"] for flows in (2, 4, 8)]
        assert min(times) > 0
        assert result.findings[f"{name}_slowest_ms"] == max(times)
        assert result.findings[f"{name}_growth"] == times[-1] / times[0]
    rows = pq.read_table(tmp_path / "tssdn" / "fig4d.parquet").to_pylist()
    assert len(rows) == 3 * len(series) * 2
    assert {row["flows"] for row in rows} == {2, 4, 8}
    assert result.provenance.machine, "times are of a machine, which is named"


def test_a_part_says_nothing_of_the_whole(tmp_path: Path) -> None:
    result = measured(small(), options(tmp_path, quick=True))
    assert "time_indexed_pr_4_ms" in result.findings
    assert not {name for name in result.findings if name.endswith(("growth", "linearity", "slowest_ms"))}
    assert {claim.holds for claim in result.claims} == {None}


def test_what_was_stopped_has_no_run_time_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(
        problem: SchedulingProblem, paths: Paths | None, solve: Solve, clock: TimeBudget
    ) -> ScheduleSolution:
        return ScheduleSolution(assignments={}, bound=len(problem.demands), why="the clock")

    ways: dict[str, Find] = {"ours": ours, "time_indexed": stopped}
    monkeypatch.setattr(run_times, "WAYS", ways)
    result = measured(small(), options(tmp_path))
    assert "ours_pr_8_ms" in result.findings
    assert not [name for name in result.findings if name.startswith("time_indexed")]
    assert "the paper's program, HiGHS, S-PR, 8 flows" in " ".join(note.text for note in result.notes)


def test_a_run_that_waits_for_the_machine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "loko_testbed.reproduce.figure_types.schedules.timing.time.process_time_ns", lambda: 0
    )
    monkeypatch.setattr(run_times, "_LEAST_WAITING_S", 0.0)
    result = measured(small(), options(tmp_path))
    assert result.findings["most_waiting_percent"] == 100
    assert "waited for a processor" in " ".join(note.text for note in result.notes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"modes": ["virtual"]}, "times are of this machine"),
        ({"slots": [5, 6]}, "flows vary, so give one of slots"),
        ({"flows": [2]}, "quick has 2 points"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        figure(**changes)


@pytest.mark.parametrize(
    ("name", "status", "told"),
    [
        ("tssdn/fig4f", 0, "tssdn/fig4f:"),
        ("tssdn/fig4a", 2, "--mode live: live runs make network namespaces, which needs root"),
    ],
)
def test_run_times_need_no_root_and_others_do(
    name: str,
    status: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    words = ["loko", "evaluate", name, "--mode", "live", "--quick", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    with no_rendering(), pytest.raises(SystemExit) as end:
        cli.main()
    captured = capsys.readouterr()
    assert end.value.code == status
    assert told in captured.out + captured.err


def test_the_benchmark_measures_the_points_of_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "experiments_named", lambda _names: dict.fromkeys(NAMES, small()))
    told: list[str] = []
    points = list(schedule.growth(told.append))
    assert len(points) == 3 * len(points_of(small(), seed=1))
    mine, paper, row = points[0]
    assert (mine.way, paper.way) == ("ours", "highs time-indexed")
    assert mine.scheduled == paper.scheduled == 2
    assert row[0] == "fig4d, S/PR, 2 flows, 5 slots, 38 cables"
    assert figure_type_named("schedules").estimate_s(small()).keys() == {"live"}
