"""Paths through a lab."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from loko.document import InputError
from loko.lab import Endpoint, Lab


@dataclass(frozen=True, kw_only=True)
class Hop:
    """A switch on a path, with the port that a frame leaves by."""

    switch: str
    output_port: int


def shortest_path(lab: Lab, source: str, destination: str) -> tuple[Hop, ...]:
    """The switches from one host to another, in order; among equally short paths the one of lowest ports.

    Raises `InputError` for a host that the lab does not have, or if both are one.
    """
    for host in (source, destination):
        if host not in lab.hosts:
            raise InputError(f"lab '{lab.name}' has no host '{host}' (hosts: {', '.join(lab.hosts)})")
    if source == destination:
        raise InputError(f"a flow from {source} to itself crosses no switch; give another destination")
    came_by: dict[str, Endpoint] = {}
    waiting = deque([source])
    while waiting and destination not in came_by:
        node = waiting.popleft()
        for port, far in lab.ways(node):
            if far.node != source and far.node not in came_by:
                came_by[far.node] = Endpoint(node=node, port=port)
                if far.node in lab.switches:
                    waiting.append(far.node)
    hops: list[Hop] = []
    node = destination
    while (last := came_by[node]).node != source:
        hops.append(Hop(switch=last.node, output_port=last.port))
        node = last.node
    return tuple(reversed(hops))
