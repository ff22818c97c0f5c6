"""Measure time-slot scheduling (TSSDN): our method, and HiGHS, CP-SAT and CBC on the paper's programs.

Times are wall-clock times of everything after the flows are known: listing paths, building the program, and
solving it. OR-Tools runs in a separate process (`loko.solvers`); its start is measured and subtracted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any, Final

import networkx as nx

from benchmarks.measure import MeasuredRow
from loko.schedule.graph import Graph, graph_of
from loko.schedule.incremental import IncrementalSchedule
from loko.schedule.problem import SchedulingProblem, SchedulingScheme
from loko.schedule.values import values_of
from loko.solvers import IntegerProgram, Solver, solver_named
from loko.topology.lab import load_lab
from loko_testbed.reproduce.figure_types.comparison.admission import requests, schedule_of
from loko_testbed.reproduce.figure_types.comparison.answer_times import answering_s, one_more_s
from loko_testbed.reproduce.figure_types.comparison.document import ComparisonFigure, SlotSystem
from loko_testbed.reproduce.figure_types.experiments import experiments, experiments_named
from loko_testbed.reproduce.figure_types.schedules.document import RunTimes
from loko_testbed.reproduce.figure_types.schedules.run_times import WAYS, points_of
from loko_testbed.reproduce.figure_types.schedules.timing import (
    Find,
    RunTiming,
    demands,
    ours,
    time_indexed,
    timed,
)
from loko_testbed.reproduce.schedule_check.document import ScheduleDocument
from loko_testbed.reproduce.schedule_check.incremental import IncrementalCheck

_SEED: Final = 1
_GROWTH: Final = ("tssdn/fig4d", "tssdn/fig4e", "tssdn/fig4f")
"""The figures whose documents say what is scheduled, and for how long at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedProblem:
    """A problem, with a goal for the time to solve it."""

    name: str
    scheme: SchedulingScheme
    graph: Graph
    flows: int
    slots: int
    goal_s: float
    limit_s: float
    """Time limit for solvers of the paper's program; 0: these are not tried."""
    paper: str
    """The paper's statement about the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedResult:
    """The result of one method for one case."""

    case: str
    way: str
    seconds: float
    scheduled: int
    bound: int
    is_optimal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Time that a system of the comparison takes to answer its requests, including modelling the switches."""

    lab: str
    system: str
    requests: int
    seconds: float
    one_more_s: float | None
    """For schedules: time to add one flow without moving others; else None."""


def _network(model: nx.Graph, hosts: int) -> Graph:
    names = [f"h{number}" for number in range(hosts)]
    nodes = sorted(model.nodes)
    cables = [(f"s{a}", f"s{b}") for a, b in model.edges]
    cables += [(name, f"s{nodes[number % len(nodes)]}") for number, name in enumerate(names)]
    return graph_of(names, cables)


def cases(*, quick: bool) -> list[TimedProblem]:
    """Return the cases that have goals; if `quick`, only small ones."""
    small = _network(nx.gnm_random_graph(6, 14, seed=_SEED), 24)
    middle = _network(nx.random_regular_graph(4, 28, seed=_SEED), 200)
    listed = [
        TimedProblem(
            name="S/UR 110 flows, 24 hosts, 6 switches, 5 slots",
            scheme=SchedulingScheme.UNCONSTRAINED,
            graph=small,
            flows=110,
            slots=5,
            goal_s=10,
            limit_s=60,
            paper="over 120 s",
        )
    ]
    for word, scheme, paper in (
        ("S/PR", SchedulingScheme.PATH_SETS, "12 s a flow at worst"),
        ("S/FR", SchedulingScheme.FIXED, "under 2 s a flow"),
    ):
        name = f"{word} 300 flows, 256 links, 50 slots"
        listed.append(
            TimedProblem(
                name=name, scheme=scheme, graph=middle, flows=300, slots=50, goal_s=1, limit_s=60, paper=paper
            )
        )
    if quick:
        return listed
    large = _network(nx.random_regular_graph(4, 100, seed=_SEED), 800)
    full = _network(nx.random_regular_graph(8, 200, seed=_SEED), 200)
    for word, graph, slots in (("", large, 200), (", hosts full", full, 15)):
        name = f"S/PR 3,000 flows, 1,000 links, {slots} slots{word}"
        scheme = SchedulingScheme.PATH_SETS
        listed.append(
            TimedProblem(
                name=name, scheme=scheme, graph=graph, flows=3000, slots=slots, goal_s=60, limit_s=0, paper=""
            )
        )
    return listed


