"""Paths through a lab, and flows on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import RootModel

from loko.document import InputError, Strict, read
from loko.flow import Flow
from loko.lab import Lab


@dataclass(frozen=True, kw_only=True)
class Hop:
    """A switch on a path, with the port that a frame leaves by."""

    switch: str
    output_port: int


class _HopDocument(Strict):
    switch: str
    output_port: int


class _PathsFile(RootModel[dict[str, list[_HopDocument]]]):
    """By id of a flow, the hops of its path."""


def load_paths(file: Path) -> dict[str, tuple[Hop, ...]]:
    """Read the paths of flows by id, as `dump_paths` gives them. Raises `InputError` in one line."""
    if not file.is_file():
        raise InputError(f"paths '{file}': no such file")
    return {
        flow_id: tuple(Hop(switch=hop.switch, output_port=hop.output_port) for hop in hops)
        for flow_id, hops in read(file, _PathsFile).root.items()
    }


def dump_paths(paths: Mapping[str, Sequence[Hop]]) -> dict[str, list[dict[str, object]]]:
    """The paths as plain values, for JSON."""
    return {flow_id: [asdict(hop) for hop in path] for flow_id, path in paths.items()}


class Routed(Protocol):
    """A flow on the path that was decided for it: all that a table is made from. `Admitted` is one.

    Whoever installs or replays a flow is handed this, and finds no path of its own: two searches drift apart
    as soon as one of them knows which switches are full.
    """

    @property
    def flow(self) -> Flow:
        """The flow."""

    @property
    def path(self) -> tuple[Hop, ...]:
        """The switches that it crosses, in order."""


class RoutedFlow(NamedTuple):
    """A flow on a path that no admission control was asked for, such as of an experiment's document."""

    flow: Flow
    path: tuple[Hop, ...]


def on_shortest_paths(lab: Lab, flows: Sequence[Flow]) -> tuple[RoutedFlow, ...]:
    """Each flow on the shortest path. Raises `InputError` as `shortest_path`."""
    return tuple(RoutedFlow(flow, shortest_path(lab, flow.source, flow.destination)) for flow in flows)


def shortest_path(lab: Lab, source: str, destination: str) -> tuple[Hop, ...]:
    """The switches from one host to another, in order; among equally short paths the one of lowest ports.

    Raises `InputError` for a host that the lab does not have, or if both are one.
    """
    refuse_ends(lab, source, destination)
    return shortest_paths(lab, source)[destination]


def refuse_ends(lab: Lab, source: str, destination: str) -> None:
    """Raise `InputError` for a host that the lab does not have, or if both are one."""
    for host in (source, destination):
        if host not in lab.hosts:
            raise InputError(f"lab '{lab.name}' has no host '{host}' (hosts: {', '.join(lab.hosts)})")
    if source == destination:
        raise InputError(f"a flow from {source} to itself crosses no switch; give another destination")


def shortest_paths(lab: Lab, source: str) -> dict[str, tuple[Hop, ...]]:
    """The shortest paths from a host to all others, each as `shortest_path` gives it."""
    paths: dict[str, tuple[Hop, ...]] = {source: ()}
    waiting = deque([source])
    while waiting:
        node = waiting.popleft()
        for port, far in lab.ways(node):
            if far.node not in paths:
                hop = () if node == source else (Hop(switch=node, output_port=port),)
                paths[far.node] = (*paths[node], *hop)
                if far.node in lab.switches:
                    waiting.append(far.node)
    del paths[source]
    return {name: path for name, path in paths.items() if name in lab.hosts}
