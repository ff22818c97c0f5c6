"""Schedules that are kept while flows come and go: what `loko schedule --json` printed, read and extended.

A flow that has a slot keeps it, with its path, until it leaves. So hosts and switches that have nothing to do
with what changes need not be told. The paper leaves this to future work (section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from loko.document import InputError, read
from loko.schedule.graph import Graph, Path
from loko.schedule.incremental import IncrementalSchedule
from loko.schedule.lab_schedule import (
    LabSchedule,
    exclusive_of,
    frontiers_of,
    lab_graph,
    longest_ns,
    path_of,
    refuse_overload,
    refuse_unknown_hosts,
    scheduled_flow,
    tables,
)
from loko.schedule.packing import Paths, most_flows
from loko.schedule.problem import (
    Assignment,
    ScheduleSolution,
    SchedulingProblem,
    SchedulingScheme,
    SlotDemand,
    candidate_paths,
    random_paths,
)
from loko.schedule.timed_flow import TimedFlow
from loko.schedule.timing import CycleTiming, Exclusive, crossing_times, slot_ns
from loko.solvers.program import Solve, TimeBudget
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab
from loko.topology.network import Hop
from loko.units import NS_PER_US

_ANEW: Final = "schedule anew, without --keep"


class _PartialDocument(BaseModel):
    """A document of which only some keys are read; the others may be there, too."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class SavedFlow(_PartialDocument):
    """A flow with its slot; `ports` are those by which its frames leave the switches of `path`."""

    id: str
    slot: int = Field(ge=0)
    path: list[str]
    ports: list[int]


class SavedSchedule(_PartialDocument):
    """Lasting part of the output of `loko schedule --json`."""

    lab: str
    scheme: SchedulingScheme
    exclusive: Exclusive
    slots: int = Field(ge=1)
    base_period_us: float = Field(gt=0)
    slot_us: float = Field(gt=0)
    guard_us: float = Field(ge=0)
    scheduled: Sequence[SavedFlow]
    table_entries: int = Field(ge=1)
    changes_per_s: float = Field(default=0.0, ge=0)
    openflow: OpenFlow = OpenFlow.V1_0

    @property
    def timing(self) -> CycleTiming:
        """The cycle that all hosts keep."""
        return CycleTiming(
            base_period_ns=round(self.base_period_us * NS_PER_US),
            slot_ns=round(self.slot_us * NS_PER_US),
            guard_ns=round(self.guard_us * NS_PER_US),
        )


def load_schedule(file: File) -> SavedSchedule:
    """Read a schedule. Raises `InputError` in one line."""
    if not file.is_file():
        raise InputError(f"schedule '{file}': no such file")
    return read(file, SavedSchedule)


@dataclass(frozen=True, kw_only=True)
class ExtendedSchedule:
    """A schedule after flows have come and gone. Nobody else was moved."""

    schedule: LabSchedule
    kept: tuple[str, ...]
    """Flows that have the slots and paths that they had."""
    added: tuple[str, ...]
    """Flows that have a slot now and had none."""
    removed: tuple[str, ...]
    """Flows that had a slot and are not wanted any more."""

    @property
    def optimality_gap(self) -> int:
        """How many flows more a schedule might have in which all may be moved."""
        return self.schedule.solution.bound - len(self.schedule.scheduled)


