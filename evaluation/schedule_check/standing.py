"""The check of a schedule that grows and shrinks, flow by flow: arithmetic, and a replay of what comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evaluation.schedule_check.arithmetic import Use, of_flow, uses
from evaluation.schedule_check.document import Allotted, Entry, ScheduleDocument, WantedFlow
from evaluation.schedule_check.replay import replay
from loko.lab import Lab

CYCLES: Final = 4
"""Base periods that are replayed of a flow that comes, and of those that share a switch with it."""


class StandingCheck:
    """Tries to refute the slot of each flow that comes, beside those that are there.

    Entries follow from paths: who installs flows one by one compares its switches' tables by itself.
    """

    def __init__(self, lab: Lab, cycle: ScheduleDocument) -> None:
        """Nobody has a slot yet. `cycle` says how long slots are; its flows do not count."""
        self._lab, self._cycle = lab, cycle
        self._owners: dict[tuple[int, Use], str] = {}
        self._uses: dict[str, list[tuple[int, Use]]] = {}
        self._there: dict[str, tuple[WantedFlow, Allotted]] = {}
        self._of_switch: dict[str, set[str]] = {}
        """By switch, the flows that pass."""

    def refutations(self, flow: Mapping[str, Any], *, is_new: bool = True) -> list[str]:
        """What is wrong with a flow as `loko schedule --json` prints one. If nothing is, it is there now.

        One that is not new was replayed when it was: it is checked by arithmetic. Raises what `replay` does.
        """
        wanted, slot = WantedFlow.model_validate(flow), Allotted.model_validate(flow)
        told = list(of_flow(self._lab, wanted, slot, self._cycle, with_entries=False))
        if slot.id in self._uses:
            told.append(f"{slot.id}: is there already")
        mine = [(slot.slot, use) for use in uses(slot, wanted.source, self._cycle.exclusive)]
        told += [
            f"{slot.id}: is not alone on {node} in slot {slot.slot}: {owner} is there"
            for owner, (_, node, _) in ((self._owners.get(use), use[1]) for use in mine)
            if owner is not None
        ]
        if not told and is_new:
            told = self._by_replay(wanted, slot)
        if not told:
            self._uses[slot.id] = mine
            self._owners.update(dict.fromkeys(mine, slot.id))
            self._there[slot.id] = (wanted, slot)
            for switch in slot.path:
                self._of_switch.setdefault(switch, set()).add(slot.id)
        return told

    def _by_replay(self, wanted: WantedFlow, slot: Allotted) -> list[str]:
        near = {name for switch in slot.path for name in self._of_switch.get(switch, ())}
        together = [*(self._there[name] for name in sorted(near)), (wanted, slot)]
        document = self._cycle.model_copy(
            update={
                "scheduled": [allotted for _, allotted in together],
                "unscheduled": [],
                "entries": self._entries(together),
            }
        )
        flows = [flow for flow, _ in together]
        return replay(self._lab, flows, document, cycles=CYCLES, seed=1).refutations

    def _entries(self, flows: list[tuple[WantedFlow, Allotted]]) -> dict[str, list[Entry]]:
        tables: dict[str, list[Entry]] = {}
        for wanted, slot in flows:
            ends = [str(self._lab.hosts[name].ip.ip) for name in (wanted.source, wanted.destination)]
            for switch, port in zip(slot.path, slot.ports, strict=True):
                entry = Entry(
                    nw_src=ends[0],
                    nw_dst=ends[1],
                    tp_src=wanted.udp_source,
                    tp_dst=wanted.udp_destination,
                    output_port=port,
                )
                tables.setdefault(switch, []).append(entry)
        return tables

    def remove(self, flow_id: str) -> None:
        """A flow is gone."""
        for use in self._uses.pop(flow_id):
            del self._owners[use]
        _, slot = self._there.pop(flow_id)
        for switch in slot.path:
            self._of_switch[switch].discard(flow_id)
