"""Frame sizes that can reach each switch, whatever paths flows are given (docs/model.md, section 17)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple

from loko.document import InputError
from loko.lazy_mapping import LazyMapping
from loko.topology.lab import Lab

Ends = tuple[str, str]
"""Source and destination."""


def sizes_by_switch(lab: Lab, crossings: Iterable[tuple[int, frozenset[str]]]) -> dict[str, tuple[int, ...]]:
    """Return the frame sizes that can reach each switch, in increasing order.

    `crossings` has frame sizes, each with the switches that its frames can cross. Switches that no frame can
    reach are left out.
    """
    sizes: dict[str, set[int]] = {}
    for frame_bytes, switches in set(crossings):
        for switch in switches:
            sizes.setdefault(switch, set()).add(frame_bytes)
    return {name: tuple(sorted(sizes[name])) for name in lab.switches if name in sizes}


class DeclaredSize(NamedTuple):
    """A frame size that a service is told to expect."""

    frame_bytes: int
    hosts: tuple[str, ...] = ()
    """Between which hosts; empty: between any."""

    def __str__(self) -> str:
        return f"{self.frame_bytes}@{'+'.join(self.hosts)}" if self.hosts else str(self.frame_bytes)


def parse_size(text: str, lab: Lab) -> DeclaredSize:
    """Read `BYTES`, or `BYTES@HOST,HOST,...`. Raises `InputError`."""
    size, at, listed = text.partition("@")
    hosts = tuple(sorted(set(listed.split(",")))) if at else ()
    if not (size.isascii() and size.isdecimal()) or len(hosts) == 1:
        raise InputError(
            f"--frame-bytes '{text}': give bytes, or bytes@HOST,HOST for frames between these hosts only,"
            " such as 1500@h1,h2"
        )
    for host in hosts:
        if host not in lab.hosts:
            raise InputError(f"--frame-bytes '{text}': lab '{lab.name}' has no host '{host}'")
    return DeclaredSize(int(size), hosts)


def declared_sizes(lab: Lab, declared: Iterable[DeclaredSize]) -> dict[str, tuple[int, ...]]:
    """Return the sizes by switch; empty if all sizes are declared for all hosts."""
    declared = tuple(declared)
    if not any(size.hosts for size in declared):
        return {}
    crossable = CrossableSwitches(lab)
    return sizes_by_switch(
        lab,
        (
            (size.frame_bytes, switches)
            for size in declared
            for switches in (
                (crossable.between(*pair) for pair in combinations(size.hosts, 2))
                if size.hosts
                else (frozenset(lab.switches),)
            )
        ),
    )


class CrossableSwitches:
    """For two hosts, the switches on any path without a loop between them.

    They are those of the blocks (biconnected components) between the hosts' switches in the block-cut tree.
    """

    def __init__(self, lab: Lab) -> None:
        import networkx as nx  # noqa: PLC0415 - it takes time to load, and most plans have one size

        self._lab = lab
        graph = nx.Graph()
        graph.add_nodes_from(lab.switches)
        graph.add_edges_from(
            (a.node, b.node)
            for a, b in lab.cables()
            if a.node in lab.switches and b.node in lab.switches and a.node != b.node
        )
        self._blocks = [frozenset(block) for block in nx.biconnected_components(graph)]
        tree = nx.Graph()
        tree.add_nodes_from(lab.switches)
        tree.add_edges_from((number, name) for number, block in enumerate(self._blocks) for name in block)
        self._above: dict[str | int, str | int] = {}
        """By switch, or number of a block: what is next to it on the way to the root of its tree."""
        self._depth: dict[str | int, int] = {}
        for component in nx.connected_components(tree):
            root = min(component, key=str)
            self._depth[root] = 0
            for above, below in nx.bfs_edges(tree, root):
                self._above[below] = above
                self._depth[below] = self._depth[above] + 1
        self._known: LazyMapping[Ends, frozenset[str]] = LazyMapping(self._between)

    def between(self, source: str, destination: str) -> frozenset[str]:
        """Return the switches that frames from one host to another can cross; none for unknown hosts."""
        begin, end = self._switch_of(source), self._switch_of(destination)
        return frozenset() if begin is None or end is None else self._known[begin, end]

    def _switch_of(self, host: str) -> str | None:
        """Return the switch that a host's only cable leads to, if it leads to one."""
        return next((far.node for _, far in self._lab.neighbours(host) if far.node in self._depth), None)

    def _between(self, switches: Ends) -> frozenset[str]:
        near: str | int
        far: str | int
        near, far = switches
        crossed = {*switches}
        while near != far:
            if self._depth[near] < self._depth[far]:
                near, far = far, near
            if near not in self._above:  # no path leads from one to the other
                return frozenset()
            if isinstance(near, int):
                crossed |= self._blocks[near]
            near = self._above[near]
        if isinstance(near, int):
            crossed |= self._blocks[near]
        return frozenset(crossed)
