"""The arithmetic of a schedule that grows and shrinks, flow by flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.schedule_check.arithmetic import Use, of_flow, uses
from evaluation.schedule_check.document import Allotted, ScheduleDocument, WantedFlow
from loko.lab import Lab


class StandingCheck:
    """Tries to refute the slot of each flow that comes, beside those that are there.

    Entries are not asked for: who installs flows one by one compares its switches' tables by itself.
    """

    def __init__(self, lab: Lab, cycle: ScheduleDocument) -> None:
        """Nobody has a slot yet. `cycle` says how long slots are; its flows do not count."""
        self._lab, self._cycle = lab, cycle
        self._owners: dict[tuple[int, Use], str] = {}
        self._uses: dict[str, list[tuple[int, Use]]] = {}

    def refutations(self, flow: Mapping[str, Any]) -> list[str]:
        """What is wrong with a flow as `loko schedule --json` prints one. If nothing is, it is there now."""
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
        if not told:
            self._uses[slot.id] = mine
            self._owners.update(dict.fromkeys(mine, slot.id))
        return told

    def remove(self, flow_id: str) -> None:
        """A flow is gone."""
        for use in self._uses.pop(flow_id):
            del self._owners[use]
