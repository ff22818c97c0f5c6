"""Tries to refute the schedule of a graph that is no lab: by arithmetic, and by a replay hop by hop.

Such schedules have slots and paths but no boards, so nothing is known of times within a slot. In the replay a
frame takes one unit of time on each link, and all frames of a slot are sent at once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSchedule:
    """A schedule: which flow has which slot and path; nodes are given by name."""

    hosts: Collection[str]
    """Nodes that forward nothing."""
    links: Collection[tuple[str, str]]
    """Links: each is one direction of a cable."""
    flows: Mapping[str, tuple[str, str]]
    """Source and destination of each requested flow, by name."""
    allowed: Mapping[str, Collection[tuple[str, ...]]] | None
    """Under S/FR, by flow, the paths that were drawn in advance. None: any path is allowed."""
    is_shortest: bool
    """Whether the scheme allows shortest paths only."""
    slots: int
    bound: int
    """The claimed upper bound on the number of flows with a slot."""
    assigned: Mapping[str, tuple[int, tuple[str, ...]]]
    """By flow, its slot, and the nodes from its source to its destination."""


def graph_refutations(schedule: GraphSchedule) -> list[str]:
    """Return everything that is wrong with a schedule, one line each; empty if nothing is."""
    by_arithmetic = [*_counts(schedule), *_paths(schedule), *_collisions(schedule)]
    return [*by_arithmetic, *_replayed(schedule)]


def _counts(schedule: GraphSchedule) -> Iterator[str]:
    if len(schedule.assigned) > schedule.bound:
        yield f"{len(schedule.assigned)} flows are scheduled, above the bound {schedule.bound}"
    for flow, (slot, _) in schedule.assigned.items():
        if flow not in schedule.flows:
            yield f"{flow}: nobody asked for it"
        if not 0 <= slot < schedule.slots:
            yield f"{flow}: slot {slot} is not in 0 to {schedule.slots - 1}"


def _paths(schedule: GraphSchedule) -> Iterator[str]:
    links, hosts = set(schedule.links), set(schedule.hosts)
    onward: dict[str, list[str]] = {}
    for tail, head in links:
        onward.setdefault(tail, []).append(head)
    fewest: dict[str, dict[str, int]] = {}
    for flow, (_, path) in schedule.assigned.items():
        if flow not in schedule.flows:
            continue
        source, destination = schedule.flows[flow]
        if len(path) < 2 or (path[0], path[-1]) != (source, destination):
            yield f"{flow}: its path {' '.join(path)} does not lead from {source} to {destination}"
            continue
        if len(set(path)) != len(path):
            yield f"{flow}: its path has a loop: {' '.join(path)}"
        yield from (
            f"{flow}: no cable leads from {tail} to {head}"
            for tail, head in pairwise(path)
            if (tail, head) not in links
        )
        yield from (f"{flow}: passes through the host {node}" for node in path[1:-1] if node in hosts)
        if source not in fewest:
            fewest[source] = _distances(source, onward, hosts)
        if schedule.is_shortest and len(path) - 1 != fewest[source].get(destination):
            yield f"{flow}: takes {len(path) - 1} links, the shortest path {fewest[source].get(destination)}"
        if schedule.allowed is not None and path not in schedule.allowed[flow]:
            yield f"{flow}: its path {' '.join(path)} is not the one that was drawn for it"


def _distances(source: str, onward: Mapping[str, Sequence[str]], hosts: Collection[str]) -> dict[str, int]:
    """Return the least number of links from a host to every node; no other host forwards frames."""
    hops, waiting = {source: 0}, deque([source])
    while waiting:
        node = waiting.popleft()
        if node in hosts and node != source:
            continue
        for head in onward.get(node, ()):
            if head not in hops:
                hops[head] = hops[node] + 1
                waiting.append(head)
    return hops


def _collisions(schedule: GraphSchedule) -> Iterator[str]:
    used = Counter(
        (slot, tail, head) for slot, path in schedule.assigned.values() for tail, head in pairwise(path)
    )
    for (slot, tail, head), count in used.items():
        if count > 1:
            yield f"slot {slot}: {count} flows are on the link from {tail} to {head}"


def _replayed(schedule: GraphSchedule) -> Iterator[str]:
    """Replay a frame of each flow, slot by slot, and yield which frames are lost or wait.

    Tables forward the frames, and a link sends one at a time.
    """
    tables = {flow: dict(pairwise(path)) for flow, (_, path) in schedule.assigned.items()}
    links = set(schedule.links)
    together: dict[int, list[str]] = {}
    for flow, (slot, _) in schedule.assigned.items():
        if flow in schedule.flows:
            together.setdefault(slot, []).append(flow)
    for slot, flows in together.items():
        free: dict[tuple[str, str], int] = {}
        frames = [(0, flow, schedule.flows[flow][0]) for flow in flows]
        heapify(frames)
        while frames:
            now, flow, node = heappop(frames)
            if node == schedule.flows[flow][1]:
                continue
            link = node, tables[flow].get(node, "")
            if link not in links or now > 2 * len(links):
                yield f"slot {slot}: the frame of {flow} is lost at {node}"
                continue
            leaves = max(now, free.get(link, 0))
            if leaves > now:
                yield f"slot {slot}: the frame of {flow} waits at {node} for that of another flow"
            free[link] = leaves + 1
            heappush(frames, (leaves + 1, flow, link[1]))