def growth(tell: Callable[[str], None]) -> Iterator[tuple[TimedResult, TimedResult, MeasuredRow]]:
    """Measure each point of figures 4d, 4e and 4f once, with our method and the time-indexed program."""
    known = experiments_named(_GROWTH)
    solve = solver_named(Solver.HIGHS)
    for name in _GROWTH:
        figure = known[name]
        assert isinstance(figure, RunTimes)
        for point in points_of(figure, seed=_SEED):
            case = (
                f"{figure.figure}, {point.scheme.value.upper().replace('-', '/')},"
                f" {len(point.problem.demands)} flows, {point.problem.slots} slots, {point.links} cables"
            )
            tell(f"  {case}")
            mine, paper = (
                _result(
                    case,
                    way if way == "ours" else f"{Solver.HIGHS} {way.replace('_', '-')}",
                    timed(find, point.problem, point.scheme, solve, limit_s=figure.limit_s, seed=_SEED),
                )
                for way, find in WAYS.items()
            )
            yield mine, paper, _growth_row(case, len(point.problem.demands), mine, paper)


def _growth_row(case: str, flows: int, ours: TimedResult, time_indexed: TimedResult) -> MeasuredRow:
    """Return a row with times per flow, as in the paper."""
    proven = "optimal" if time_indexed.is_optimal else f"{time_indexed.scheduled} flows"
    told = f"{ours.scheduled} flows of at most {ours.bound}"
    told += f"; HiGHS time-indexed {1e3 * time_indexed.seconds / flows:.2f} ms a flow, {proven}"
    return case, f"{1e3 * ours.seconds / flows:.2f} ms a flow", told


def measure(*, quick: bool, tell: Callable[[str], None]) -> tuple[dict[str, Any], list[MeasuredRow]]:
    """Measure everything. Without OR-Tools, its solvers are left out, and the table says so."""
    has_or_tools = find_spec("ortools") is not None
    start_s: dict[Solver, float] = {
        solver: _start_s(solver) for solver in Solver if solver is not Solver.HIGHS and has_or_tools
    }
    answers: list[TimedResult] = []
    rows: list[MeasuredRow] = []
    for case in cases(quick=quick):
        tell(f"  {case.name}")
        mine = [_ours(case)]
        for solver in Solver:
            if case.limit_s and (solver is Solver.HIGHS or has_or_tools) and not quick:
                mine.append(_time_indexed(case, solver, start_s.get(solver, 0.0)))
        answers += mine
        rows += [_row(case, answer) for answer in mine]
    for ours_here, time_indexed_here, row in [] if quick else growth(tell):
        answers += [ours_here, time_indexed_here]
        rows.append(row)
    if not has_or_tools:
        rows.append(("CP-SAT, CBC", "left out", "not installed: pip install '.[solvers]'"))
    adding = _adding()
    rows.append(
        ("adding one of 3,000 flows, slowest", f"{1e3 * max(adding):.2f} ms", "goal 10 ms; no other is moved")
    )
    answering = list(_answering())
    rows += [_answering_row(reply) for reply in answering]
    checking = dict(_checking())
    rows += [
        (f"{lab}: replay before one more flow is granted", f"{1e3 * seconds:.0f} ms", "by the checker")
        for lab, seconds in checking.items()
    ]
    return {
        "found": [asdict(answer) for answer in answers],
        "adding_s": max(adding),
        "answering": [asdict(reply) for reply in answering],
        "checking_s": checking,
    }, rows


def _row(case: TimedProblem, answer: TimedResult) -> MeasuredRow:
    proven = (
        "optimal"
        if answer.is_optimal
        else f"at most {answer.bound}: gap {100 * (1 - answer.scheduled / answer.bound):.2f} %"
    )
    told = [f"{answer.scheduled} flows, {proven}"]
    if answer.way == "ours":
        told += [f"goal {case.goal_s:g} s", *([f"paper {case.paper}"] if case.paper else [])]
    return f"{case.name}: {answer.way}", f"{answer.seconds:.2f} s", "; ".join(told)


