"""Which stored promises hold in another lab, with other profiles or options, and what becomes of the rest.

Flows are granted again in the order of their requests. First those that keep their promise on their path;
then those that keep it on another path; then those that can be carried at all, with a worse guarantee. So no
flow loses its promise to one whose own promise is broken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from loko.admission import Refusal
from loko.document import InputError
from loko.service.admitter import AdmittedFlow, Admitter
from loko.service.breaks import StoredViolation, ViolationCause
from loko.service.outcome import Delete, FlowState, Rewrite, StoredFlow, Write
from loko.service.promises import Grounds, describe_raised, is_kept, is_sufficient
from loko.service.protected_admitter import ProtectedAdmitter
from loko.service.source_ports import SourcePort, from_free_port, stored_ports
from loko.service.store_document import StoreDocument
from loko.topology.network import Hop
from loko.units import in_ms


class MigrationResult(StrEnum):
    """Outcome of a flow's migration."""

    KEPT = "kept"
    """Its promise holds."""
    RAISED = "raised"
    """Its guarantee is worse than promised, but still meets its deadline. It is promised anew."""
    BROKEN = "broken"
    """It is carried with a guarantee that is worse than promised, and too bad for any deadline it has."""
    LOST = "lost"
    """There is no room or no path for it. It is taken from the switches."""
    ENDED = "ended"
    """It was being removed, or nobody had been told of it. It is forgotten."""


