"""Every schedule of a figure passes the independent checker."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.runner import RunError
from evaluation.schedule_check.graphs import Given, Sought, graph_refutations
from loko.schedule.graph import Graph, Path
from loko.schedule.problem import Problem, SchedulingScheme, Solution


def refuse_refuted(problem: Problem, scheme: SchedulingScheme, solution: Solution) -> None:
    """Raise `RunError` if the checker refutes the solution: then the figure has no result."""
    graph = problem.graph
    told = graph_refutations(
        {(link.tail, link.head) for link in graph.links},
        graph.hosts,
        [Sought(demand.id, demand.source, demand.destination) for demand in problem.demands],
        [
            Given(name, allotment.slot, _nodes(graph, allotment.path))
            for name, allotment in solution.allotments.items()
        ],
        slots=problem.slots,
        bound=solution.bound,
        shortest=scheme is not SchedulingScheme.UNCONSTRAINED,
    )
    if told:
        raise RunError(f"the checker refutes a schedule of {scheme.value}: {told[0]}; please report it")


def _nodes(graph: Graph, path: Path) -> tuple[str, ...]:
    links: Sequence[int] = path
    return (graph.links[links[0]].tail, *(graph.links[number].head for number in links))
