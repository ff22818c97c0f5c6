"""Paths through a lab, and flows on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from pydantic import RootModel

from loko.document import InputError, StrictModel, read
from loko.lazy_mapping import LazyMapping
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab

_NEAR: Final = 64
"""How many switches near one may be kept: with three cables to others at each, all within four hops.

Those that are one hop further are found from these.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """A switch on a path, with the port that a frame leaves by."""

    switch: str
    output_port: int


class Visit(NamedTuple):
    """One passage of a path through a switch. A path may visit a switch many times."""

    switch: str
    input_port: int
    """The port at which frames arrive; no two visits of a path to a switch have the same."""
    output_port: int
    number: int
    """Which of the path's visits to this switch it is, from 0 on."""
    of: int
    """How many visits to this switch the path makes."""


def visits(lab: Lab, source: str, path: Sequence[Hop]) -> tuple[Visit, ...]:
    """Return the visits of a path that begins at a host, in order.

    Raises `InputError` if a cable is missing, if frames arrive twice at the same port of a switch, so that no
    entry can tell these visits apart, or if they leave by the port at which they arrived.
    """
    leaves = [(source, 1), *((hop.switch, hop.output_port) for hop in path)]
    of = Counter(hop.switch for hop in path)
    seen: dict[str, list[int]] = {}
    visits = []
    for hop, (node, port) in zip(path, leaves, strict=False):
        end = lab.far_end(node, port)
        if end is None or end.node != hop.switch:
            raise InputError(f"path: no cable leads from {node}:{port} to {hop.switch}")
        before = seen.setdefault(hop.switch, [])
        if end.port in before:
            raise InputError(
                f"path: it comes to {hop.switch} by port {end.port} twice, so its entries cannot tell these"
                " visits apart; take another way"
            )
        if end.port == hop.output_port:
            raise InputError(
                f"path: it leaves {hop.switch} by port {end.port}, by which it came; a switch sends no frame"
                " back there"
            )
        visits.append(Visit(hop.switch, end.port, hop.output_port, len(before), of[hop.switch]))
        before.append(end.port)
    return tuple(visits)


class HopDocument(StrictModel):
    """A hop as programs write it down."""

    switch: str
    output_port: int

    @property
    def hop(self) -> Hop:
        """The hop that the document describes."""
        return Hop(switch=self.switch, output_port=self.output_port)


class _PathsFile(RootModel[dict[str, list[HopDocument]]]):
    """The hops of a path, by flow id."""


def load_paths(file: Path) -> dict[str, tuple[Hop, ...]]:
    """Read the paths of flows by id, as `dump_paths` gives them. Raises `InputError` in one line."""
    if not file.is_file():
        raise InputError(f"paths '{file}': no such file")
    return {flow_id: tuple(hop.hop for hop in hops) for flow_id, hops in read(file, _PathsFile).root.items()}


def dump_paths(paths: Mapping[str, Sequence[Hop]]) -> dict[str, list[dict[str, object]]]:
    """The paths as plain values, for JSON."""
    return {flow_id: [asdict(hop) for hop in path] for flow_id, path in paths.items()}


class Routed(Protocol):
    """A flow with the path decided for it: all that flow tables are made from. `Admitted` is one.

    Code that installs or replays a flow takes this and finds no path of its own: two searches would disagree
    as soon as one of them knows which switches are full.
    """

    @property
    def flow(self) -> Flow:
        """The flow."""

    @property
    def path(self) -> tuple[Hop, ...]:
        """The switches that it crosses, in order."""


class RoutedFlow(NamedTuple):
    """A flow on a path that no admission control chose, such as one from an experiment's document."""

    flow: Flow
    path: tuple[Hop, ...]


def on_shortest_paths(lab: Lab, flows: Sequence[Flow]) -> tuple[RoutedFlow, ...]:
    """Put each flow on its shortest path. Raises `InputError` as `shortest_path` does."""
    return tuple(RoutedFlow(flow, shortest_path(lab, flow.source, flow.destination)) for flow in flows)


