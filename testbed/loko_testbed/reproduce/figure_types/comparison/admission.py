"""Compute which flows a system accepts and what it promises them, without any replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loko.admission.planning import plan, scenario_of
from loko.schedule.lab_schedule import LabSchedule, NoSlotError, ScheduledFlow, SchedulingOptions, schedule
from loko.schedule.problem import SchedulingScheme
from loko.schedule.timed_flow import TimedFlow
from loko.schedule.timing import Exclusive
from loko.schedule.values import values_of
from loko.solvers import Solver, solver_named
from loko.solvers.program import TimeBudget
from loko.switch_model.control_traffic import HEARTBEAT
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.topology.network import Hop
from loko_testbed.reproduce.figure_types.comparison.document import (
    AdmissionSystem,
    ComparedSystem,
    ComparisonFigure,
    ComparisonLab,
    SlotSystem,
)
from loko_testbed.reproduce.schedule_check.document import ScheduleDocument, WantedFlow
from loko_testbed.reproduce.schedule_check.verdict import check
from loko_testbed.simulation.runner import RunError
from loko_testbed.simulation.traffic import flow_of
from loko_testbed.simulation.worst_case.schemes import admission_named

_NEVER: Final = TimeBudget(now_ns=lambda: 0, end_ns=24 * 3600 * 10**9)
"""A clock that never ends the search, so that its result depends on the document alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTimes:
    """A flow's slots by the host's own clock: at `offset_ns`, and from then on every `period_ns`."""

    offset_ns: int
    period_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteedFlow:
    """An accepted flow with its guarantee. It is a `Routed`, from which tables are made."""

    flow: Flow
    path: tuple[Hop, ...]
    guarantee_ns: float
    """Longest delay from the release by the sender."""
    slots: SlotTimes | None = None
    """None: the flow may send whenever its token bucket allows."""

    def unaware_ns(self, guard_ns: int) -> float:
        """Return the guarantee from the moment a frame is ready, for an application unaware of slots.

        The frame may just have missed its slot, which may have begun early; the next one may begin late.
        """
        return self.guarantee_ns + (self.slots.period_ns + 2 * guard_ns if self.slots else 0)


def requests(
    figure: ComparisonFigure, comparison_lab: ComparisonLab, lab: Lab, rate_kbps: float
) -> list[Flow]:
    """Return the flows to request from every system, in this order."""
    if comparison_lab.pairs:
        pairs = [(pair.source, pair.destination) for pair in comparison_lab.pairs]
    else:
        hosts = list(lab.hosts)
        pairs = [(host, hosts[(at + comparison_lab.onward) % len(hosts)]) for at, host in enumerate(hosts)]
    return [
        single_frames(figure, number, *pairs[number % len(pairs)], rate_kbps=rate_kbps)
        for number in range(comparison_lab.requests)
    ]


def single_frames(
    figure: ComparisonFigure, number: int, source: str, destination: str, *, rate_kbps: float
) -> Flow:
    """Return a flow whose bucket holds one frame."""
    return flow_of(
        number,
        source,
        destination,
        rate_bps=rate_kbps * 1e3,
        burst_bytes=float(figure.frame_bytes),
        frame_bytes=figure.frame_bytes,
        called="f",
    )


def admitted_flows(
    figure: ComparisonFigure,
    compared: ComparedSystem,
    lab: Lab,
    wanted: Sequence[Flow],
    *,
    is_checked: bool = True,
) -> tuple[GuaranteedFlow, ...]:
    """Return the flows that the system accepts. Raises `InputError` for a lab that it cannot describe.

    Raises `RunError` if the checker refutes their slots, unless they are not to be checked.
    Systems that reserve time for control traffic do so for the boards' own work and for a heartbeat.
    """
    if isinstance(compared, SlotSystem):
        try:
            schedule = schedule_of(figure, compared, lab, wanted)
        except NoSlotError:
            return ()
        if is_checked:
            _refuse_refuted(compared, lab, wanted, schedule)
        return tuple(map(_promised, schedule.scheduled))
    return _admitted(figure, compared, lab, wanted)


def _admitted(
    figure: ComparisonFigure, compared: AdmissionSystem, lab: Lab, wanted: Sequence[Flow]
) -> tuple[GuaranteedFlow, ...]:
    scenario = scenario_of(wanted, entries=figure.entries)
    admission = admission_named(compared.scheme, lab, scenario, control=HEARTBEAT)
    return tuple(
        GuaranteedFlow(flow=admitted.flow, path=admitted.path, guarantee_ns=admitted.guarantee_ns)
        for admitted in plan(lab, wanted, admission).accepted
    )


def schedule_of(
    figure: ComparisonFigure, compared: SlotSystem, lab: Lab, wanted: Sequence[Flow]
) -> LabSchedule:
    """Return a schedule in which each flow sends one frame per base period, which gives it its usual rate.

    Raises `NoSlotError` if they send too often.
    """
    timed = timed_flows(wanted)
    options = SchedulingOptions(
        scheme=SchedulingScheme.PATH_SETS,
        base_period_ns=int(min(map(_period_ns, wanted))),
        exclusive=Exclusive(compared.exclusive),
        guard_ns=round(figure.guard_us * 1e3),
        entries=figure.entries,
        is_thorough=False,
    )
    return schedule(lab, timed, options, solver_named(Solver.HIGHS), _NEVER)


def _refuse_refuted(
    compared: SlotSystem, lab: Lab, wanted: Sequence[Flow], lab_schedule: LabSchedule
) -> None:
    """Raise `RunError` if the checker refutes a schedule, by arithmetic or by a replay of all its flows."""
    asked = [WantedFlow.model_validate({**flow._asdict(), "period_us": None}) for flow in wanted]
    told = check(lab, asked, ScheduleDocument.model_validate(values_of(lab_schedule, 0.0))).refutations
    if told:
        raise RunError(f"the checker refutes the slots of {compared.label} on {lab.name}: {told[0]}")


def timed_flows(wanted: Sequence[Flow]) -> list[TimedFlow]:
    """Convert flows to requests for slots: a frame as often as their rates need."""
    return [TimedFlow(*flow[:5], flow.frame_bytes, None, _period_ns(flow)) for flow in wanted]


def _period_ns(flow: Flow) -> float:
    return flow.frame_bytes * 8e9 / flow.rate_bps


def _promised(scheduled: ScheduledFlow) -> GuaranteedFlow:
    return GuaranteedFlow(
        flow=scheduled.routed.flow,
        path=scheduled.path,
        guarantee_ns=scheduled.bound_ns,
        slots=SlotTimes(offset_ns=scheduled.offset_ns, period_ns=scheduled.every_ns),
    )
