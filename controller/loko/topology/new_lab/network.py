"""Network from which a new lab is drawn: switches, hosts and cables, without ports and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from loko.document import InputError

_MOST_SWITCHES: Final = 4000
"""As a ring; the boards' maker has addresses for 4,096."""
_MOST_HOSTS: Final = 250
"""At one switch; its hosts share the last byte of their addresses."""


_FEW: Final = 3
"""So many parts of a network are named where it falls apart."""


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
    """Interfaces at the ends of each cable, of a switch its port as 3 or eth3. Empty where not stated."""
    speeds: tuple[str, ...] = ()
    """The speed of each cable, as 100 Mbit/s. Empty where not stated."""
    profiles: Mapping[str, str] = field(default_factory=dict)
    """The profiles of switches, by switch, where stated."""

    def check(self) -> None:
        """Raise `InputError`, in one line, if no lab can be made from this drawing."""
        seen: set[str] = set()
        for node in (*self.hosts, *self.switches):
            if node in seen:
                raise InputError(f"{self.title}: two nodes are named '{node}'; rename one")
            seen.add(node)
        if not self.switches or not self.hosts:
            missing = "switch" if not self.switches else "host"
            raise InputError(f"{self.title}: has no {missing}; a lab needs hosts at switches (--hosts)")
        cabled = {node for ends in self.cables for node in ends}
        for host in self.hosts:
            if host not in cabled:
                raise InputError(f"{self.title}: host '{host}' has no cable; give it one")
        if len(parts := self._parts()) > 1:
            named = ", ".join(map(self._part_name, parts[:_FEW])) + (", …" if len(parts) > _FEW else "")
            raise InputError(
                f"{self.title}: is in {len(parts)} parts that no cable connects ({named}); connect them, or"
                " take only the largest (--largest-part)"
            )

    def largest_part(self) -> Drawing:
        """Return the part with the most switches. A host in several parts keeps its cables in this one."""
        parts = self._parts()
        if len(parts) < 2:
            return self
        kept = [place for place, ends in enumerate(self.cables) if parts[0].issuperset(ends)]
        return replace(
            self,
            switches=tuple(switch for switch in self.switches if switch in parts[0]),
            hosts=tuple(host for host in self.hosts if host in parts[0]),
            cables=tuple(self.cables[place] for place in kept),
            interfaces=tuple(self.interfaces[place] for place in kept) if self.interfaces else (),
            speeds=tuple(self.speeds[place] for place in kept) if self.speeds else (),
        )

    def _parts(self) -> list[set[str]]:
        """Return the nodes that reach each other through switches, the part with the most switches first.

        Nothing passes through a host: one with cables to two parts is in both.
        """
        import networkx as nx  # noqa: PLC0415 - slow to import, so only where needed

        graph = nx.Graph(self.cables)
        graph.add_nodes_from(self.switches)
        parts = [
            switches | {host for switch in switches for host in graph[switch]}
            for switches in nx.connected_components(graph.subgraph(self.switches))
        ]
        among_hosts = graph.subgraph(graph.nodes - set[str]().union(*parts))
        parts += nx.connected_components(among_hosts)
        place = {node: number for number, node in enumerate((*self.switches, *self.hosts))}
        return sorted(
            parts,
            key=lambda part: (-len(part.intersection(self.switches)), min(place[node] for node in part)),
        )

    def _part_name(self, part: set[str]) -> str:
        first = next(node for node in (*self.switches, *self.hosts) if node in part)
        others = len(part.intersection(self.switches)) - 1
        return f"{first} and {others} more" if others > 0 else first


def draw(shape: Shape, *, name: str, switches: int, hosts: int, fanout: int) -> Drawing:
    """A line, ring or tree of switches s1, s2, … with hosts: at all of them, of a tree at its leaves only.

    Raises `InputError` if there are too few or too many of anything.
    """
    import networkx as nx  # noqa: PLC0415 - slow to import, so only where needed

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
    taken = {*drawing.hosts, *drawing.switches}
    cables = []
    for switch in at:
        number = drawing.switches.index(switch) + 1
        for which in range(hosts):
            host = plain = f"h{number}" if hosts == 1 else f"h{number}{_letters(which)}"
            again = 1
            while host in taken:
                again += 1
                host = f"{plain}-{again}"
            taken.add(host)
            named.append(host)
            cables.append((host, switch))
    return replace(
        drawing,
        hosts=tuple(named),
        cables=(*cables, *drawing.cables),
        interfaces=(*[("", "")] * len(cables), *drawing.interfaces) if drawing.interfaces else (),
        speeds=(*[""] * len(cables), *drawing.speeds) if drawing.speeds else (),
    )


def refuse_hosts(hosts: int) -> None:
    """Raise `InputError` for more hosts at a switch than there are addresses for, or for none."""
    if not 1 <= hosts <= _MOST_HOSTS:
        raise InputError(f"--hosts {hosts}: choose 1 to {_MOST_HOSTS} at a switch")


def _letters(which: int) -> str:
    high, low = divmod(which, 26)
    return (chr(ord("a") + high - 1) if high else "") + chr(ord("a") + low)