@dataclass(frozen=True)
class MigratedFlow:
    """Migration of one flow."""

    before: StoredFlow
    result: MigrationResult
    text: str
    """In words."""
    after: StoredFlow | None
    """As it is to be stored; None if it is to be forgotten."""
    guarantee_ns: float | None
    """Its new guarantee; None if it gets none."""

    @property
    def path(self) -> tuple[Hop, ...]:
        """Its new path; empty if it gets nothing."""
        return () if self.after is None or self.guarantee_ns is None else self.after.path

    def values(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        promised = self.before.promise
        return {
            "id": self.before.flow.id,
            "fate": self.result.value,
            "text": self.text,
            "promised_ns": None if promised is None else promised.guarantee_ns,
            "deadline_ns": None if promised is None else promised.deadline_ns,
            "guarantee_ns": self.guarantee_ns,
            "path_before": [hop.switch for hop in self.before.path],
            "path": [hop.switch for hop in self.path],
        }


@dataclass(frozen=True)
class Migration:
    """The difference that it makes to serve a store under other circumstances."""

    held: StoreDocument
    """Content of the store before."""
    circumstances: Mapping[str, str]
    """The new ones."""
    differences: tuple[tuple[str, str | None, str | None], ...]
    """The circumstances that differ: name, value before, value after; None where it is not named."""
    profiles: tuple[str, ...]
    """Switches whose profile is not the one on which a promise rests."""
    conditions: tuple[str, ...]
    """Ids of the conditions of which a requester was not told."""
    flows: tuple[MigratedFlow, ...]

    @property
    def breaking(self) -> tuple[MigratedFlow, ...]:
        """The flows whose promise breaks."""
        return tuple(
            flow for flow in self.flows if flow.result in {MigrationResult.BROKEN, MigrationResult.LOST}
        )

    @property
    def writes(self) -> list[Write]:
        """Return the writes that switch over, beside the circumstances."""
        return [
            Delete(flow.before.number) if flow.after is None else Rewrite(flow.after) for flow in self.flows
        ]

    def values(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "differences": [
                {"name": name, "before": before, "after": after} for name, before, after in self.differences
            ],
            "profiles": list(self.profiles),
            "conditions": list(self.conditions),
            "flows": [flow.values() for flow in self.flows],
            "residual_backlogs": len(self.held.residual_backlogs),
            "breaking": len(self.breaking),
        }

    def lines(self) -> list[str]:
        """Return the difference in words, a line for each."""
        backlogs = len(self.held.residual_backlogs)
        return [
            *(
                f"{name}: {_named(before)} before, {_named(after)} now"
                for name, before, after in self.differences
            ),
            *([f"profile changed: {', '.join(self.profiles)}"] if self.profiles else []),
            *([f"further conditions: {', '.join(self.conditions)}"] if self.conditions else []),
            *(f"{flow.before.flow.id}: {flow.result}, {flow.text}" for flow in self.flows),
            *([f"what released flows have left at {backlogs} servers is forgotten"] if backlogs else []),
            f"{len(self.breaking)} of {len(self.flows)} promises break",
        ]


def _named(value: str | None) -> str:
    return "not named" if value is None else value or "none"


def migration(
    held: StoreDocument,
    admitter: Admitter,
    grounds: Grounds,
    circumstances: Mapping[str, str],
    *,
    now_ms: int,
) -> Migration:
    """Return what would become of a store's flows. Nothing may be granted before; nothing is afterwards."""
    stored = [flow.stored for flow in held.flows]
    decided = _FlowMigrator(admitter, grounds, now_ms)
    try:
        flows = decided.fates(stored)
    finally:
        for flow_id in decided.granted:
            admitter.cancel(flow_id)
    names = sorted(held.options.keys() | circumstances.keys(), key=lambda name: (name != "lab", name))
    differences = ((name, held.options.get(name), circumstances.get(name)) for name in names)
    promises = [flow.promise for flow in stored if flow.promise is not None]
    changed = {name for promised in promises for name in grounds.changed_profiles(promised)}
    further = {name for promised in promises for name in grounds.added_conditions(promised)}
    return Migration(
        held=held,
        circumstances=circumstances,
        differences=tuple(found for found in differences if found[1] != found[2]),
        profiles=tuple(sorted(changed)),
        conditions=tuple(sorted(further)),
        flows=tuple(flows),
    )


class _FlowMigrator:
    """Decides on flows one by one."""

    def __init__(self, admitter: Admitter, grounds: Grounds, now_ms: int) -> None:
        self._admitter, self._grounds, self._now_ms = admitter, grounds, now_ms
        self.granted: list[str] = []

    def fates(self, stored: Sequence[StoredFlow]) -> list[MigratedFlow]:
        """Return what becomes of each flow, in their order."""
        ports = stored_ports(stored)
        if isinstance(self._admitter, ProtectedAdmitter):
            self._admitter.keep_ports(ports)
        fates: dict[int, MigratedFlow] = {}
        waiting: list[StoredFlow] = []
        removing = {flow.flow[1:5]: flow for flow in stored if flow.state is FlowState.REMOVING}
        for flow in stored:
            if flow.state in {FlowState.ACCEPTED, FlowState.REMOVING}:
                fates[flow.number] = MigratedFlow(
                    flow, MigrationResult.ENDED, "it was not in use", None, None
                )
            else:
                waiting.append(flow)
        for step in (self._on_its_path, self._on_another_path, self._in_any_way):
            undecided = []
            for flow in waiting:
                found = step(flow)
                if found is None:
                    undecided.append(flow)
                    continue
                fates[flow.number] = found
                if (former := removing.get(flow.flow[1:5])) is not None:
                    fates[former.number] = self._former_path(former, found, ports) or fates[former.number]
            waiting = undecided
        return [fates[flow.number] for flow in stored]

    def _former_path(
        self, former: StoredFlow, found: MigratedFlow, ports: set[SourcePort]
    ) -> MigratedFlow | None:
        """Return what becomes of the path that a flow was leaving: it counts until the change is confirmed.

        None if it does not count on: the flow gets another path, or both have no room.
        """
        if not isinstance(self._admitter, ProtectedAdmitter) or found.path != found.before.path:
            return None
        beside = from_free_port(former.flow, ports)
        try:
            answer = self._admitter.grant_second_path(found.before.flow.id, beside, former.path)
        except InputError:  # a cable of it is gone
            return None
        if isinstance(answer, Refusal):
            return None
        self.granted.append(beside.id)
        text = f"the former path of {found.before.flow.id}, until it is known that no frame takes it"
        return MigratedFlow(former, MigrationResult.KEPT, text, former, answer.guarantee_ns)

    def _on_its_path(self, flow: StoredFlow) -> MigratedFlow | None:
        return self._promising(flow, self._asked(flow, None, moved=False))

    def _on_another_path(self, flow: StoredFlow) -> MigratedFlow | None:
        promised = flow.promise
        limit_ns = None if promised is None else max(promised.guarantee_ns, promised.deadline_ns or 0.0)
        return self._promising(flow, self._asked(flow, limit_ns, moved=True))

    def _promising(self, flow: StoredFlow, answer: AdmittedFlow | str) -> MigratedFlow | None:
        """Return what becomes of a flow that keeps its promise; give back what another got."""
        if isinstance(answer, str):
            return None
        promised, guarantee_ns = flow.promise, self._admitter.promised_ns(answer)
        if promised is not None and not is_sufficient(promised, guarantee_ns):
            self._admitter.cancel(flow.flow.id)
            self.granted.remove(flow.flow.id)
            return None
        deadline_ns = None if promised is None else promised.deadline_ns
        reserved = self._admitter.reserved_paths(flow.flow.id)
        anew = self._grounds.promise(answer, deadline_ns, guarantee_ns, reserved)
        fate, text = MigrationResult.KEPT, f"guarantee {in_ms(guarantee_ns, math.ceil)} ms"
        if promised is not None and is_kept(promised, guarantee_ns):
            anew = replace(anew, guarantee_ns=promised.guarantee_ns)
        elif promised is not None:
            fate, text = MigrationResult.RAISED, describe_raised(promised, guarantee_ns, self._grounds)
        after = replace(self._carried(flow, answer), promise=anew, broken=None)
        return MigratedFlow(flow, fate, text + _moved(flow, after), after, guarantee_ns)

    def _in_any_way(self, flow: StoredFlow) -> MigratedFlow:
        """Return what becomes of a flow whose promise breaks."""
        answer = self._asked(flow, None, moved=False)
        why = answer
        if isinstance(answer, str):
            answer = self._asked(flow, None, moved=True)
        if isinstance(answer, str):
            broken = StoredViolation(ViolationCause.NO_ROOM, flow.path[0].switch, str(why), self._now_ms)
            lost = replace(flow, state=FlowState.LOST, broken=broken)
            return MigratedFlow(flow, MigrationResult.LOST, str(why), lost, None)
        assert flow.promise is not None  # without a promise, any guarantee keeps it
        guarantee_ns = self._admitter.promised_ns(answer)
        text = describe_raised(flow.promise, guarantee_ns, self._grounds)
        changed = self._grounds.changed_profiles(flow.promise)
        broken = StoredViolation(
            ViolationCause.GUARANTEE_RAISED, (changed or [answer.path[0].switch])[0], text, self._now_ms
        )
        after = replace(self._carried(flow, answer), broken=broken)
        text += _moved(flow, after)
        return MigratedFlow(flow, MigrationResult.BROKEN, text, after, guarantee_ns)

    def _carried(self, flow: StoredFlow, answer: AdmittedFlow) -> StoredFlow:
        reserved = self._admitter.reserved_paths(flow.flow.id)
        return replace(flow, path=answer.path, state=FlowState.INSTALLED, reserved=reserved)

    def _asked(self, flow: StoredFlow, within_ns: float | None, *, moved: bool) -> AdmittedFlow | str:
        """Grant a flow on its path, or on any; or say in words why not."""
        try:
            if moved:
                answer = self._admitter.move(flow.flow, within_ns, flow.protection)
            else:
                answer = self._admitter.restore_flow(flow)
        except InputError as error:
            return str(error)
        if isinstance(answer, Refusal):
            return str(answer).removeprefix(f"{flow.flow.id}: ")
        reserved = self._admitter.reserved_paths(flow.flow.id)
        if flow.second_copies is not None and (
            reserved is None or reserved.second_copies != flow.second_copies
        ):
            self._admitter.cancel(flow.flow.id)
            return "its host sends second copies, which would not take their path any more"
        self.granted.append(flow.flow.id)
        return answer


def _moved(flow: StoredFlow, after: StoredFlow) -> str:
    """Return in words which path is another, and what its host is to send from now on."""
    text = "" if after.path == flow.path else f"; by {'-'.join(hop.switch for hop in after.path)}"
    copies = after.second_copies
    if copies is not None and flow.second_copies is None:
        text += f"; its host must send second copies from UDP port {copies.udp_source}"
    return text
