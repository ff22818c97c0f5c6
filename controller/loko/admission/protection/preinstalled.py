"""Entries of backup paths that switches hold before anything fails, so that a flow moves by one change.

On a switch that the flow's present path does not visit, no frame of the flow meets such an entry. So after a
failure only the switch where the paths part has an entry to exchange.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from loko.admission.protection.replacement import ChosenPaths
from loko.topology.network import Hop


class _Standby(NamedTuple):
    """A flow with backup paths across a switch that its working path does not visit."""

    flow_id: str
    hop: Hop
    failures: frozenset[str]
    """The failures after which one of its backup paths crosses the switch."""


def preinstalled_hops(
    flows: Mapping[str, ChosenPaths], room: Mapping[str, int]
) -> dict[str, tuple[Hop, ...]]:
    """Return by flow the hops of its backup paths whose entries are installed beforehand.

    `room` is the number of entries that flows may have at a switch, by default none. A flow has one entry at
    a switch, so where its backup paths leave a switch by different ports, the first of them decides; a path
    that visits a switch again has another one there. Where a table is too short for all, flows come in their
    order. Whichever one of the failures happens, each table has room for the entries that are then added:
    those of working paths and these stay.
    """
    always: Counter[str] = Counter()
    standbys: defaultdict[str, list[_Standby]] = defaultdict(list)
    for flow_id, paths in flows.items():
        own = {hop.switch for hop in paths.working}
        always.update(hop.switch for hop in (*paths.working, *(paths.second or ())))
        crossed: defaultdict[str, list[tuple[str, Hop]]] = defaultdict(list)
        for name, path in paths.backups.items():
            for hop in path:
                if hop.switch not in own:
                    crossed[hop.switch].append((name, hop))
        for switch, found in crossed.items():
            names = frozenset(name for name, _ in found)
            standbys[switch].append(_Standby(flow_id, found[0][1], names))
    chosen: defaultdict[str, list[Hop]] = defaultdict(list)
    for switch, waiting in standbys.items():
        for standby in _fitting(waiting, room.get(switch, 0) - always[switch]):
            chosen[standby.flow_id].append(standby.hop)
    return {flow_id: tuple(hops) for flow_id, hops in chosen.items()}


def _fitting(waiting: list[_Standby], room: int) -> list[_Standby]:
    """Return which entries fit beside all that any one failure adds to a table."""
    if len(waiting) <= room:
        return waiting
    added = Counter(name for standby in waiting for name in standby.failures)
    fitting: list[_Standby] = []
    for standby in waiting:
        most = max(count - (name in standby.failures) for name, count in added.items())
        if len(fitting) + 1 + most <= room:
            fitting.append(standby)
            added.subtract(standby.failures)
    return fitting
