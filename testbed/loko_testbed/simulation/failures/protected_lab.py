"""A simulated lab with a plan that survives failures: its tables, a failure at an instant, and the moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from operator import attrgetter
from types import MappingProxyType, ModuleType
from typing import Final

from loko.admission import Admitted
from loko.admission.protection import MoveTiming, NetworkFailure, ProtectedPlan, Recovery
from loko.admission.schemes import SchemeName, variant_named
from loko.control import messages, messages13
from loko.control.entries import (
    EVALUATION_ENTRIES,
    FlowEntry,
    hop_entries,
    is_padding,
    path_entries,
    switch_entries,
)
from loko.switch_model.control_traffic import HEARTBEAT
from loko.switch_model.scenario import OpenFlow, Unknown
from loko.topology.lab import Link
from loko.topology.ring import Setting
from loko.units import NS_PER_S
from loko_testbed.simulation.planned_control import Planned, all_that_may_be_sent
from loko_testbed.simulation.runner import RunRecords
from loko_testbed.simulation.traffic import Instants
from loko_testbed.simulation.virtual import PoweredLab, lab_network
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.delivery import DRAIN_NS, timed_senders
from loko_testbed.simulation.worst_case.other_traffic import OtherTraffic, at_line_rate

_MESSAGES: Final[Mapping[OpenFlow, ModuleType]] = {OpenFlow.V1_0: messages, OpenFlow.V1_3: messages13}
_FIRST_XID: Final = 100_000
"""Larger than any transaction ID of the session that sets up the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A failure at an instant of a run."""

    failure: NetworkFailure
    at_ns: int


@dataclass(frozen=True, kw_only=True)
class ProtectedLab:
    """A plan on its lab, whose switches have all entries that the plan has before a failure."""

    plan: ProtectedPlan
    timing: MoveTiming
    entries: int | Unknown
    """Entries that each table is planned for, as for `loko.control.entries.switch_entries`."""
    openflow: OpenFlow = OpenFlow.V1_0

    @cached_property
    def has_port_queues(self) -> bool:
        """Whether the switches have queues for each port, so that other traffic may fill the cables."""
        return variant_named(self.plan.plan.scheme).scheme == SchemeName.PORTS

    @cached_property
    def second_copy_of(self) -> Mapping[int, int]:
        """By number of a duplicated flow, the number under which its second copies are sent."""
        duplicated = (
            number for number, flow in enumerate(self.plan.flows.values()) if flow.duplicate is not None
        )
        return dict(zip(duplicated, count(len(self.plan.flows)), strict=False))

    @cached_property
    def sent(self) -> AdmittedSet:
        """All that hosts send: the flows in the order of the plan, then the second copies of each."""
        flows = tuple(self.plan.flows.values())
        taken = {flow.working.flow.udp_source for flow in flows}
        free = (port for port in range(65535, 0, -1) if port not in taken)
        copies = [
            duplicate._replace(
                flow=duplicate.flow._replace(id=f"{duplicate.flow.id} again", udp_source=next(free))
            )
            for flow in flows
            if (duplicate := flow.duplicate) is not None
        ]
        return self._set_of((*(flow.working for flow in flows), *copies))

    def after(self, failure: NetworkFailure) -> AdmittedSet:
        """Return what hosts send, on the paths that it takes once all flows have moved after a failure."""
        moved = [flow.backups.get(failure.name, flow.working) for flow in self.plan.flows.values()]
        return self._set_of((*moved, *self.sent.admitted[len(moved) :]))

    def recovery(self, failure: NetworkFailure) -> Recovery | None:
        """Return how flows recover from a failure; None if it hits none."""
        return self._recoveries.get(failure.name)

    @cached_property
    def _recoveries(self) -> Mapping[str, Recovery]:
        return {recovery.failure.name: recovery for recovery in self.plan.recoveries(self.timing)}

    @cached_property
    def _tables(self) -> Mapping[str, Sequence[FlowEntry]]:
        lab = self.plan.plan.lab
        tables = {
            switch: [*table]
            for switch, table in switch_entries(lab, self.sent.admitted, entries=self.entries).items()
        }
        for flow_id, hops in self.plan.preinstalled.items():
            for switch, entry in hop_entries(lab, self.plan.flows[flow_id].working, hops):
                table = tables[switch]
                padding = next((place for place, each in enumerate(table) if is_padding(each)), None)
                if padding is None:
                    table.append(entry)
                else:
                    table[padding] = replace(entry, priority=table[padding].priority)
        return tables

    def _set_of(self, admitted: tuple[Admitted, ...]) -> AdmittedSet:
        return AdmittedSet(
            lab=self.plan.plan.lab,
            scheme=self.plan.plan.scheme,
            admitted=admitted,
            entries=EVALUATION_ENTRIES if isinstance(self.entries, Unknown) else self.entries,
            openflow=self.openflow,
        )

    def run(
        self,
        releases: Sequence[Instants],
        cut: Cut,
        *,
        seed: int,
        duration_ns: int,
        settings: Mapping[str, Mapping[str, Setting]] = MappingProxyType({}),
        capture: Callable[[PoweredLab], None] | None = None,
    ) -> RunRecords:
        """Offer the frames of each flow at these instants, with a failure at its instant.

        Each frame of a duplicated flow is offered to both paths at the same time. On switches with queues for
        each port, traffic of low priority fills the ports beside the flows. After the run, `capture` may
        take what was captured of it. Raises `RunError` if a board refuses an entry.
        """
        offered = [*releases, *(releases[number] for number in self.second_copy_of)]
        senders = timed_senders(self.sent, offered, observed=True)
        others = self._others(duration_ns)
        lab = others.lab
        network = lab_network(
            lab,
            {name: (*table, *others.entries.get(name, ())) for name, table in self._tables.items()},
            seed=seed,
            settings=settings,
            openflow=self.openflow,
            is_captured=capture is not None,
        )
        powered = PoweredLab(lab, network, seed)
        records = powered.run(
            [*senders, *others.senders],
            duration_ns=duration_ns,
            planned=self._planned(cut, duration_ns),
            pulled=[(cut.at_ns, link) for link in dead_cables(cut.failure, lab.links)],
            drain_ns=DRAIN_NS,
        )
        if capture is not None:
            capture(powered)
        return records

    def _others(self, duration_ns: int) -> OtherTraffic:
        """Return traffic that fills the ports of all paths, where it has queues of its own."""
        if not self.has_port_queues:
            return OtherTraffic(lab=self.plan.plan.lab)
        backups = (backup for flow in self.plan.flows.values() for backup in flow.backups.values())
        return at_line_rate(self.plan.plan.lab, (*self.sent.admitted, *backups), duration_ns=duration_ns)

    def _planned(self, cut: Cut, duration_ns: int) -> Planned:
        """Return what the controller sends: the changes of tables, and heartbeats while none is near."""
        lab = self.plan.plan.lab
        changes = self._changes(cut)
        heartbeats = all_that_may_be_sent(
            lab,
            HEARTBEAT,
            duration_ns=duration_ns,
            first_ns=dict.fromkeys(lab.switches, 0),
            openflow=self.openflow,
        )
        # The driver keeps half the time of a change from one segment to the next.
        apart_ns = NS_PER_S / self.timing.changes_per_s / 2
        return {
            switch: sorted(
                [
                    *changes[switch],
                    *(
                        beat
                        for beat in heartbeats[switch]
                        if all(abs(beat[0] - at_ns) >= apart_ns for at_ns, _ in changes[switch])
                    ),
                ]
            )
            for switch in lab.switches
        }

    def _changes(self, cut: Cut) -> Mapping[str, list[tuple[int, bytes]]]:
        """Return by switch the FLOW_MODs of the moves after a failure, with their instants.

        A new entry takes the place of a padding entry, where there are any: so the tables stay as long as
        planned, and no frame is compared with more entries, or fewer.
        """
        lab = self.plan.plan.lab
        wire = _MESSAGES[self.openflow]
        segments: dict[str, list[tuple[int, bytes]]] = {switch: [] for switch in lab.switches}
        recovery = self.recovery(cut.failure)
        if recovery is None:
            return segments
        former = {(switch, entry.match): entry for switch, table in self._tables.items() for entry in table}
        padding = {
            switch: [entry for entry in table if is_padding(entry)] for switch, table in self._tables.items()
        }
        wanted = {
            (flow_id, visit.switch): entry
            for flow_id in recovery.moved
            for visit, entry in path_entries(lab, self.plan.flows[flow_id].backups[cut.failure.name])
        }
        # A group's switching over looks from outside like a change of its flow's entry at that instant.
        changes = (*recovery.table_changes, *recovery.diversions)
        for xid, change in enumerate(sorted(changes, key=attrgetter("after_ns")), start=_FIRST_XID):
            switch = change.hop.switch
            entry = wanted[change.flow_id, switch]
            before = former.get((switch, entry.match))
            if before is None and padding[switch]:
                before = padding[switch].pop()
            message = (
                wire.add_entry(entry, xid)
                if before is None
                else wire.replace_entry(before, replace(entry, priority=before.priority), xid)
            )
            segments[switch].append((cut.at_ns + change.after_ns, message))
        return segments


def dead_cables(failure: NetworkFailure, links: Sequence[Link]) -> list[Link]:
    """Return the cables that no frame crosses after a failure: those of a failed switch are all dead."""
    return [link for link in links if link.ends <= failure.dead_ends]
