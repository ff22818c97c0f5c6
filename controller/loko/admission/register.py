"""Which flows are admitted, and which paths exist: what all schemes have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from loko.admission.answer import Admitted
from loko.document import InputError
from loko.flow import FiveTuple, Flow
from loko.lab import Lab
from loko.network import Hop, shortest_path


class Register:
    """The admitted flows of a lab, by id and by what tells them apart on the wire. Each call is O(path)."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._admitted: dict[str, Admitted] = {}
        self._five_tuples: dict[FiveTuple, str] = {}
        self._shortest: dict[tuple[str, str], tuple[Hop, ...]] = {}
        self._far = {(end.node, end.port): far.node for end, far in lab.cables()}
        self.admitted: Mapping[str, Admitted] = MappingProxyType(self._admitted)
        """The accepted flows by id, in order of admission."""

    def path(self, flow: Flow, path: Sequence[Hop] | None) -> Sequence[Hop]:
        """The path asked for, or the shortest.

        Raises `InputError` if it does not lead from the flow's source to its destination, or if the flow's id
        or its hosts and ports are in use.
        """
        self._refuse_doubles(flow)
        if path is not None:
            self._refuse_broken(flow, path)
            return path
        ends = (flow.source, flow.destination)
        if ends not in self._shortest:
            self._shortest[ends] = shortest_path(self.lab, *ends)
        return self._shortest[ends]

    def add(self, admitted: Admitted) -> None:
        """Note an accepted flow."""
        flow = admitted.flow
        self._admitted[flow.id] = admitted
        self._five_tuples[FiveTuple.of(flow)] = flow.id

    def remove(self, flow_id: str) -> Admitted:
        """Strike off a flow. Raises `InputError` if it was not admitted."""
        admitted = self._admitted.pop(flow_id, None)
        if admitted is None:
            raise InputError(f"flow '{flow_id}' is not admitted")
        del self._five_tuples[FiveTuple.of(admitted.flow)]
        return admitted

    def _refuse_doubles(self, flow: Flow) -> None:
        if flow.id in self._admitted:
            raise InputError(f"flow id '{flow.id}' is admitted already; choose another or release it")
        other = self._five_tuples.get(FiveTuple.of(flow))
        if other is not None:
            raise InputError(f"flows '{other}' and '{flow.id}' have the same hosts and ports; change a port")

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
