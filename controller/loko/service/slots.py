"""Flows that get slots instead of admission: how the service grants them, and what it begins with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, Field

from loko.admission import Refusal, ResourceShare, SchemeConditions, Usage
from loko.admission.port_queues.device import table_entries
from loko.admission.protection import Protection
from loko.admission.routing import Ends
from loko.document import InputError, read
from loko.schedule.conditions import CONDITIONS
from loko.schedule.incremental_lab_schedule import IncrementalLabSchedule, NoFreeSlot
from loko.schedule.lab_schedule import ScheduledFlow
from loko.schedule.saved_schedule import SavedFlow, SavedSchedule
from loko.schedule.timed_flow import TimedFlow
from loko.schedule.values import flow_values
from loko.service.admitter import AdmittedFlow, Decide
from loko.service.outcome import FlowState, ReservedPaths, SendSlot, StoredFlow
from loko.switch_model.flow import Flow, UdpPort
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab
from loko.topology.network import Hop, refuse_ends
from loko.units import NS_PER_US


class _Send(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    period_us: float = Field(gt=0, le=1e9)


class AddressedFlow(SavedFlow):
    """A flow of a schedule with all that the service has to know to install it."""

    source: str
    destination: str
    udp_source: UdpPort
    udp_destination: UdpPort
    frame_bytes: int = Field(ge=64, le=1518)
    send: _Send

    @property
    def timed(self) -> TimedFlow:
        """The flow with its ends, frame size and period."""
        period_ns = round(self.send.period_us * NS_PER_US)
        return TimedFlow(
            self.id,
            self.source,
            self.destination,
            self.udp_source,
            self.udp_destination,
            self.frame_bytes,
            period_ns,
            None,
        )


class ServedSchedule(SavedSchedule):
    """Output of `loko schedule --json`, as far as the service needs it."""

    scheduled: Sequence[AddressedFlow]

    @property
    def digest(self) -> str:
        """A short hash that identifies the schedule."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]


def load_served(file: Path, lab: Lab) -> ServedSchedule:
    """Read a schedule for the service. Raises `InputError` in one line."""
    if not file.is_file():
        raise InputError(f"--schedule {file}: no such file")
    schedule = read(file, ServedSchedule)
    if schedule.lab != lab.name:
        raise InputError(
            f"--schedule {file}: is for the lab '{schedule.lab}', not for '{lab.name}'; serve that lab"
        )
    if not schedule.scheduled:
        raise InputError(f"--schedule {file}: has no flow with a slot; schedule at least one")
    if not schedule.changes_per_s:
        raise InputError(
            f"--schedule {file}: its slots leave no time for changes of tables; make it with"
            " 'loko schedule … --changes-per-s 20'"
        )
    return schedule


@dataclass(frozen=True, slots=True)
class SlottedFlow:
    """A flow that has a slot. It is a `AdmittedFlow`."""

    scheduled: ScheduledFlow

    @property
    def flow(self) -> Flow:
        """The flow as it is on the wire."""
        return self.scheduled.routed.flow

    @property
    def path(self) -> tuple[Hop, ...]:
        """The switches that it crosses, in order."""
        return self.scheduled.path

    @property
    def guarantee_ns(self) -> float:
        """The bound on the time from the first bit that the source sends to the last one received."""
        return self.scheduled.bound_ns


