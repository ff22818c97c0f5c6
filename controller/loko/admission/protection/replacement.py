"""Paths that replace each other while frames are under way: which may, and in which order tables change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from loko.admission.routing import Ends
from loko.topology.network import Hop

Path = tuple[Hop, ...]


class ChosenPaths(NamedTuple):
    """The paths on which a flow is requested."""

    working: Path
    second: Path | None
    """Of second copies; None if there are none."""
    backups: Mapping[str, Path]
    """By name of a failure that hits the working path."""


def may_replace(former: Sequence[Hop], path: Sequence[Hop], dead_ends: Ends) -> bool:
    """Return whether a path may replace a former one that crosses a dead cable, while frames are under way.

    Entries of both paths match the same frames, so neither may visit a switch twice. Between the switch where
    the paths part and the dead cable there are frames of the former path, so the new one must not come there.
    """
    before, after = [hop.switch for hop in former], [hop.switch for hop in path]
    if len(set(before)) < len(before) or len(set(after)) < len(after):
        return False
    fork = last_common_hop(former, path)
    dead = next(place for place, hop in enumerate(former) if (hop.switch, hop.output_port) in dead_ends)
    return set(before[fork + 1 : dead + 1]).isdisjoint(after[fork + 1 :])


def may_exchange(former: Sequence[Hop], path: Sequence[Hop]) -> bool:
    """Return whether a path may replace a former one, and that one it again, while frames pass on both.

    They part once and join once: neither visits a switch twice, and every switch of both but the one where
    they part has the same output port on both. So each frame follows one of the two from end to end, in
    whichever order the switches exchange their entries (docs/broken-promises.md). Implies `may_replace`
    after a failure that hits the former path only.
    """
    before = {hop.switch: hop.output_port for hop in former}
    after = {hop.switch: hop.output_port for hop in path}
    if len(before) < len(former) or len(after) < len(path):
        return False
    fork = former[last_common_hop(former, path)].switch
    return all(before[switch] == after[switch] for switch in before.keys() & after.keys() - {fork})


def last_common_hop(former: Sequence[Hop], path: Sequence[Hop]) -> int:
    """Return the place of the last switch that two paths from the same host reach by the same cables."""
    for place, (before, hop) in enumerate(zip(former, path, strict=False)):
        if before != hop:
            return place
    return min(len(former), len(path)) - 1


def rounds_of_move(
    former: Sequence[Hop], path: Sequence[Hop], installed: Collection[Hop]
) -> tuple[tuple[Hop, ...], ...]:
    """Return the hops whose entries change for a move; each round waits for the one before it.

    The paths are such that one may be exchanged for the other (`may_exchange`). First come the entries that
    are not `installed` at switches which only the new path crosses, if any; then the one at the switch where
    the paths part. The other switches of both have the same entry for both.
    """
    shared = {hop.switch for hop in former}
    missing = tuple(hop for hop in path if hop.switch not in shared and hop not in installed)
    fork = (path[last_common_hop(former, path)],)
    return (missing, fork) if missing else (fork,)
