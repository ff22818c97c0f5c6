"""The lab's cables as the switches see them: which have a link, and what is plugged in where none should be.

Pure. A cable is dead as soon as the switch at either end reports no link there, and alive again once neither
does. docs/broken-promises.md lists the faults that no switch reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loko.admission.routing import Ends
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.topology.network import Hop, visits


class CableChange(NamedTuple):
    """A cable of the lab has died or come back."""

    cable: str
    is_dead: bool


class Cables:
    """The cables of a lab by name, such as `s1:3-s2:3`, and those that are dead."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._names: dict[tuple[str, int], str] = {}
        self._ends: dict[str, Ends] = {}
        for link in lab.links:
            self._names.update(dict.fromkeys(link.ends, link.name))
            self._ends[link.name] = link.ends
        self._down: dict[str, set[tuple[str, int]]] = {}
        """By dead cable: its ends where a switch reports no link."""

    def at(self, switch: str, port: int) -> str | None:
        """Return the cable that the lab has at a port; None if it has none there."""
        return self._names.get((switch, port))

    def of(self, source: str, path: Iterable[Hop]) -> frozenset[str]:
        """Return the cables that a path from a host crosses. Raises `InputError` if one is missing."""
        crossed = visits(self._lab, source, tuple(path))
        ends = [(visit.switch, port) for visit in crossed for port in (visit.input_port, visit.output_port)]
        return frozenset(self._names[end] for end in ends if end in self._names)

    def missing_cable(self, flow: Flow, path: Sequence[Hop]) -> tuple[str, str] | None:
        """Return where the lab lacks a cable of a path, and that in words; None if it lacks none.

        Also None if it lacks a host or switch of the path, which is another matter.
        """
        lab = self._lab
        leaves = [(flow.source, 1), *((hop.switch, hop.output_port) for hop in path)]
        following = [*(hop.switch for hop in path), flow.destination]
        if not {flow.source, *following} <= {*lab.switches, *lab.hosts}:
            return None
        for (node, port), after in zip(leaves, following, strict=True):
            end = lab.far_end(node, port)
            if end is None or end.node != after:
                return f"{node}:{port}", f"the lab has no cable from {node}:{port} to {after}"
        return None

    def report(self, switch: str, port: int, *, is_up: bool) -> CableChange | None:
        """Take in whether a port has a link. Return what that changes for the cable there, if anything."""
        cable = self.at(switch, port)
        if cable is None:
            return None
        was_dead, down = self.is_dead(cable), self._down.setdefault(cable, set())
        if is_up:
            down.discard((switch, port))
        else:
            down.add((switch, port))
        if not down:
            del self._down[cable]
        is_dead = self.is_dead(cable)
        return None if is_dead is was_dead else CableChange(cable, is_dead)

    def is_dead(self, cable: str) -> bool:
        """Return whether a switch reports no link at an end of the cable."""
        return cable in self._down

    def first_dead(self, source: str, path: Iterable[Hop]) -> str | None:
        """Return a dead cable that a path from a host crosses; None if it crosses none."""
        if not self._down:
            return None
        return min(self.of(source, path) & self._down.keys(), default=None)

    def text(self, cable: str) -> str:
        """Say of a dead cable where no link is reported."""
        ends = " and ".join(f"{node}:{port}" for node, port in sorted(self._down.get(cable, ())))
        return f"cable {cable} has no link at {ends}"

    @property
    def dead(self) -> tuple[str, ...]:
        """The dead cables."""
        return tuple(sorted(self._down))

    @property
    def reporting(self) -> frozenset[str]:
        """The switches that report no link at an end of a cable: so they were alive when it died."""
        return frozenset(node for ends in self._down.values() for node, _ in ends)

    @property
    def dead_ends(self) -> Ends:
        """Both ends of every dead cable: no new flow should be sent out there."""
        return frozenset[tuple[str, int]]().union(*(self._ends[cable] for cable in self._down))
