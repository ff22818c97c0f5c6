"""The admitted flows and the known paths, which all schemes have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from loko.admission.answer import Admitted
from loko.document import InputError
from loko.switch_model.flow import DuplicateFlowError, FiveTuple, Flow
from loko.topology.lab import Lab
from loko.topology.network import Hop, ShortestPaths, refuse_ends, visits


class PreparedPath(Protocol):
    """A path as a scheme sees it."""

    @property
    def path(self) -> tuple[Hop, ...]:
        """The path."""


class BarePath(NamedTuple):
    """A path, for schemes that need nothing else."""

    path: tuple[Hop, ...]

    @classmethod
    def prepare(cls, _source: str, path: tuple[Hop, ...]) -> BarePath:
        """Make one of a source and a path, as `AdmittedFlows` requires."""
        return cls(path)


Route = TypeVar("Route", bound=PreparedPath)
_CACHED_ROUTES: Final = 1 << 16
"""The most switches on all kept paths, in each of two generations: enough for all paths in a ring of 31."""
_CACHED_PER_SWITCH: Final = 64
"""As above, in a large network, per switch of the lab."""
_LEAST_SWITCHES: Final = 8
"""A shorter path counts as if it had this many switches, because of the memory that any path takes."""


class AdmittedFlows(Generic[Route]):
    """The admitted flows of a lab, by id and by five-tuple. Each call is O(path)."""

    def __init__(
        self,
        lab: Lab,
        prepare: Callable[[str, tuple[Hop, ...]], Route],
        *,
        single_visits: str = "",
        classes: int = 1,
        between: Callable[[str, str], tuple[Hop, ...]] | None = None,
    ) -> None:
        """Start empty. `prepare` makes what the scheme needs from a source and a path.

        Its results for the most recently requested shortest paths are kept, up to a bound. `single_visits`
        says why no path may visit a switch twice; if it is empty, one may. Flows have one of so many traffic
        `classes`. `between` gives the shortest paths, if the caller knows them already.
        """
        self.lab = lab
        self._single_visits = single_visits
        self._classes = classes
        self._prepare = prepare
        self._between = between or ShortestPaths(lab).between
        self._admitted: dict[str, Admitted] = {}
        self._five_tuples: dict[FiveTuple, str] = {}
        self._shortest: dict[tuple[str, str], Route] = {}
        self._older: dict[tuple[str, str], Route] = {}
        self._kept = max(_CACHED_ROUTES, _CACHED_PER_SWITCH * len(lab.switches))
        self._room = self._kept
        self.admitted: Mapping[str, Admitted] = MappingProxyType(self._admitted)
        """The accepted flows by id, in order of admission."""

    def route(self, flow: Flow, path: Sequence[Hop] | None) -> Route:
        """Return the given path, or the shortest, as the scheme has prepared it.

        Raises `InputError` if it does not lead from the flow's source to its destination, or visits a switch
        as it may not, or if its traffic class is unknown; `DuplicateFlowError` if the flow's id or its hosts
        and ports are in use.
        """
        if flow.traffic_class > self._classes:
            classes = "1 alone" if self._classes == 1 else f"1 to {self._classes}"
            raise InputError(f"traffic_class {flow.traffic_class}: flows here have class {classes}; take one")
        if flow.id in self._admitted or flow[1:5] in self._five_tuples:
            raise self._duplicate(flow)
        ends = flow[1:3]
        known = self._shortest.get(ends)
        if path is None:
            return known or self._shortest_route(ends)
        if known is not None and path is known.path:
            return known
        refuse_ends(self.lab, *ends)
        self._refuse_broken(flow, path)
        if len({hop.switch for hop in path}) < len(path):
            self._refuse_revisits(flow, path)
        return self._prepare(flow.source, tuple(path))

    def add(self, admitted: Admitted) -> None:
        """Note an accepted flow."""
        flow = admitted.flow
        self._admitted[flow.id] = admitted
        self._five_tuples[flow[1:5]] = flow.id

    def remove(self, flow_id: str) -> Admitted:
        """Remove a flow and return it. Raises `InputError` if it was not admitted."""
        admitted = self._admitted.pop(flow_id, None)
        if admitted is None:
            raise InputError(f"flow '{flow_id}' is not admitted")
        del self._five_tuples[admitted.flow[1:5]]
        return admitted

    def rename(self, flow_id: str, flow: Flow) -> Admitted:
        """Give a flow another id and other ports, and return it.

        Raises `InputError` if it was not admitted, `DuplicateFlowError` if these are in use.
        """
        admitted = self.remove(flow_id)
        if flow.id in self._admitted or flow[1:5] in self._five_tuples:
            self.add(admitted)
            raise self._duplicate(flow)
        renamed = admitted._replace(flow=flow)
        self.add(renamed)
        return renamed

    def clear(self) -> None:
        """Remove all flows."""
        self._admitted.clear()
        self._five_tuples.clear()

    def _shortest_route(self, ends: tuple[str, str]) -> Route:
        """Return a route from the older generation, or search for it, and keep it in the younger one.

        Once the younger generation is full, it replaces the older one.
        """
        known = self._older.get(ends) if self._older else None
        if known is None:
            known = self._prepare(ends[0], self._between(*ends))
        length = len(known.path)
        self._room -= length if length > _LEAST_SWITCHES else _LEAST_SWITCHES
        if self._room < 0:
            self._older, self._shortest, self._room = self._shortest, {}, self._kept
        self._shortest[ends] = known
        return known

    def _duplicate(self, flow: Flow) -> DuplicateFlowError:
        if flow.id in self._admitted:
            return DuplicateFlowError(
                f"flow id '{flow.id}' is admitted already; choose another or release it"
            )
        other = self._five_tuples[flow[1:5]]
        return DuplicateFlowError(
            f"flows '{other}' and '{flow.id}' have the same hosts and ports; change a port"
        )

    def _refuse_broken(self, flow: Flow, path: Sequence[Hop]) -> None:
        lab = self.lab
        end = lab.far_end(flow.source, 1)
        for hop in path:
            if end is None or end.node != hop.switch or hop.switch not in lab.switches:
                break
            end = lab.far_end(hop.switch, hop.output_port)
        else:
            if end is not None and end.node == flow.destination and path:
                return
        ways = ", ".join(f"{hop.switch}:{hop.output_port}" for hop in path)
        raise InputError(
            f"path [{ways}] does not lead from {flow.source} to {flow.destination};"
            " give the switches in order, each with the port that a frame leaves by"
        )

    def _refuse_revisits(self, flow: Flow, path: Sequence[Hop]) -> None:
        again = next(visit for visit in visits(self.lab, flow.source, path) if visit.of > 1)
        if self._single_visits:
            raise InputError(f"path: it visits {again.switch} {again.of} times: {self._single_visits}")