def _ours(case: TimedProblem) -> TimedResult:
    return _timed(case, "ours", ours, Solver.HIGHS)


def _time_indexed(case: TimedProblem, solver: Solver, start_s: float) -> TimedResult:
    result = _timed(case, f"{solver} time-indexed", time_indexed, solver)
    return replace(result, seconds=max(0.0, result.seconds - start_s))


def _timed(case: TimedProblem, way: str, find: Find, solver: Solver) -> TimedResult:
    problem = SchedulingProblem(case.graph, demands(case.graph, case.flows, seed=_SEED), case.slots)
    limit_s = case.limit_s or case.goal_s
    timing = timed(find, problem, case.scheme, solver_named(solver), limit_s=limit_s, seed=_SEED)
    return _result(case.name, way, timing)


def _result(case: str, way: str, timing: RunTiming) -> TimedResult:
    return TimedResult(
        case=case,
        way=way,
        seconds=timing.seconds,
        scheduled=timing.scheduled,
        bound=timing.bound,
        is_optimal=timing.is_optimal,
    )


def _start_s(solver: Solver) -> float:
    """Return the time in s that a solver's process takes for a trivial program."""
    program = IntegerProgram()
    program.row("one", [program.variable(1)], high=1)
    begin_ns = time.monotonic_ns()
    solver_named(solver)(program, time_limit_s=60)
    return (time.monotonic_ns() - begin_ns) / 1e9


def _adding() -> Sequence[float]:
    """Return the time in s to add each of 3,000 flows."""
    graph = _network(nx.random_regular_graph(4, 100, seed=_SEED), 800)
    incremental = IncrementalSchedule(graph, 200, SchedulingScheme.PATH_SETS)
    taken = []
    for demand in demands(graph, 3000, seed=_SEED):
        begin_ns = time.monotonic_ns()
        incremental.add(demand)
        taken.append((time.monotonic_ns() - begin_ns) / 1e9)
    return taken


def _answering() -> Iterator[Answering]:
    """Yield the times of the systems of `tssdn/comparison` on its labs, without cached models of switches."""
    figure = experiments()["tssdn/comparison"]
    assert isinstance(figure, ComparisonFigure)
    for comparison_lab in figure.labs:
        for compared in figure.systems:
            yield Answering(
                lab=comparison_lab.label,
                system=compared.label,
                requests=comparison_lab.requests,
                seconds=answering_s(figure, comparison_lab, compared, figure.rate_kbps),
                one_more_s=one_more_s(figure, comparison_lab, compared)
                if isinstance(compared, SlotSystem)
                else None,
            )


def _checking() -> Iterator[tuple[str, float]]:
    """Yield, by lab, the time in s of the replay that `loko serve --schedule` waits for at one more flow."""
    figure = experiments()["tssdn/comparison"]
    assert isinstance(figure, ComparisonFigure)
    compared = next(compared for compared in figure.systems if isinstance(compared, SlotSystem))
    for comparison_lab in figure.labs:
        lab = load_lab(comparison_lab.lab)
        wanted = requests(figure, comparison_lab, lab, figure.rate_kbps)
        values = values_of(schedule_of(figure, compared, lab, wanted), 0.0)
        check = IncrementalCheck(lab, ScheduleDocument.model_validate(values))
        for flow in values["scheduled"]:
            check.refutations(flow)
        begin_ns = time.monotonic_ns()
        check.refutations_by_replay(values["scheduled"][-1]["id"])
        yield comparison_lab.label, (time.monotonic_ns() - begin_ns) / 1e9


def _answering_row(answering: Answering) -> MeasuredRow:
    told = f"{answering.requests} requests in {answering.seconds:.3f} s"
    if answering.one_more_s is not None:
        told += f", all at once; one more, moving nobody: {1e3 * answering.one_more_s:.2g} ms"
    return (
        f"{answering.lab}, {answering.system}: a request",
        f"{1e3 * answering.seconds / answering.requests:.2f} ms",
        told,
    )
