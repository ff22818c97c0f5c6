"""Paths through a lab."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from loko.document import InputError
from loko.lab import Lab


@dataclass(frozen=True, kw_only=True)
class Hop:
    """A switch on a path, with the port that a frame leaves by."""

    switch: str
    output_port: int


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
