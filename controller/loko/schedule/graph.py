"""The network of a scheduling problem: G = (V, E) of the paper, directed (TSSDN, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from loko.document import InputError

Path = tuple[int, ...]
"""Numbers of links, in order, from a host to another."""

MOST_PATHS: Final = 10_000
"""Shortest paths between two hosts that are listed; a mesh can have more than memory holds."""


class DirectedLink(NamedTuple):
    """One direction of a cable; or the inside of a switch, if that is a resource of its own."""

    tail: str
    head: str
    port: int = 0
    """The port of the tail by which a frame leaves; 0 where nobody needs it."""


@dataclass(frozen=True)
class Graph:
    """Nodes that forward, hosts that do not, and directed links by number.

    A host sends and receives but forwards nothing. The paper's equations would allow it; where hosts have one
    cable, a path through one passes its switch twice, and the secondary objective forbids that.
    """

    hosts: tuple[str, ...]
    links: tuple[DirectedLink, ...]

    @cached_property
    def outgoing(self) -> Mapping[str, tuple[int, ...]]:
        """out(n) of table 1: the links that leave a node, by number."""
        return self._by_end(0)

    @cached_property
    def incoming(self) -> Mapping[str, tuple[int, ...]]:
        """in(n) of table 1: the links that come to a node, by number."""
        return self._by_end(1)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """V, each once, in the order of the links."""
        return tuple(dict.fromkeys(node for link in self.links for node in link[:2]))

    def _by_end(self, end: int) -> dict[str, tuple[int, ...]]:
        links: dict[str, list[int]] = {}
        for number, link in enumerate(self.links):
            links.setdefault(link.tail if end == 0 else link.head, []).append(number)
        return {node: tuple(numbers) for node, numbers in links.items()}

    @cached_property
    def _onward(self) -> Mapping[str, tuple[tuple[int, str], ...]]:
        """By node: the links to nodes that forward, with these nodes."""
        hosts = set(self.hosts)
        return {
            node: tuple(
                (number, head) for number in numbers if (head := self.links[number].head) not in hosts
            )
            for node, numbers in self.outgoing.items()
        }

    @cached_property
    def _last(self) -> Mapping[tuple[str, str], tuple[int, ...]]:
        """By a node and a host: the links from the one to the other."""
        links: dict[tuple[str, str], list[int]] = {}
        hosts = set(self.hosts)
        for number, link in enumerate(self.links):
            if link.head in hosts:
                links.setdefault((link.tail, link.head), []).append(number)
        return {ends: tuple(numbers) for ends, numbers in links.items()}

    def shortest_paths(self, source: str, destination: str) -> list[Path]:
        """All shortest paths, in order of the links' numbers; none if no path leads there.

        Raises `InputError` if there are more than `MOST_PATHS`.
        """
        came, reached = self._layers(source, destination)
        paths: list[Path] = []
        waiting: list[tuple[str, Path]] = [
            (node, (last,)) for node in reached for last in self._last[node, destination]
        ]
        while waiting:
            node, path = waiting.pop()
            if node == source:
                paths.append(path)
                if len(paths) > MOST_PATHS:
                    raise InputError(
                        f"from {source} to {destination} there are more than {MOST_PATHS} shortest paths;"
                        " choose --scheme s-fr or s-ur"
                    )
                continue
            waiting += [(self.links[link].tail, (link, *path)) for link in came[node]]
        return sorted(paths)

    def _layers(self, source: str, destination: str) -> tuple[Mapping[str, Sequence[int]], list[str]]:
        """Breadth first: of each node the links that reach it first; the nodes beside the destination."""
        came: dict[str, list[int]] = {source: []}
        level = [source]
        while level:
            reached = [node for node in level if (node, destination) in self._last]
            if reached:
                return came, reached
            following: dict[str, list[int]] = {}
            for node in level:
                for link, head in self._onward.get(node, ()):
                    if head not in came:
                        following.setdefault(head, []).append(link)
            came |= following
            level = list(following)
        return came, []

    def free_path(self, source: str, destination: str, taken: int) -> Path | None:
        """A shortest path without the links whose bits are set in `taken`; None if there is none."""
        came: dict[str, int] = {source: -1}
        level = [source]
        while level:
            following = []
            for node in level:
                for last in self._last.get((node, destination), ()):
                    if not taken >> last & 1:
                        return self.back({**came, destination: last}, source, destination)
                for link, head in self._onward.get(node, ()):
                    if head not in came and not taken >> link & 1:
                        came[head] = link
                        following.append(head)
            level = following
        return None

    def next_hops(self, node: str, destination: str) -> list[tuple[int, str]]:
        """The links from a node by which a frame may go on to a host, with the nodes that they lead to."""
        last = [(link, destination) for link in self._last.get((node, destination), ())]
        return [*last, *self._onward.get(node, ())]

    def back(self, came: Mapping[str, int], source: str, node: str) -> Path:
        """The path to a node, of the link by which each node on it was reached."""
        path = []
        while node != source:
            path.append(came[node])
            node = self.links[came[node]].tail
        return tuple(reversed(path))

    def usable(self, source: str, destination: str) -> tuple[int, ...]:
        """The links that a flow may use: all but those that come to other hosts or leave them."""
        others = set(self.hosts) - {source, destination}
        return tuple(
            number
            for number, (tail, head, _) in enumerate(self.links)
            if tail not in others and head not in others
        )

    def ends(self, source: str, destination: str) -> tuple[int | None, str, str, int | None]:
        """Between which nodes paths of two hosts can differ: the only first link, from, to, the only last.

        None for a link if a host has several cables: then the choice begins or ends at the host.
        """
        leaving, coming = self.outgoing.get(source, ()), self.incoming.get(destination, ())
        first = leaving[0] if len(leaving) == 1 else None
        last = coming[0] if len(coming) == 1 else None
        begin = source if first is None else self.links[first].head
        end = destination if last is None else self.links[last].tail
        if first is not None and first == last:  # a cable between the two
            return first, begin, begin, None
        return first, begin, end, last

    def path_within(self, source: str, destination: str, links: Iterable[int]) -> Path | None:
        """A shortest path that uses these links only."""
        wanted = 0
        for link in links:
            wanted |= 1 << link
        return self.free_path(source, destination, ~wanted)


def graph_of(hosts: Sequence[str], cables: Iterable[tuple[str, str]]) -> Graph:
    """The graph of cables that carry in both directions."""
    links = tuple(DirectedLink(*ends) for a, b in cables for ends in ((a, b), (b, a)))
    return Graph(hosts=tuple(hosts), links=links)
