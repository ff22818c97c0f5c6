"""What a system accepts of a list of flows, and what it promises them: pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evaluation.adversary.schemes import admission_named
from evaluation.kinds.duel.document import Arena, ByAdmission, BySlots, Contender, DuelFigure
from evaluation.traffic import flow_of
from loko.control_traffic import HEARTBEAT
from loko.flow import Flow
from loko.lab import Lab
from loko.network import Hop
from loko.planning import plan, scenario_of
from loko.schedule.lab_schedule import LabSchedule, NoSlotError, ScheduledFlow, Wishes, schedule
from loko.schedule.problem import SchedulingScheme
from loko.schedule.timed_flow import TimedFlow
from loko.schedule.timing import Exclusive
from loko.solvers import Solver, solver_named
from loko.solvers.program import Clock

_NEVER: Final = Clock(now_ns=lambda: 0, end_ns=24 * 3600 * 10**9)
"""No clock ends the search: what it finds depends on the document alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """When a host has to send, by its own clock: at this offset, and then every period."""

    offset_ns: int
    every_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """A flow that was accepted. It is a `Routed`: tables are made from it."""

    flow: Flow
    path: tuple[Hop, ...]
    guarantee_ns: float
    """From the release by the sender."""
    turn: Turn | None = None
    """None: whenever its token bucket allows."""

    def unaware_ns(self, guard_ns: int) -> float:
        """The guarantee of an application that knows nothing of slots, from when its frame is ready.

        It may just have missed its slot, which may have begun early, and the next one may begin late.
        """
        return self.guarantee_ns + (self.turn.every_ns + 2 * guard_ns if self.turn else 0)


def requests(figure: DuelFigure, arena: Arena, lab: Lab, rate_kbps: float) -> list[Flow]:
    """The flows that every system is asked for, in this order."""
    if arena.pairs:
        pairs = [(pair.source, pair.destination) for pair in arena.pairs]
    else:
        hosts = list(lab.hosts)
        pairs = [(host, hosts[(at + arena.onward) % len(hosts)]) for at, host in enumerate(hosts)]
    return [
        single_frames(figure, number, *pairs[number % len(pairs)], rate_kbps=rate_kbps)
        for number in range(arena.requests)
    ]


def single_frames(
    figure: DuelFigure, number: int, source: str, destination: str, *, rate_kbps: float
) -> Flow:
    """A flow with a bucket of one frame."""
    return flow_of(
        number,
        source,
        destination,
        rate_bps=rate_kbps * 1e3,
        burst_bytes=float(figure.frame_bytes),
        frame_bytes=figure.frame_bytes,
        called="f",
    )


def accepted(
    figure: DuelFigure, contender: Contender, lab: Lab, wanted: Sequence[Flow]
) -> tuple[Promised, ...]:
    """What the system accepts. Raises `InputError` for a lab that it cannot describe.

    Whoever reserves anything reserves for what a board does by itself and for a heartbeat.
    """
    if isinstance(contender, BySlots):
        try:
            return tuple(map(_promised, schedule_of(figure, contender, lab, wanted).scheduled))
        except NoSlotError:
            return ()
    return _admitted(figure, contender, lab, wanted)


def _admitted(
    figure: DuelFigure, contender: ByAdmission, lab: Lab, wanted: Sequence[Flow]
) -> tuple[Promised, ...]:
    scenario = scenario_of(wanted, entries=figure.entries)
    admission = admission_named(contender.scheme, lab, scenario, control=HEARTBEAT)
    return tuple(
        Promised(flow=one.flow, path=one.path, guarantee_ns=one.guarantee_ns)
        for one in plan(lab, wanted, admission).accepted
    )


def schedule_of(figure: DuelFigure, contender: BySlots, lab: Lab, wanted: Sequence[Flow]) -> LabSchedule:
    """The schedule of these flows, each with a frame a base period: the rate that it has elsewhere.

    Raises `NoSlotError` if they send too often.
    """
    timed = timed_flows(wanted)
    wishes = Wishes(
        scheme=SchedulingScheme.PATH_SETS,
        base_period_ns=int(min(map(_period_ns, wanted))),
        exclusive=Exclusive(contender.exclusive),
        guard_ns=round(figure.guard_us * 1e3),
        entries=figure.entries,
        is_thorough=False,
    )
    return schedule(lab, timed, wishes, solver_named(Solver.HIGHS), _NEVER)


def timed_flows(wanted: Sequence[Flow]) -> list[TimedFlow]:
    """The same flows as those ask who want slots: for a frame as often as their rates need."""
    return [TimedFlow(*flow[:5], flow.frame_bytes, None, _period_ns(flow)) for flow in wanted]


def _period_ns(flow: Flow) -> float:
    return flow.frame_bytes * 8e9 / flow.rate_bps


def _promised(one: ScheduledFlow) -> Promised:
    return Promised(
        flow=one.routed.flow,
        path=one.path,
        guarantee_ns=one.bound_ns,
        turn=Turn(offset_ns=one.offset_ns, every_ns=one.every_ns),
    )
