"""Network from which a new lab is drawn: switches, hosts and cables, without ports and addresses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import networkx as nx

from loko.document import InputError

_MOST_SWITCHES: Final = 4000
"""As a ring; the boards' maker has addresses for 4,096."""
_MOST_HOSTS: Final = 250
"""At one switch; its hosts share the last byte of their addresses."""


class Shape(StrEnum):
    """Networks that need no drawing."""

    LINE = "line"
    RING = "ring"
    TREE = "tree"


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Named nodes, and the cables between them. A host has an interface for each of its cables."""

    name: str
    title: str
    switches: tuple[str, ...]
    hosts: tuple[str, ...]
    cables: tuple[tuple[str, str], ...]
    interfaces: tuple[tuple[str, str], ...] = ()
    """Names of the interfaces at the ends of each cable; empty if not stated."""

    def check(self) -> None:
        """Raise `InputError`, in one line, if no lab can be made from this drawing."""
        seen: set[str] = set()
        for node in (*self.hosts, *self.switches):
            if node in seen:
                raise InputError(f"{self.title}: two nodes are named '{node}'; rename one")
            seen.add(node)
        graph = nx.MultiGraph()
        graph.add_nodes_from(seen)
        graph.add_edges_from(self.cables)
        if not self.switches or not self.hosts:
            missing = "switch" if not self.switches else "host"
            raise InputError(f"{self.title}: has no {missing}; a lab needs hosts at switches (--hosts)")
        for host in self.hosts:
            if graph.degree[host] == 0:
                raise InputError(f"{self.title}: host '{host}' has no cable; give it one")
        start = next(iter(self.switches))
        reached = nx.node_connected_component(graph.subgraph(self.switches), start)
        reached |= {host for host in self.hosts if not reached.isdisjoint(graph[host])}
        if lost := seen - reached:  # nothing passes through a host
            raise InputError(f"{self.title}: {min(lost)} cannot be reached from {start}; connect the network")


def draw(shape: Shape, *, name: str, switches: int, hosts: int, fanout: int) -> Drawing:
    """A line, ring or tree of switches s1, s2, … with hosts: at all of them, of a tree at its leaves only.

    Raises `InputError` if there are too few or too many of anything.
    """
    least = {Shape.LINE: 1, Shape.RING: 3, Shape.TREE: 1}[shape]
    if not least <= switches <= _MOST_SWITCHES:
        raise InputError(
            f"--switches {switches}: a {shape} has {least} to {_MOST_SWITCHES}; choose among these"
        )
    refuse_hosts(hosts)
    if shape is Shape.LINE:
        graph = nx.path_graph(switches)
    elif shape is Shape.RING:
        graph = nx.cycle_graph(switches)
    else:
        graph = nx.full_rary_tree(fanout, switches)
    bearing = [node for node in graph if shape is not Shape.TREE or all(far < node for far in graph[node])]
    bare = Drawing(
        name=name,
        title=f"{shape.capitalize()} of {switches} switches",
        switches=tuple(f"s{node + 1}" for node in graph),
        hosts=(),
        cables=tuple((f"s{a + 1}", f"s{b + 1}") for a, b in graph.edges),
    )
    return with_hosts(bare, hosts, at=[f"s{node + 1}" for node in bearing])


def with_hosts(drawing: Drawing, hosts: int, at: list[str]) -> Drawing:
    """Return the drawing with hosts at each of these switches: h1, h2, ….

    Where there are several, h1a, h1b, …
    """
    named = list(drawing.hosts)
    cables = []
    for switch in at:
        number = drawing.switches.index(switch) + 1
        for which in range(hosts):
            host = f"h{number}" if hosts == 1 else f"h{number}{_letters(which)}"
            named.append(host)
            cables.append((host, switch))
    return Drawing(
        name=drawing.name,
        title=drawing.title,
        switches=drawing.switches,
        hosts=tuple(named),
        cables=(*cables, *drawing.cables),
    )


def refuse_hosts(hosts: int) -> None:
    """Raise `InputError` for more hosts at a switch than there are addresses for, or for none."""
    if not 1 <= hosts <= _MOST_HOSTS:
        raise InputError(f"--hosts {hosts}: choose 1 to {_MOST_HOSTS} at a switch")


def _letters(which: int) -> str:
    high, low = divmod(which, 26)
    return (chr(ord("a") + high - 1) if high else "") + chr(ord("a") + low)
