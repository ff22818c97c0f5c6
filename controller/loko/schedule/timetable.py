"""Which flow has which link in which slot. Flows come and go one by one, and no other flow is moved."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from loko.schedule.graph import Graph, Path
from loko.schedule.problem import Assignment


class Timetable:
    """A schedule that grows and shrinks. No two flows ever have one link in one slot.

    The slots of a link are the bits of a number, so the slots in which a path is free are a few operations.
    """

    def __init__(self, graph: Graph, slots: int) -> None:
        self.graph = graph
        self.slots = slots
        self._all = (1 << slots) - 1
        self._taken_slots = [0] * len(graph.links)
        """By link, a bit for each slot in which a flow has it."""
        self._taken_links = [0] * slots
        """By slot, a bit for each link that a flow has in it."""
        self._owners: list[dict[int, int]] = [{} for _ in range(slots)]
        """By slot: of each link the flow that has it."""
        self._assignments: dict[int, Assignment] = {}

    def __len__(self) -> int:
        """How many flows have a slot."""
        return len(self._assignments)

    def assignment(self, flow: int) -> Assignment | None:
        """The slot and path of a flow; None if it has none."""
        return self._assignments.get(flow)

    def assignments(self) -> dict[int, Assignment]:
        """The slot and path of every flow that has one."""
        return dict(self._assignments)

    def used_slots(self, link: int) -> int:
        """How many slots of a link are in use."""
        return self._taken_slots[link].bit_count()

    def free_slots(self, path: Path) -> int:
        """Return a bit for each slot in which all links of the path are free."""
        taken = 0
        for link in path:
            taken |= self._taken_slots[link]
        return self._all & ~taken

    def first_on(self, paths: Sequence[Path]) -> Assignment | None:
        """The first slot in which one of these paths is free; among them the first path."""
        best: Assignment | None = None
        for path in paths:
            free = self.free_slots(path)
            if free:
                slot = (free & -free).bit_length() - 1
                if best is None or slot < best.slot:
                    best = Assignment(slot=slot, path=path)
        return best

    def first_anywhere(self, source: str, destination: str) -> Assignment | None:
        """The first slot in which any path is free, with a shortest one."""
        for slot, taken in enumerate(self._taken_links):
            path = self.graph.free_path(source, destination, taken)
            if path is not None:
                return Assignment(slot=slot, path=path)
        return None

    def put(self, flow: int, assignment: Assignment) -> None:
        """Give a flow a slot and a path, which must be free in it."""
        assert flow not in self._assignments, "a flow has one slot at most: c_sur_1"
        slot, path = assignment
        owners = self._owners[slot]
        for link in path:
            assert link not in owners, "a link has one flow a slot at most: c_sur_3"
            owners[link] = flow
            self._taken_slots[link] |= 1 << slot
            self._taken_links[slot] |= 1 << link
        self._assignments[flow] = assignment

    def remove(self, flow: int) -> None:
        """Remove a flow that has a slot."""
        slot, path = self._assignments.pop(flow)
        for link in path:
            del self._owners[slot][link]
            self._taken_slots[link] &= ~(1 << slot)
            self._taken_links[slot] &= ~(1 << link)

    def conflicting_flows(self, assignment: Assignment) -> set[int]:
        """The flows that use a link of this path in this slot."""
        owners = self._owners[assignment.slot]
        return {owners[link] for link in assignment.path if link in owners}

    def least_conflicting_path(self, source: str, destination: str, slot: int) -> Path | None:
        """A path with the fewest taken links in a slot, the shortest of these (Dijkstra's algorithm)."""
        taken = self._taken_links[slot]
        costs: dict[str, tuple[int, int]] = {source: (0, 0)}
        came: dict[str, int] = {}
        waiting: list[tuple[tuple[int, int], str]] = [((0, 0), source)]
        while waiting:
            cost, node = heappop(waiting)
            if node == destination:
                return self.graph.back(came, source, destination)
            if cost > costs[node]:
                continue
            for link, head in self.graph.next_hops(node, destination):
                further = cost[0] + (taken >> link & 1), cost[1] + 1
                if head not in costs or further < costs[head]:
                    costs[head] = further
                    came[head] = link
                    heappush(waiting, (further, head))
        return None
