"""Flows that switches divert by themselves when a port goes down: fast-failover groups of OpenFlow 1.3.

Such a group has the working port of a flow and, after it, the port of a backup path. The switch sends to the
first of them that is up. So nothing waits for the controller, nor for frames that are still under way: those
behind the dead cable stay on the working path, whose entries do not change, and both paths count after the
failure in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from loko.admission.protection.failures import NetworkFailure
from loko.admission.protection.replacement import last_common_hop
from loko.topology.network import Hop

if TYPE_CHECKING:
    from loko.admission.protection.planner import ProtectedFlow


class FailoverGroup(NamedTuple):
    """A group at the switch where a backup path leaves a flow's working path."""

    switch: str
    working_port: int
    backup_port: int
    failures: frozenset[str]
    """The failures after which the switch diverts the flow: all that kill the working port."""
    installed: tuple[Hop, ...]
    """The hops of the backup path at switches of its own, whose entries are there beforehand."""


def failover_groups(
    flows: Mapping[str, ProtectedFlow], failures: Sequence[NetworkFailure], entries: Mapping[str, int]
) -> dict[str, tuple[FailoverGroup, ...]]:
    """Return by flow the groups that its switches can have, as far as the tables have room.

    `entries` is the number of entries that each table is planned for. A flow has one entry at a switch, so of
    groups that ask for different ones, the first is kept.
    """
    room = {switch: count - _most_entries(flows, failures, switch) for switch, count in entries.items()}
    found: dict[str, tuple[FailoverGroup, ...]] = {}
    for flow_id, flow in flows.items():
        backups = flow.paths.backups
        ports: dict[str, int] = {}
        groups = []
        for place in range(len(flow.working.path)):
            group = failover_group(flow.working.path, place, backups, failures)
            if group is None:
                continue
            added = [hop for hop in group.installed if hop.switch not in ports]
            agrees = all(ports.get(hop.switch, hop.output_port) == hop.output_port for hop in group.installed)
            if agrees and all(room[hop.switch] > 0 for hop in added):
                groups.append(group)
                for hop in added:
                    ports[hop.switch] = hop.output_port
                    room[hop.switch] -= 1
        if groups:
            found[flow_id] = tuple(groups)
    return found


def _most_entries(flows: Mapping[str, ProtectedFlow], failures: Sequence[NetworkFailure], switch: str) -> int:
    """Return the most entries of a switch in any state: of working paths, second copies and backup paths."""
    always = 0
    added: Counter[str] = Counter()
    for flow in flows.values():
        crosses = any(hop.switch == switch for hop in flow.working.path)
        always += crosses + any(hop.switch == switch for hop in flow.paths.second or ())
        if not crosses:
            added.update(
                name for name, path in flow.paths.backups.items() if any(hop.switch == switch for hop in path)
            )
    return always + max((added[failure.name] for failure in failures), default=0)


def failover_group(
    working: Sequence[Hop],
    place: int,
    backups: Mapping[str, Sequence[Hop]],
    failures: Sequence[NetworkFailure],
) -> FailoverGroup | None:
    """Return the group for a hop of a working path, if one serves all failures that kill the hop's port.

    The switch diverts the flow whatever has failed. So each of these failures must have the same backup path,
    which leaves the working path at this switch and, where it comes back to it, follows it from there on.
    """
    hop = working[place]
    killing = [
        failure
        for failure in failures
        if (hop.switch, hop.output_port) in failure.dead_ends and hop.switch not in failure.switches
    ]
    paths = {tuple(backups[failure.name]) for failure in killing if failure.name in backups}
    if not killing or len(paths) != 1 or any(failure.name not in backups for failure in killing):
        return None
    (path,) = paths
    ports = {each.switch: each.output_port for each in working}
    behind = path[place + 1 :]
    if last_common_hop(working, path) != place or path[place].switch != hop.switch:
        return None
    if any(ports.get(each.switch, each.output_port) != each.output_port for each in behind):
        return None
    return FailoverGroup(
        switch=hop.switch,
        working_port=hop.output_port,
        backup_port=path[place].output_port,
        failures=frozenset(failure.name for failure in killing),
        installed=tuple(each for each in behind if each.switch not in ports),
    )
