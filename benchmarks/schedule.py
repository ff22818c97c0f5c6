"""Measure time-slot scheduling (TSSDN): our method, and HiGHS, CP-SAT and CBC on the paper's programs.

Times are wall-clock times of everything after the flows are known: listing paths, building the program, and
solving it. OR-Tools runs in a separate process (`loko.solvers`); its start is measured and subtracted.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, Final

import networkx as nx

from benchmarks.measure import Row
from evaluation.kinds.duel.accepted import accepted, requests, schedule_of, timed_flows
from evaluation.kinds.duel.document import BySlots, DuelFigure
from evaluation.kinds.experiments import experiments
from loko.commands.schedule import values_of
from loko.flow import Flow
from loko.lab import Lab, load_lab
from loko.schedule.graph import Graph, graph_of
from loko.schedule.incremental import Standing
from loko.schedule.kept import KeptSchedule
from loko.schedule.packing import Paths, pack, straight_only
from loko.schedule.problem import Demand, Problem, SchedulingScheme, Solution, candidates, drawn
from loko.schedule.standing import LabStanding
from loko.solvers import Program, Solver, solver_named
from loko.solvers.program import Clock

_SEED: Final = 1
_SWEEP_S: Final = 20.0
"""Time limit for each point of figures 4d to 4f and each method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
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
    """What the paper says about the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of one method for one case."""

    case: str
    way: str
    seconds: float
    scheduled: int
    bound: int
    is_optimal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Time that a system of the duel takes to answer its requests, including modelling the switches."""

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


def _demands(graph: Graph, count: int) -> tuple[Demand, ...]:
    chance = random.Random(_SEED)
    return tuple(Demand(f"f{number}", *chance.sample(graph.hosts, 2)) for number in range(count))


def cases(*, quick: bool) -> list[Case]:
    """Return the cases that have goals; if `quick`, only small ones."""
    small = _network(nx.gnm_random_graph(6, 14, seed=_SEED), 24)
    middle = _network(nx.random_regular_graph(4, 28, seed=_SEED), 200)
    listed = [
        Case(
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
            Case(
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
            Case(
                name=name, scheme=scheme, graph=graph, flows=3000, slots=slots, goal_s=60, limit_s=0, paper=""
            )
        )
    return listed


def growth() -> list[Case]:
    """Return the cases of figures 4d, 4e and 4f (times by flows, slots and links) with the paper's sizes."""
    by_flows = _network(nx.gnm_random_graph(6, 14, seed=_SEED), 24)
    by_slots = _network(nx.waxman_graph(10, beta=1.0, alpha=2.0, seed=_SEED), 200)
    curves = [
        _sweep_case("4d", scheme, by_flows, flows=flows, slots=5)
        for flows in (20, 50, 80, 110)
        for scheme in SchedulingScheme
    ]
    shortest = (SchedulingScheme.PATH_SETS, SchedulingScheme.FIXED)
    curves += [
        _sweep_case("4e", scheme, by_slots, flows=300, slots=slots)
        for slots in (5, 20, 35, 50)
        for scheme in shortest
    ]
    for switches, hosts in ((6, 18), (12, 60), (20, 130), (28, 200)):  # 30, 84, 170 and 256 cables
        graph = _network(nx.random_regular_graph(4, switches, seed=_SEED), hosts)
        curves += [_sweep_case("4f", scheme, graph, flows=100, slots=50) for scheme in shortest]
    return curves


def _sweep_case(figure: str, scheme: SchedulingScheme, graph: Graph, *, flows: int, slots: int) -> Case:
    name = f"fig. {figure}, {scheme.value.upper().replace('-', '/')}, {flows} flows, {slots} slots,"
    return Case(
        name=f"{name} {len(graph.links) // 2} cables",
        scheme=scheme,
        graph=graph,
        flows=flows,
        slots=slots,
        goal_s=_SWEEP_S,
        limit_s=_SWEEP_S,
        paper="",
    )


def _growth_row(case: Case, ours: CaseResult, straight: CaseResult) -> Row:
    """Return a row with times per flow, as in the paper."""
    proven = "optimal" if straight.is_optimal else f"{straight.scheduled} flows"
    told = f"{ours.scheduled} flows of at most {ours.bound}"
    told += f"; HiGHS straight {1e3 * straight.seconds / case.flows:.2f} ms a flow, {proven}"
    return case.name, f"{1e3 * ours.seconds / case.flows:.2f} ms a flow", told


def measure(*, quick: bool, tell: Callable[[str], None]) -> tuple[dict[str, Any], list[Row]]:
    """Measure everything. Without OR-Tools, its solvers are left out, and the table says so."""
    has_or_tools = find_spec("ortools") is not None
    start_s: dict[Solver, float] = {
        solver: _start_s(solver) for solver in Solver if solver is not Solver.HIGHS and has_or_tools
    }
    answers: list[CaseResult] = []
    rows: list[Row] = []
    for case in cases(quick=quick):
        tell(f"  {case.name}")
        mine = [_ours(case)]
        for solver in Solver:
            if case.limit_s and (solver is Solver.HIGHS or has_or_tools) and not quick:
                mine.append(_straight(case, solver, start_s.get(solver, 0.0)))
        answers += mine
        rows += [_row(case, answer) for answer in mine]
    for case in [] if quick else growth():
        tell(f"  {case.name}")
        sweep = [_ours(case), _straight(case, Solver.HIGHS, 0.0)]
        answers += sweep
        rows.append(_growth_row(case, *sweep))
    if not has_or_tools:
        rows.append(("CP-SAT, CBC", "left out", "not installed: pip install '.[solvers]'"))
    adding = _adding()
    rows.append(
        ("adding one of 3,000 flows, slowest", f"{1e3 * max(adding):.2f} ms", "goal 10 ms; no other is moved")
    )
    answering = list(_answering())
    rows += [_answering_row(reply) for reply in answering]
    return {
        "found": [asdict(answer) for answer in answers],
        "adding_s": max(adding),
        "answering": [asdict(reply) for reply in answering],
    }, rows