def extend(
    lab: Lab,
    flows: Sequence[TimedFlow],
    saved: SavedSchedule,
    solve: Solve,
    clock: TimeBudget,
    *,
    seed: int = 0,
) -> ExtendedSchedule:
    """Change a schedule to these flows, moving none: who is not listed leaves, who is new gets what is free.

    `seed` is that of the paths that S/FR draws for new flows. Raises `InputError` if the schedule is not of
    the lab or not of these flows, or if what is new does not fit its slots.
    """
    refuse_unknown_hosts(lab, flows)
    if saved.lab != lab.name:
        raise InputError(f"the schedule is for the lab '{saved.lab}', not for '{lab.name}'; name that lab")
    timing, exclusive = saved.timing, saved.exclusive
    frame_bytes = max(flow.frame_bytes for flow in flows)
    sizes = {flow.frame_bytes for flow in flows}
    frontiers = frontiers_of(
        lab, sizes, saved.table_entries, changes_per_s=saved.changes_per_s, openflow=saved.openflow
    )
    if exclusive is Exclusive.LINKS and exclusive_of(lab, frontiers, frame_bytes) is not exclusive:
        raise InputError(
            f"frames of {frame_bytes} bytes need their switches to themselves, those of the schedule have"
            f" only their links; {_ANEW}"
        )
    refuse_overload(lab, frontiers, frame_bytes, exclusive, timing)
    graph = lab_graph(lab, exclusive)
    crossed = crossing_times(lab, frontiers, frame_bytes, exclusive)
    demands = tuple(SlotDemand(flow.id, flow.source, flow.destination) for flow in flows)
    problem = SchedulingProblem(graph, demands, saved.slots)
    paths: Paths | None = None if saved.scheme is SchedulingScheme.UNCONSTRAINED else candidate_paths(problem)
    needed_ns = slot_ns(longest_ns(lab, graph, crossed, paths), timing.guard_ns)
    if needed_ns > timing.slot_ns:
        raise InputError(
            f"slots of {needed_ns / NS_PER_US:g} us are needed, those of the schedule have"
            f" {timing.slot_ns / NS_PER_US:g} us: frames or paths of new flows are longer; {_ANEW}"
        )
    had = _assignments(graph, saved, demands)
    draws = dict(
        zip((demand.id for demand in demands), np.random.default_rng(seed).random(len(demands)), strict=True)
    )
    if paths is not None:
        paths = [
            own if demand.id not in had else _as_kept(demand, own, had[demand.id].path, saved.scheme)
            for demand, own in zip(demands, paths, strict=True)
        ]
        if saved.scheme is SchedulingScheme.FIXED:
            paths = random_paths(paths, list(draws.values()))
    incremental = IncrementalSchedule(graph, saved.slots, saved.scheme)
    for demand in demands:
        if demand.id in had:
            incremental.restore(demand, had[demand.id])
    for demand in demands:
        if demand.id not in had:
            incremental.add(demand, draws[demand.id])
    assignments = incremental.assignments
    bound, why = len(flows), "every flow has a slot"
    if len(assignments) < bound:
        bound, why = most_flows(problem, paths, solve, clock)
    scheduled = tuple(
        scheduled_flow(lab, graph, flow, assignments[flow.id], timing=timing, crossed=crossed)
        for flow in flows
        if flow.id in assignments
    )
    schedule = LabSchedule(
        lab=lab,
        scheme=saved.scheme,
        exclusive=exclusive,
        slots=saved.slots,
        timing=timing,
        scheduled=scheduled,
        unscheduled=tuple(flow for flow in flows if flow.id not in assignments),
        solution=ScheduleSolution(assignments=assignments, bound=bound, why=why),
        entries=tables(lab, scheduled, saved.table_entries, f"schedule fewer flows, or {_ANEW}"),
        table_entries=saved.table_entries,
        changes_per_s=saved.changes_per_s,
        openflow=saved.openflow,
    )
    wanted = {flow.id for flow in flows}
    return ExtendedSchedule(
        schedule=schedule,
        kept=tuple(flow.id for flow in flows if flow.id in had),
        added=tuple(flow.timed.id for flow in scheduled if flow.timed.id not in had),
        removed=tuple(flow.id for flow in saved.scheduled if flow.id not in wanted),
    )


def _assignments(graph: Graph, kept: SavedSchedule, demands: Sequence[SlotDemand]) -> dict[str, Assignment]:
    """Return the slots and paths that these flows already have.

    Raises `InputError` if one is no path of the lab.
    """
    wanted = {demand.id: demand for demand in demands}
    assignments: dict[str, Assignment] = {}
    for flow in kept.scheduled:
        if flow.id not in wanted:
            continue
        if flow.id in assignments:
            raise InputError(f"flow '{flow.id}': is listed twice in the schedule; {_ANEW}")
        _, source, destination = wanted[flow.id]
        hops = [
            Hop(switch=switch, output_port=port) for switch, port in zip(flow.path, flow.ports, strict=False)
        ]
        path = path_of(graph, source, destination, hops)
        if path is None or len(flow.path) != len(flow.ports):
            raise InputError(
                f"flow '{flow.id}': its path in the schedule does not lead from {source} to {destination};"
                f" give the flow another id, or {_ANEW}"
            )
        assignments[flow.id] = Assignment(slot=flow.slot, path=path)
    return assignments


def _as_kept(
    demand: SlotDemand, shortest: Sequence[Path], path: Path, scheme: SchedulingScheme
) -> Sequence[Path]:
    """Return the paths that the flow might be moved to: its own alone under S/FR, else all shortest ones."""
    if path not in shortest:
        raise InputError(
            f"flow '{demand.id}': its path in the schedule is not a shortest one, as {scheme.value} asks;"
            f" {_ANEW}"
        )
    return [path] if scheme is SchedulingScheme.FIXED else shortest
