"""Hand a schedule of a graph to the checker; a figure says nothing of a schedule that is refuted."""

from __future__ import annotations

from collections.abc import Sequence

from loko.schedule.graph import Graph, Path
from loko.schedule.packing import Paths
from loko.schedule.problem import ScheduleSolution, SchedulingProblem, SchedulingScheme
from loko_testbed.reproduce.schedule_check.graphs import GraphSchedule, graph_refutations
from loko_testbed.simulation.runner import RunError


def refuse_refuted(
    problem: SchedulingProblem, scheme: SchedulingScheme, solution: ScheduleSolution, paths: Paths | None
) -> None:
    """Raise `RunError` if the checker refutes the schedule. `paths` are those that flows may take."""
    graph = problem.graph
    told = graph_refutations(
        GraphSchedule(
            hosts=graph.hosts,
            links=[(link.tail, link.head) for link in graph.links],
            flows={demand.id: (demand.source, demand.destination) for demand in problem.demands},
            allowed=_as_document(problem, paths) if scheme is SchedulingScheme.FIXED else None,
            is_shortest=scheme is not SchedulingScheme.UNCONSTRAINED,
            slots=problem.slots,
            bound=solution.bound,
            assigned={
                flow: (allotment.slot, _nodes(graph, allotment.path))
                for flow, allotment in solution.assignments.items()
            },
        )
    )
    if told:
        raise RunError(
            f"the checker refutes a schedule of {len(problem.demands)} flows by {scheme.value}: {told[0]};"
            " please report it"
        )


def _as_document(problem: SchedulingProblem, paths: Paths | None) -> dict[str, Sequence[tuple[str, ...]]]:
    assert paths is not None, "they are drawn before"
    return {
        demand.id: [_nodes(problem.graph, path) for path in own]
        for demand, own in zip(problem.demands, paths, strict=True)
    }


def _nodes(graph: Graph, path: Path) -> tuple[str, ...]:
    links = [graph.links[number] for number in path]
    return (links[0].tail, *(link.head for link in links)) if links else ()