def _row(case: Case, answer: CaseResult) -> Row:
    proven = (
        "optimal"
        if answer.is_optimal
        else f"at most {answer.bound}: gap {100 * (1 - answer.scheduled / answer.bound):.2f} %"
    )
    told = [f"{answer.scheduled} flows, {proven}"]
    if answer.way == "ours":
        told += [f"goal {case.goal_s:g} s", *([f"paper {case.paper}"] if case.paper else [])]
    return f"{case.name}: {answer.way}", f"{answer.seconds:.2f} s", "; ".join(told)


def _ours(case: Case) -> CaseResult:
    return _timed(
        case, "ours", lambda problem, paths, clock: pack(problem, paths, solver_named(Solver.HIGHS), clock)
    )


def _straight(case: Case, solver: Solver, start_s: float) -> CaseResult:
    solve = solver_named(solver)
    answer = _timed(
        case, f"{solver} straight", lambda problem, paths, clock: straight_only(problem, paths, solve, clock)
    )
    return CaseResult(**{**asdict(answer), "seconds": max(0.0, answer.seconds - start_s)})


def _timed(case: Case, way: str, find: Callable[[Problem, Paths | None, Clock], Solution]) -> CaseResult:
    problem = Problem(case.graph, _demands(case.graph, case.flows), case.slots)
    begin_ns = time.monotonic_ns()
    clock = Clock(now_ns=time.monotonic_ns, end_ns=begin_ns + round(1e9 * (case.limit_s or case.goal_s)))
    paths: Paths | None = None
    if case.scheme is not SchedulingScheme.UNCONSTRAINED:
        paths = candidates(problem)
        if case.scheme is SchedulingScheme.FIXED:
            chance = random.Random(_SEED)
            paths = drawn(paths, [chance.random() for _ in problem.demands])
    solution = find(problem, paths, clock)
    return CaseResult(
        case=case.name,
        way=way,
        seconds=(time.monotonic_ns() - begin_ns) / 1e9,
        scheduled=len(solution.allotments),
        bound=solution.bound,
        is_optimal=solution.is_optimal,
    )


def _start_s(solver: Solver) -> float:
    """Return the time in s that a solver's process takes for a trivial program."""
    program = Program()
    program.row("one", [program.variable(1)], high=1)
    begin_ns = time.monotonic_ns()
    solver_named(solver)(program, time_limit_s=60)
    return (time.monotonic_ns() - begin_ns) / 1e9


def _adding() -> Sequence[float]:
    """Return the time in s to add each of 3,000 flows."""
    graph = _network(nx.random_regular_graph(4, 100, seed=_SEED), 800)
    standing = Standing(graph, 200, SchedulingScheme.PATH_SETS)
    taken = []
    for demand in _demands(graph, 3000):
        begin_ns = time.monotonic_ns()
        standing.add(demand)
        taken.append((time.monotonic_ns() - begin_ns) / 1e9)
    return taken


def _answering() -> Iterator[Answering]:
    """Yield the times of the systems of `tssdn/duel` on its labs, without cached models of switches."""
    figure = experiments()["tssdn/duel"]
    assert isinstance(figure, DuelFigure)
    for arena in figure.arenas:
        for contender in figure.contenders:
            lab = load_lab(arena.lab)
            wanted = requests(figure, arena, lab, figure.rate_kbps)
            begin_ns = time.monotonic_ns()
            accepted(figure, contender, lab, wanted)
            seconds = (time.monotonic_ns() - begin_ns) / 1e9
            yield Answering(
                lab=arena.label,
                system=contender.label,
                requests=len(wanted),
                seconds=seconds,
                one_more_s=_one_more_s(figure, contender, lab, wanted)
                if isinstance(contender, BySlots)
                else None,
            )


def _one_more_s(figure: DuelFigure, contender: BySlots, lab: Lab, wanted: Sequence[Flow]) -> float:
    """Return the time in s to add the last flow to a schedule of the others, as `loko serve` does."""
    before = schedule_of(figure, contender, lab, wanted[:-1])
    kept = KeptSchedule.model_validate_json(json.dumps(values_of(before, 0.0)))
    standing = LabStanding(lab, kept, frame_bytes={flow.frame_bytes for flow in wanted})
    for scheduled in before.scheduled:
        standing.keep(scheduled.timed, scheduled.slot, scheduled.path)
    last = timed_flows(wanted)[-1]
    begin_ns = time.monotonic_ns()
    standing.add(last)
    return (time.monotonic_ns() - begin_ns) / 1e9


def _answering_row(answering: Answering) -> Row:
    told = f"{answering.requests} requests in {answering.seconds:.3f} s"
    if answering.one_more_s is not None:
        told += f", all at once; one more, moving nobody: {1e3 * answering.one_more_s:.2g} ms"
    return (
        f"{answering.lab}, {answering.system}: a request",
        f"{1e3 * answering.seconds / answering.requests:.2f} ms",
        told,
    )
