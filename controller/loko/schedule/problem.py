"""Scheduling problems and schedules (TSSDN, sections 3.1 and 3.2.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from loko.document import InputError
from loko.schedule.graph import Graph, Path


class SchedulingScheme(StrEnum):
    """How flows may be routed."""

    UNCONSTRAINED = "s-ur"
    """S/UR: on any path (section 3.2)."""
    PATH_SETS = "s-pr"
    """S/PR: on any shortest path (section 3.3)."""
    FIXED = "s-fr"
    """S/FR: on one shortest path, drawn at random (section 3.4)."""


class SlotDemand(NamedTuple):
    """A time-sensitive flow ts = (s, d) with its name: one frame a base period, at most."""

    id: str
    source: str
    destination: str


@dataclass(frozen=True)
class SchedulingProblem:
    """TS on G with the slots T = {0, .., slots - 1}."""

    graph: Graph
    demands: tuple[SlotDemand, ...]
    slots: int

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise InputError(f"{self.slots} slots: no flow could have one; give at least 1")
        hosts = set(self.graph.hosts)
        for demand in self.demands:
            for host in demand[1:]:
                if host not in hosts:
                    raise InputError(f"flow '{demand.id}': there is no host '{host}'; name another")
            if demand.source == demand.destination:
                raise InputError(
                    f"flow '{demand.id}': {demand.source} sends to itself; give another destination"
                )


class Assignment(NamedTuple):
    """The slot of a flow, and its path."""

    slot: int
    path: Path


@dataclass(frozen=True, kw_only=True)
class ScheduleSolution:
    """A schedule, and what is proven of it."""

    assignments: Mapping[str, Assignment]
    """By flow; who is not in it has no slot, and may not send."""
    bound: int
    """No schedule of the same flows under the same scheme, and for S/FR on the same paths, has more flows."""
    why: str
    """Origin of the bound."""

    @property
    def is_optimal(self) -> bool:
        """Whether the bound is met."""
        return len(self.assignments) == self.bound

    @property
    def gap_percent(self) -> float:
        """By how much of the bound the schedule may fall short of the optimum."""
        return 100 * (1 - len(self.assignments) / self.bound) if self.bound else 0.0


def candidate_paths(problem: SchedulingProblem) -> list[list[Path]]:
    """P and SP of section 3.3.1, spr_paths: all shortest paths of every flow.

    Raises `InputError` if no path leads to a flow's destination.
    """
    known: dict[tuple[str, str], list[Path]] = {}
    path_sets = []
    for demand in problem.demands:
        ends = demand.source, demand.destination
        if ends not in known:
            known[ends] = problem.graph.shortest_paths(*ends)
        if not known[ends]:
            raise _no_path(demand)
        path_sets.append(known[ends])
    return path_sets


def refuse_unreachable(problem: SchedulingProblem) -> None:
    """Raise `InputError` if no path leads to a flow's destination: c_sur_2 asks for one, slot or no slot."""
    for demand in problem.demands:
        if problem.graph.free_path(demand.source, demand.destination, 0) is None:
            raise _no_path(demand)


def _no_path(demand: SlotDemand) -> InputError:
    return InputError(
        f"flow '{demand.id}': no path leads from {demand.source} to {demand.destination};"
        " leave it out, or add a link"
    )


def random_paths(paths: Sequence[Sequence[Path]], draws: Sequence[float]) -> list[list[Path]]:
    """One of each flow's paths (section 3.4, as ECMP does), by a number in [0, 1) for each flow."""
    return [[own[int(draw * len(own))]] for own, draw in zip(paths, draws, strict=True)]
