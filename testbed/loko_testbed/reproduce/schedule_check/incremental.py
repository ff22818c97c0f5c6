"""The check of a schedule that grows and shrinks, flow by flow: arithmetic, then a replay of the slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from loko.topology.lab import Lab
from loko_testbed.reproduce.schedule_check.arithmetic import Use, of_flow, uses
from loko_testbed.reproduce.schedule_check.document import Entry, ScheduleDocument, ScheduledSlot, WantedFlow
from loko_testbed.reproduce.schedule_check.replay import replay
from loko_testbed.reproduce.schedule_check.verdict import CYCLES
from loko_testbed.simulation.runner import RunError


class _PlacedFlow(NamedTuple):
    wanted: WantedFlow
    slot: ScheduledSlot
    uses: list[tuple[int, Use]]


class IncrementalCheck:
    """Tries to refute the slot of each new flow, beside the flows that have slots already.

    Flow entries are not checked: who installs flows one by one compares the switches' tables anyway. A replay
    uses the entries that lead along the paths.
    """

    def __init__(self, lab: Lab, cycle: ScheduleDocument) -> None:
        """Begin without flows. `cycle` gives the lengths of slots and periods; its own flows are ignored."""
        self._lab, self._cycle = lab, cycle
        self._owners: dict[tuple[int, Use], str] = {}
        self._there: dict[str, _PlacedFlow] = {}

    def refutations(self, flow: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with a flow, by arithmetic; the flow is in the form of `loko schedule --json`.

        If nothing is wrong, the flow has its slot from now on.
        """
        wanted, slot = WantedFlow.model_validate(flow), ScheduledSlot.model_validate(flow)
        told = list(of_flow(self._lab, wanted, slot, self._cycle, with_entries=False))
        if slot.id in self._there:
            told.append(f"{slot.id}: is there already")
        mine = [(slot.slot, use) for use in uses(slot, wanted.source, self._cycle.exclusive)]
        told += [
            f"{slot.id}: is not alone on {node} in slot {slot.slot}: {owner} is there"
            for owner, (_, node, _) in ((self._owners.get(use), use[1]) for use in mine)
            if owner is not None
        ]
        if not told:
            self._there[slot.id] = _PlacedFlow(wanted, slot, mine)
            self._owners.update(dict.fromkeys(mine, slot.id))
        return told

    def refutations_by_replay(self, flow_id: str) -> list[str]:
        """Replay a flow that has its slot, with all other flows of that slot; return what is wrong.

        Flows of other slots cannot meet it: a frame that is still under way when the next slot may begin
        refutes its own slot. Tables are as full as planned, and include the entries of flows of other slots.
        """
        slot = self._there[flow_id].slot.slot
        together = [there for there in self._there.values() if there.slot.slot == slot]
        crossed = {switch for there in together for switch in there.slot.path}
        document = self._cycle.model_copy(
            update={
                "scheduled": [there.slot for there in together],
                "entries": {switch: self._entries(switch) for switch in sorted(crossed)},
            }
        )
        wanted = [there.wanted for there in together]
        try:
            return replay(self._lab, wanted, document, cycles=CYCLES, seed=1).refutations
        except RunError as error:
            return [f"{flow_id}: {error}"]

    def remove(self, flow_id: str) -> None:
        """Remove a flow."""
        for use in self._there.pop(flow_id).uses:
            del self._owners[use]

    def _entries(self, switch: str) -> list[Entry]:
        return [
            Entry(
                nw_src=str(self._lab.hosts[wanted.source].ip.ip),
                nw_dst=str(self._lab.hosts[wanted.destination].ip.ip),
                tp_src=wanted.udp_source,
                tp_dst=wanted.udp_destination,
                output_port=port,
            )
            for wanted, slot, _ in self._there.values()
            for name, port in zip(slot.path, slot.ports, strict=True)
            if name == switch
        ]
