"""Networks and flows that schedules are tested on, from hypothesis."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence

from hypothesis import strategies as st

from loko.flow import Flow
from loko.lab import Lab
from loko.schedule.graph import Graph, graph_of
from loko.schedule.lab_schedule import Wishes, schedule
from loko.schedule.problem import Demand, Problem, SchedulingScheme, Solution
from loko.schedule.timed_flow import TimedFlow
from loko.schedule.values import values_of
from loko.serve.slots import ServedSchedule
from loko.solvers import Solver, solver_named
from loko.solvers.program import Clock

HOSTS = 5


def clock(seconds=60.0) -> Clock:
    return Clock(now_ns=time.monotonic_ns, end_ns=time.monotonic_ns() + round(seconds * 1e9))


def served_schedule(
    lab: Lab,
    flows: Sequence[Flow],
    *,
    slots: int,
    scheme: SchedulingScheme = SchedulingScheme.PATH_SETS,
    changes_per_s: float = 20.0,
) -> ServedSchedule:
    """What `loko schedule --json` prints for these flows, each with a frame a base period."""
    wanted = [TimedFlow(*flow[:5], flow.frame_bytes, None, None) for flow in flows]
    wishes = Wishes(scheme=scheme, slots=slots, guard_ns=2000, changes_per_s=changes_per_s)
    result = schedule(lab, wanted, wishes, solver_named(Solver.HIGHS), clock())
    return ServedSchedule.model_validate_json(json.dumps(values_of(result, 0.0)))


def benchmark_topology(hosts=5) -> Graph:
    """Fig. 2 of the TSSDN paper: as many hosts at each of two switches."""
    cables = [("S1", "S2")]
    cables += [(f"A{number}", "S1") for number in range(1, hosts + 1)]
    cables += [(f"B{number}", "S2") for number in range(1, hosts + 1)]
    return graph_of([end for end, _ in cables[1:]], cables)


@st.composite
def problems(draw: st.DrawFn, *, most_flows=9, most_slots=3) -> Problem:
    """Connected networks of up to four switches, with flows between hosts."""
    switches = [f"s{number}" for number in range(draw(st.integers(1, 4)))]
    cables = [(later, draw(st.sampled_from(switches[:at]))) for at, later in enumerate(switches) if at]
    others = [
        pair
        for pair in itertools.combinations(switches, 2)
        if pair not in cables and pair[::-1] not in cables
    ]
    cables += draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    hosts = [f"h{number}" for number in range(HOSTS)]
    cables += [(host, draw(st.sampled_from(switches))) for host in hosts]
    ends = draw(st.lists(st.permutations(hosts), min_size=1, max_size=most_flows))
    demands = tuple(Demand(f"f{number}", pair[0], pair[1]) for number, pair in enumerate(ends))
    return Problem(graph_of(hosts, cables), demands, draw(st.integers(1, most_slots)))


def refuted(problem: Problem, solution: Solution) -> str | None:
    """What is wrong with a schedule, by the definitions of section 3.1; written without any of its code."""
    used = set()
    demands = {demand.id: demand for demand in problem.demands}
    for flow, (slot, path) in solution.allotments.items():
        nodes = [problem.graph.links[path[0]].tail] + [problem.graph.links[link].head for link in path]
        if not 0 <= slot < problem.slots:
            return f"{flow}: slot {slot}"
        if (nodes[0], nodes[-1]) != demands[flow][1:]:
            return f"{flow}: leads from {nodes[0]} to {nodes[-1]}"
        for incoming, outgoing in itertools.pairwise(path):
            if problem.graph.links[incoming].head != problem.graph.links[outgoing].tail:
                return f"{flow}: is broken"
        if len(set(nodes)) != len(nodes):
            return f"{flow}: has a loop"
        for link in path:
            if (slot, link) in used:
                return f"{flow}: is not alone on {problem.graph.links[link]} in slot {slot}"
            used.add((slot, link))
    return None