def shortest_path(lab: Lab, source: str, destination: str) -> tuple[Hop, ...]:
    """Return the shortest path between two hosts, for callers that ask once. See `ShortestPaths.between`."""
    return ShortestPaths(lab).between(source, destination)


def longest_path(lab: Lab) -> int:
    """Return the most switches that a shortest path between two hosts crosses; 0 if none crosses any.

    It visits all switches from each one that has a host, which takes seconds for thousands of switches.
    """
    senders: dict[str, set[str]] = {}
    receivers: dict[str, set[str]] = {}
    for host in lab.hosts:
        for _, far in lab.outgoing_cables(host):
            senders.setdefault(far.node, set()).add(host)
        for near in lab.arrivals(host):
            receivers.setdefault(near.node, set()).add(host)
    onward = {switch: [far.node for _, far in lab.outgoing_cables(switch)] for switch in lab.switches}
    longest = 0
    for begin in senders.keys() & onward.keys():
        if len(senders[begin] | receivers.get(begin, set())) > 1:
            longest = max(longest, 1)
        seen, level, length = {begin}, [begin], 1
        while level:
            length += 1
            following = []
            for here in level:
                for there in onward[here]:
                    if there not in seen and there in onward:
                        seen.add(there)
                        following.append(there)
            if length > longest and not receivers.keys().isdisjoint(following):
                longest = length
            level = following
    return longest


def refuse_ends(lab: Lab, source: str, destination: str) -> None:
    """Raise `InputError` if the lab does not have one of the hosts, or if both are the same."""
    for host in (source, destination):
        if question := lab.which_interface(host):
            raise InputError(f"lab '{lab.name}': {question}")
        if host not in lab.hosts:
            raise InputError(f"lab '{lab.name}' has no host '{host}' (hosts: {', '.join(lab.hosts)})")
    if source == destination:
        raise InputError(f"a flow from {source} to itself crosses no switch; give another destination")


class _Near:
    """The known switches near one, found breadth first, and only as far as needed so far."""

    __slots__ = ("begin", "came", "front")

    def __init__(self, begin: str) -> None:
        self.begin = begin
        self.came = {begin: begin}
        """By switch, the one before it on its path; the nearest come first.

        It holds only names, so the garbage collector need not look into it.
        """
        self.front: Sequence[str] = (begin,)
        """The farthest known switches, where the search goes on; empty if all, or enough, are known."""


