"""Paths that replace each other while frames are under way: which may, and in which order tables change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loko.admission.routing import Ends
from loko.topology.network import Hop


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


def last_common_hop(former: Sequence[Hop], path: Sequence[Hop]) -> int:
    """Return the place of the last switch that two paths from the same host reach by the same cables."""
    for place, (before, hop) in enumerate(zip(former, path, strict=False)):
        if before != hop:
            return place
    return min(len(former), len(path)) - 1


def rounds_of_move(former: Sequence[Hop], path: Sequence[Hop]) -> Iterator[tuple[Hop, ...]]:
    """Yield the hops whose entries change for a move; each round waits for the one before it.

    First all those at switches that only the new path crosses, then those at switches that both cross, one by
    one from the last.
    """
    shared = {hop.switch for hop in former}
    yield tuple(hop for hop in path if hop.switch not in shared)
    yield from ((hop,) for hop in reversed(path) if hop.switch in shared)