class SlotChecker(Protocol):
    """Checks each slot before it is granted; shares no code with what found the slot."""

    def refutations(self, flow: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with a flow, by arithmetic; the flow is in the form of `loko schedule --json`.

        If nothing is wrong, the flow has its slot from now on.
        """

    def refutations_by_replay(self, flow_id: str) -> list[str]:
        """Return what is wrong with a flow that has its slot, by a replay with all flows that may meet it.

        Raises `InputError` for what cannot be replayed.
        """

    def remove(self, flow_id: str) -> None:
        """Remove a flow."""


class SlotAdmitter:
    """Grants slots in the cycle of a schedule. A `Admitter` without residual backlogs.

    A frame that leaves in its slot has arrived before the slot ends, so nothing of a flow outlasts its slot.
    """

    conditions: ClassVar[SchemeConditions] = CONDITIONS

    def __init__(
        self,
        lab: Lab,
        schedule: ServedSchedule,
        *,
        openflow: OpenFlow = OpenFlow.V1_0,
        checker: SlotChecker | None = None,
    ) -> None:
        """Begin with all slots free. Raises `InputError` if the slots are too short for what is served."""
        self.lab, self._checker = lab, checker
        sizes = {flow.frame_bytes for flow in schedule.scheduled}
        self.incremental = IncrementalLabSchedule(lab, schedule, frame_bytes=sizes, openflow=openflow)
        self.digest = schedule.digest
        self._first = tuple(schedule.scheduled)
        self._granted: dict[str, SlottedFlow] = {}

    def initial_flows(self, after: int) -> list[StoredFlow]:
        """Return the flows of the schedule in the form to store before any switch hears of them.

        They are numbered from `after` + 1, and count as installed, since the schedule has told its users
        their slots. Raises `InputError` if they do not fit together. All slots must be free before this, and
        are so afterwards.
        """
        stored = [
            StoredFlow(
                number=number,
                flow=flow.timed.sent(self.incremental.timing.base_period_ns),
                path=tuple(
                    Hop(switch=name, output_port=port)
                    for name, port in zip(flow.path, flow.ports, strict=False)
                ),
                state=FlowState.INSTALLED,
                send_slot=SendSlot(flow.slot, round(flow.send.period_us * NS_PER_US)),
            )
            for number, flow in enumerate(self._first, after + 1)
        ]
        for flow in stored:
            self.restore_flow(flow)
        for flow in stored:
            self.cancel(flow.flow.id)
        return stored

    def decision(self, flow: TimedFlow) -> Decide:
        """Return what decides on a flow: it gets the first free slot that the checker cannot refute."""
        return lambda: self._decide(flow)

    def on_the_wire(self, flow: TimedFlow) -> Flow:
        """Return what a flow sends. Raises `InputError` for hosts or a period that the schedule lacks."""
        refuse_ends(self.lab, flow.source, flow.destination)
        return flow.sent(self.incremental.timing.base_period_ns)

    def _decide(self, flow: TimedFlow) -> AdmittedFlow | Refusal:
        answer = self.incremental.add(flow)
        if isinstance(answer, NoFreeSlot):
            return self._refusal(flow, answer)
        granted = self._note(answer)
        try:
            told = [] if self._checker is None else self._checker.refutations_by_replay(flow.id)
            if told:
                raise _refuted(answer, told)
        except InputError:
            self.cancel(flow.id)
            raise
        return granted

    def _note(self, scheduled: ScheduledFlow) -> SlottedFlow:
        name = scheduled.timed.id
        told = [] if self._checker is None else self._checker.refutations(flow_values(scheduled))
        if told:
            self.incremental.remove(name)
            raise _refuted(scheduled, told)
        granted = self._granted[name] = SlottedFlow(scheduled)
        return granted

    def _refusal(self, flow: TimedFlow, full: NoFreeSlot) -> Refusal:
        if full.quantity == "entries":
            advice = f"release a flow that crosses {full.switch}"
            if table_entries(self.lab.switches[full.switch].profile) > full.allowed:
                advice += ", or make the schedule with more --entries"
        elif full.optimality_gap:
            advice = "release a flow on its path, or schedule all anew: moving others may make room"
        else:
            advice = "release a flow on its path: no schedule has a slot for all of them"
        return Refusal(
            flow=self.on_the_wire(flow),
            switch=full.switch,
            quantity=full.quantity,
            used=full.allowed,
            requested=1,
            allowed=full.allowed,
            unit=full.quantity,
            advice=advice,
        )

    def sends(self, grant: AdmittedFlow) -> dict[str, int]:
        """Return when a flow's host sends, as plain values: at its offset in a base period, once a period."""
        assert isinstance(grant, SlottedFlow)
        scheduled = grant.scheduled
        return {"slot": scheduled.slot, "offset_ns": scheduled.offset_ns, "period_ns": scheduled.every_ns}

    @property
    def scheme(self) -> str:
        """See `Admitter`, as for all methods below."""
        return self.incremental.scheme.value

    def restore_flow(self, stored: StoredFlow) -> AdmittedFlow | Refusal:
        """Give the flow its stored slot and path again.

        It was replayed when it was granted, so only the arithmetic is repeated.
        """
        if stored.send_slot is None:
            raise InputError("it was admitted, and has no slot")
        timed = TimedFlow(*stored.flow[:5], stored.flow.frame_bytes, stored.send_slot.period_ns, None)
        return self._note(self.incremental.restore(timed, stored.send_slot.slot, stored.path))

    def move(
        self,
        flow: Flow,  # noqa: ARG002 - as others
        within_ns: float | None,  # noqa: ARG002
        protection: Protection | None = None,  # noqa: ARG002
    ) -> AdmittedFlow | Refusal:
        """Raise `InputError`: its host was told its slot, and nobody else may tell it another."""
        raise InputError("a flow with a slot cannot be moved")

    def rename(self, flow_id: str, flow: Flow) -> AdmittedFlow:  # noqa: ARG002 - as others
        """Raise `InputError`: see `move`."""
        raise InputError("a flow with a slot cannot be moved")

    def guarantee_ns(self, grant: AdmittedFlow) -> float:
        """Return the guarantee of the flow's path."""
        return grant.guarantee_ns

    def promised_ns(self, grant: AdmittedFlow) -> float:
        """Return the guarantee: a flow has one path."""
        return grant.guarantee_ns

    def reserved_paths(self, _flow_id: str) -> ReservedPaths | None:
        """None: nothing is reserved for failures."""
        return None

    def send_slot(self, flow_id: str) -> SendSlot | None:
        """Return the flow's slot and its period."""
        scheduled = self._granted[flow_id].scheduled
        return SendSlot(scheduled.slot, scheduled.every_ns)

    def timing(self, grant: AdmittedFlow) -> dict[str, int] | None:
        """Return when the flow's slot begins, and how far a host's clock may be off (`guard_ns`)."""
        send_slot = self.sends(grant)
        return {
            "offset_ns": send_slot["offset_ns"],
            "period_ns": send_slot["period_ns"],
            "guard_ns": self.incremental.timing.guard_ns,
        }

    def values(self, grant: AdmittedFlow) -> dict[str, Any]:
        """Return guarantee and send slot, and the bound's part of each hop; one frame at a time arrives."""
        path = [
            {
                "switch": hop.switch,
                "output_port": hop.output_port,
                "delay_ns": delay_ns,
                "burst_bytes": grant.flow.burst_bytes,
            }
            for hop, delay_ns in zip(grant.path, self.incremental.delays_ns(grant.path), strict=True)
        ]
        return {"guarantee_ns": grant.guarantee_ns, "path": path, "send_slot": self.sends(grant)}

    def avoid(self, _dead_ends: Ends) -> None:
        """A schedule has its paths: a slot across a dead cable is refused until the cable is back."""

    def advance(self, _now_ns: int) -> None:
        """Slots do not age."""

    def cancel(self, flow_id: str) -> None:
        """Free the flow's slot."""
        del self._granted[flow_id]
        self.incremental.remove(flow_id)
        if self._checker is not None:
            self._checker.remove(flow_id)

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None) -> None:  # noqa: ARG002 - as others
        """Free the flow's slot: what it has sent has arrived."""
        self.cancel(flow_id)

    def drain_time_ns(self, _flow_id: str) -> int:
        """Return the length of a slot: it covers the slowest frame and how far a host's clock may be off."""
        return self.incremental.timing.slot_ns

    def servers(self, _grant: AdmittedFlow) -> tuple[str, ...]:
        """Return none: flows with slots leave no residual backlogs."""
        return ()

    def residual_backlog(self, _server: str) -> float | None:
        """None: there are no residual backlogs."""
        return None

    def restore_backlogs(self, backlogs: Mapping[str, float], *, now_ns: int) -> None:  # noqa: ARG002 - as others
        """Raise `ValueError` if there are residual backlogs, which are those of an admission scheme."""
        if backlogs:
            raise ValueError("slots leave no residual backlogs")

    def usage(self, switch: str) -> Usage:
        """Return the slots in use on the fullest link of a switch, and the entries in its table."""
        incremental = self.incremental
        return Usage(
            shares=(
                ResourceShare("slots", incremental.busy_slots(switch), incremental.slots, "slots"),
                ResourceShare("entries", incremental.entries(switch), incremental.table_entries, "entries"),
            ),
            delay_ns=incremental.delay_ns(switch),
        )


def _refuted(scheduled: ScheduledFlow, told: Sequence[str]) -> InputError:
    return InputError(f"the checker refutes slot {scheduled.slot}: {told[0]}; please report it")