class ShortestPaths:
    """The shortest paths of a lab. No path is kept, so memory grows with the switches, not with the pairs.

    For each switch where paths begin, the switches near it are kept, as far as they were asked for. Longer
    paths are searched from both ends at once, level by level, always on the side with fewer switches to go on
    from. So a short path costs as much in a large network as in a small one.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._begins: dict[str, _Near] = {}
        """By source: the switches near the one that its cable leads to."""
        self._ends: dict[str, Hop] = {}
        """By destination: the last hop of every path to it."""
        self._onward = LazyMapping(self._ways_on)
        """By switch: the neighbours that it sends to, in order of ports, each with the lowest port's hop."""
        self._backward = LazyMapping(self._ways_back)
        """By switch: the neighbours that send to it."""
        self._near: LazyMapping[str, _Near] = LazyMapping(_Near)
        """By switch: the switches near it."""

    def between(self, source: str, destination: str) -> tuple[Hop, ...]:
        """Return the hops from one host to another; of equally short paths, the one of lowest ports.

        Raises `InputError` for a host that the lab does not have, if both are one, or if no path leads there.
        """
        near, last = self._begins.get(source), self._ends.get(destination)
        if near is None or last is None or source == destination:
            refuse_ends(self._lab, source, destination)
            begin = self._first_node(source, destination)
            if begin == destination:  # a cable between the two
                return ()
            near = self._begins[source] = self._near[begin]
            last = self._ends[destination] = self._last_hop(source, destination)
        end = last.switch
        before = self._before(near, end)
        if before is not None:
            hops = self._way_back(near.came, near.begin, before)
            if before != end:
                hops.append(self._onward[before][end])
        else:
            far_hops = self._far_hops(near.begin, end)
            if far_hops is None:
                raise self._no_path(source, destination)
            hops = far_hops
        hops.append(last)
        return tuple(hops)

    def _before(self, near: _Near, end: str) -> str | None:
        """Return the switch before `end` on its path, if `end` is near; what is found on the way is kept.

        For the beginning it is the beginning itself. The search stops at a switch with a cable to `end`: to
        visit the next level as well would cost more than all levels before it.
        """
        came = near.came
        if end in came:
            return came[end]
        onward, neighbours = self._onward, self._backward[end]
        while near.front:
            if known := [
                node for node in neighbours if node in came
            ]:  # of the front: else `end` would be, too
                return known[0] if len(known) == 1 else next(node for node in near.front if node in known)
            following = []
            for here in near.front:
                for far in onward[here]:
                    if far not in came:
                        came[far] = here
                        following.append(far)
                if len(came) > _NEAR:
                    following = []
                    break
            near.front = following
        return None

    def _far_hops(self, begin: str, end: str) -> list[Hop] | None:
        """Return the hops from one switch to another, without the last; None if no path leads there.

        `front` has the switches of one distance from the beginning, in the order of the ports that lead
        there. So the first of them that is met from the end is on the path of lowest ports.
        """
        came = {begin: begin}
        left = {end: 0}
        """By switch, its distance from the end, as far as known."""
        front, rear = [begin], [end]
        onward, backward = self._onward, self._backward
        distance = 0
        while front and rear:
            following = []
            if len(front) <= len(rear):
                for here in front:
                    for far in onward[here]:
                        if far not in came:
                            came[far] = here
                            if far in left:
                                return [*self._way_back(came, begin, far), *self._way_on(left, far)]
                            following.append(far)
                front = following
            else:
                distance += 1
                for there in rear:
                    for near in backward[there]:
                        if near not in left:
                            left[near] = distance
                            following.append(near)
                rear = following
                for here in front:  # where the two sides meet, if they do
                    if here in left:
                        return [*self._way_back(came, begin, here), *self._way_on(left, here)]
        return None

    def _way_back(self, came: dict[str, str], begin: str, end: str) -> list[Hop]:
        """Return the hops from `begin` to `end`; `came` has the switch before each on the way."""
        onward = self._onward
        hops = []
        while end != begin:
            here = came[end]
            hops.append(onward[here][end])
            end = here
        hops.reverse()
        return hops

    def _way_on(self, left: dict[str, int], node: str) -> Iterator[Hop]:
        """Yield the hops from a switch to the end, each by the lowest port that leads nearer to it."""
        for distance in range(left[node] - 1, -1, -1):
            ways = self._onward[node]
            node = next(far for far in ways if left.get(far) == distance)
            yield ways[node]

    def _ways_on(self, switch: str) -> dict[str, Hop]:
        switches = self._lab.switches
        hops: dict[str, Hop] = {}
        for port, far in self._lab.outgoing_cables(switch):
            if far.node in switches and far.node not in hops:
                hops[far.node] = Hop(switch=switch, output_port=port)
        return hops

    def _ways_back(self, switch: str) -> tuple[str, ...]:
        switches = self._lab.switches
        if self._lab.is_two_way:
            return tuple(self._onward[switch])
        return tuple(near.node for near in self._lab.arrivals(switch) if near.node in switches)

    def _first_node(self, source: str, destination: str) -> str:
        """Return the node that the only cable of a host leads to."""
        for _, far in self._lab.outgoing_cables(source):
            return far.node
        raise self._no_path(source, destination)

    def _last_hop(self, source: str, destination: str) -> Hop:
        for near in self._lab.arrivals(destination):
            if near.node in self._lab.switches:
                return Hop(switch=near.node, output_port=near.port)
        raise self._no_path(source, destination)

    def _no_path(self, source: str, destination: str) -> InputError:
        return InputError(
            f"lab '{self._lab.name}': no path leads from {source} to {destination}; some cables are used one"
            " way only"
        )
