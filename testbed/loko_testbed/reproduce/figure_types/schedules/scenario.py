"""One scenario: a random network, random flows, and the schedules of the three schemes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, NamedTuple

from loko.document import InputError
from loko.schedule.graph import Graph, graph_of
from loko.schedule.packing import pack
from loko.schedule.problem import (
    SchedulingProblem,
    SchedulingScheme,
    SlotDemand,
    candidate_paths,
    random_paths,
)
from loko.solvers import Solver, solver_named
from loko.solvers.program import TimeBudget
from loko_testbed.reproduce.figure_types.schedules.check import refuse_refuted
from loko_testbed.reproduce.figure_types.schedules.document import Topology

_NEVER: Final = TimeBudget(now_ns=lambda: 0, end_ns=24 * 3600 * 10**9)
"""A clock that never ends the search, so that its result depends on the scenario alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleScenario:
    """A scenario to schedule. Its result depends on nothing else."""

    topology: Topology
    hosts: int
    switches: int
    flows: int
    slots: int
    seed: int


class ScenarioRow(NamedTuple):
    """Numbers of flows that got slots under each scheme, with upper bounds on them."""

    model: str
    topology_seed: int
    cables: int
    flows: int
    slots: int
    s_ur: int
    s_ur_bound: int
    s_pr: int
    s_pr_bound: int
    s_fr: int
    s_fr_bound: int


def run_scenario(scenario: ScheduleScenario) -> ScenarioRow:
    """Schedule with all three schemes.

    S/PR starts from S/FR's solution, and S/UR from S/PR's: each scheme allows all that the previous one does.
    Raises `RunError` if the checker refutes one of them.
    """
    graph = network(scenario.topology, hosts=scenario.hosts, switches=scenario.switches)
    chance = random.Random(f"{scenario.seed} {scenario.topology.seed} {scenario.flows} {scenario.slots}")
    demands = tuple(
        SlotDemand(f"f{number}", *chance.sample(graph.hosts, 2)) for number in range(scenario.flows)
    )
    problem = SchedulingProblem(graph, demands, scenario.slots)
    shortest = candidate_paths(problem)
    solve = solver_named(Solver.HIGHS)
    fixed = random_paths(shortest, [chance.random() for _ in demands])
    s_fr = pack(problem, fixed, solve, _NEVER, is_thorough=False)
    s_pr = pack(problem, shortest, solve, _NEVER, start=s_fr.assignments, is_thorough=False)
    s_ur = pack(problem, None, solve, _NEVER, start=s_pr.assignments, is_thorough=False)
    for scheme, solution, paths in (
        (SchedulingScheme.FIXED, s_fr, fixed),
        (SchedulingScheme.PATH_SETS, s_pr, shortest),
        (SchedulingScheme.UNCONSTRAINED, s_ur, None),
    ):
        refuse_refuted(problem, scheme, solution, paths)
    counts = (
        number for solution in (s_ur, s_pr, s_fr) for number in (len(solution.assignments), solution.bound)
    )
    cables = len(graph.links) // 2
    topology = scenario.topology
    return ScenarioRow(topology.model, topology.seed, cables, scenario.flows, scenario.slots, *counts)


def network(topology: Topology, *, hosts: int, switches: int) -> Graph:
    """Build the network of a topology. Raises `InputError` if it is not connected or impossible."""
    networkx: Any = import_module("networkx")  # it has no types; only these figures need it
    whole = round(topology.parameter)
    makers = {
        "erdos-renyi": lambda: networkx.gnm_random_graph(switches, whole, seed=topology.seed),
        "random-regular": lambda: networkx.random_regular_graph(whole, switches, seed=topology.seed),
        "barabasi-albert": lambda: networkx.barabasi_albert_graph(switches, whole, seed=topology.seed),
        "waxman": lambda: networkx.waxman_graph(
            switches, beta=1.0, alpha=topology.parameter, seed=topology.seed
        ),
    }
    try:
        graph = makers[topology.model]()
    except networkx.NetworkXError as error:
        raise InputError(f"topology {topology.model} with {topology.parameter:g}: {error}") from None
    if not networkx.is_connected(graph):
        raise InputError(
            f"topology {topology.model} with seed {topology.seed}: is not connected; take another"
        )
    names = [f"h{number}" for number in range(hosts)]
    cables = [(f"s{a}", f"s{b}") for a, b in sorted(graph.edges)]
    cables += [(name, f"s{number % switches}") for number, name in enumerate(names)]
    return graph_of(names, cables)
