"""Which flows are admitted, and which paths exist: what all schemes have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar

from loko.admission.answer import Admitted
from loko.document import InputError
from loko.flow import FiveTuple, Flow
from loko.lab import Lab
from loko.network import Hop, refuse_ends, shortest_paths

Route = TypeVar("Route")
"""What a scheme has to know of a path."""


class Register(Generic[Route]):
    """The admitted flows of a lab, by id and by what tells them apart on the wire. Each call is O(path)."""

    def __init__(self, lab: Lab, prepare: Callable[[str, tuple[Hop, ...]], Route]) -> None:
        """`prepare` makes of a source and a path what the scheme needs; it is kept for shortest paths."""
        self.lab = lab
        self._prepare = prepare
        self._admitted: dict[str, Admitted] = {}
        self._five_tuples: dict[FiveTuple, str] = {}
        self._shortest: dict[tuple[str, str], tuple[tuple[Hop, ...], Route]] = {}
        self._paths_from: dict[str, dict[str, tuple[Hop, ...]]] = {}
        self._far = {(end.node, end.port): far.node for end, far in lab.cables()}
        self.admitted: Mapping[str, Admitted] = MappingProxyType(self._admitted)
        """The accepted flows by id, in order of admission."""

    def route(self, flow: Flow, path: Sequence[Hop] | None) -> Route:
        """The path asked for, or the shortest, as the scheme has prepared it.

        Raises `InputError` if it does not lead from the flow's source to its destination, or if the flow's id
        or its hosts and ports are in use.
        """
        if flow.id in self._admitted or flow[1:5] in self._five_tuples:
            raise self._double(flow)
        ends = source, destination = flow[1:3]
        known = self._shortest.get(ends)
        if known is None:
            hops = self._shortest_path(source, destination)
            known = self._shortest[ends] = hops, self._prepare(source, hops)
        if path is None or path is known[0]:
            return known[1]
        self._refuse_broken(flow, path)
        return self._prepare(source, tuple(path))

    def add(self, admitted: Admitted) -> None:
        """Note an accepted flow."""
        flow = admitted.flow
        self._admitted[flow.id] = admitted
        self._five_tuples[flow[1:5]] = flow.id

    def remove(self, flow_id: str) -> Admitted:
        """Strike off a flow. Raises `InputError` if it was not admitted."""
        admitted = self._admitted.pop(flow_id, None)
        if admitted is None:
            raise InputError(f"flow '{flow_id}' is not admitted")
        del self._five_tuples[admitted.flow[1:5]]
        return admitted

    def clear(self) -> None:
        """Strike off all flows."""
        self._admitted.clear()
        self._five_tuples.clear()

    def _shortest_path(self, source: str, destination: str) -> tuple[Hop, ...]:
        """As the function of that name, but all paths from a source are looked for at once, and kept."""
        refuse_ends(self.lab, source, destination)
        if source not in self._paths_from:
            self._paths_from[source] = shortest_paths(self.lab, source)
        return self._paths_from[source][destination]

    def _double(self, flow: Flow) -> InputError:
        if flow.id in self._admitted:
            return InputError(f"flow id '{flow.id}' is admitted already; choose another or release it")
        other = self._five_tuples[flow[1:5]]
        return InputError(f"flows '{other}' and '{flow.id}' have the same hosts and ports; change a port")

    def _refuse_broken(self, flow: Flow, path: Sequence[Hop]) -> None:
        node: str | None = self._far.get((flow.source, 1))
        switches = self.lab.switches
        seen: set[str] = set()
        for hop in path:
            if hop.switch != node or node in seen or node not in switches:
                break
            seen.add(node)
            node = self._far.get((node, hop.output_port))
        else:
            if node == flow.destination and path:
                return
        ways = ", ".join(f"{hop.switch}:{hop.output_port}" for hop in path)
        raise InputError(
            f"path [{ways}] does not lead from {flow.source} to {flow.destination} without a loop;"
            " give the switches in order, each with the port that a frame leaves by"
        )
