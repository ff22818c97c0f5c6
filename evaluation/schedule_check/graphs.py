"""What refutes a schedule on a graph that is no lab: nothing can be replayed there, so arithmetic only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import networkx as nx


class Sought(NamedTuple):
    """A flow of the list that was scheduled."""

    id: str
    source: str
    destination: str


class Given(NamedTuple):
    """The slot of a flow, and the nodes that its frames pass, both ends included."""

    id: str
    slot: int
    nodes: tuple[str, ...]


def graph_refutations(
    cables: Iterable[tuple[str, str]],
    hosts: Iterable[str],
    sought: Sequence[Sought],
    given: Sequence[Given],
    *,
    slots: int,
    bound: int,
    shortest: bool,
) -> list[str]:
    """Everything that is wrong with a schedule, a line each; nothing if all holds.

    `shortest`: whether only shortest paths are allowed, as under S/PR and S/FR.
    """
    net, wanted = _Network(cables, hosts), {flow.id: flow for flow in sought}
    told = [
        f"{name}: has {count} slots"
        for name, count in Counter(flow.id for flow in given).items()
        if count > 1
    ]
    if len(given) > bound:
        told.append(f"{len(given)} flows are scheduled, above the bound {bound}")
    for flow in given:
        if flow.id not in wanted:
            told.append(f"{flow.id}: nobody asked for it")
            continue
        if not 0 <= flow.slot < slots:
            told.append(f"{flow.id}: slot {flow.slot} is not in 0 to {slots - 1}")
        told += _of_path(net, wanted[flow.id], flow, shortest=shortest)
    return [*told, *_collisions(given)]


class _Network:
    """Who is connected to whom; hosts forward nothing."""

    def __init__(self, cables: Iterable[tuple[str, str]], hosts: Iterable[str]) -> None:
        self.graph: nx.Graph[str] = nx.Graph(cables)
        self.hosts = frozenset(hosts)
        self._inner = self.graph.subgraph(set(self.graph) - self.hosts)
        self._from: dict[str, dict[str, int]] = {}

    def distance(self, source: str, destination: str) -> float:
        """Return the fewest cables from host to host; infinite if no path leads there."""
        if self.graph.has_edge(source, destination):
            return 1
        lasts = [node for node in self.graph[destination] if node in self._inner]
        between = (
            self._distances(first).get(last, math.inf)
            for first in self.graph[source]
            if first in self._inner
            for last in lasts
        )
        return 2 + min(between, default=math.inf)

    def _distances(self, switch: str) -> dict[str, int]:
        if switch not in self._from:
            self._from[switch] = nx.single_source_shortest_path_length(self._inner, switch)
        return self._from[switch]


def _of_path(net: _Network, wanted: Sought, given: Given, *, shortest: bool) -> Iterator[str]:
    nodes = given.nodes
    if (nodes[:1], nodes[-1:]) != ((wanted.source,), (wanted.destination,)):
        yield f"{given.id}: its path does not lead from {wanted.source} to {wanted.destination}"
        return
    if len(set(nodes)) != len(nodes):
        yield f"{given.id}: its path has a loop: {' '.join(nodes)}"
    for host in sorted(net.hosts.intersection(nodes[1:-1])):
        yield f"{given.id}: its path leads through {host}, which is a host"
    for a, b in pairwise(nodes):
        if not net.graph.has_edge(a, b):
            yield f"{given.id}: no cable leads from {a} to {b}"
            return
    if shortest and len(nodes) - 1 != net.distance(wanted.source, wanted.destination):
        yield f"{given.id}: its path is not a shortest one"


def _collisions(given: Sequence[Given]) -> Iterator[str]:
    owners: dict[tuple[int, str, str], str] = {}
    for flow in given:
        for a, b in pairwise(flow.nodes):
            other = owners.setdefault((flow.slot, a, b), flow.id)
            if other != flow.id:
                yield f"{flow.id}: is not alone from {a} to {b} in slot {flow.slot}: {other} is there, too"
