"""Flows that switches divert by themselves when a port goes down: fast-failover groups of OpenFlow 1.3.

Such a group has the working port of a flow and, after it, the port of a backup path. The switch sends to the
first of them that is up. So nothing waits for the controller, nor for frames that are still under way: those
behind the dead cable stay on the working path, whose entries do not change, and both paths count after the
failure in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loko.admission.protection.failures import NetworkFailure
from loko.admission.protection.replacement import ChosenPaths, last_common_hop
from loko.topology.network import Hop


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
    flows: Mapping[str, ChosenPaths],
    failures: Sequence[NetworkFailure],
    preinstalled: Mapping[str, Sequence[Hop]],
) -> dict[str, tuple[FailoverGroup, ...]]:
    """Return by flow the groups that its switches can have.

    All entries behind a group must be among those that are `preinstalled` (`preinstalled_hops`).
    """
    found: dict[str, tuple[FailoverGroup, ...]] = {}
    for flow_id, flow in flows.items():
        there = set(preinstalled.get(flow_id, ()))
        groups = (
            failover_group(flow.working, place, flow.backups, failures) for place in range(len(flow.working))
        )
        usable = tuple(group for group in groups if group is not None and there.issuperset(group.installed))
        if usable:
            found[flow_id] = usable
    return found


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
