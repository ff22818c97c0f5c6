"""Failures that a plan covers: cables and switches that fail, alone or together."""

from __future__ import annotations

import itertools
import math
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import Field, RootModel, model_validator

from loko.admission.routing import Ends, leaves_by
from loko.document import InputError, StrictModel, read
from loko.lazy_mapping import LazyMapping
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.topology.network import Hop

MOST_FAILURES: Final = 5_000
"""The most failures of one plan: each is a state of the network with an admission control of its own."""
_KINDS: Final = ("cables", "switches")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFailure:
    """Cables and switches that fail at the same time."""

    name: str
    """Such as ``cable s1:3-s2:3``, or the name of a group."""
    switches: frozenset[str]
    dead_ends: Ends
    """Both ends of every cable that no frame crosses any more, those of the failed switches included."""
    is_joined_by_any_cable: bool = False
    """Whether the plan also covers this failure together with any further cable."""

    def hits(self, source: str, path: Sequence[Hop]) -> bool:
        """Return whether a path from a host crosses something that fails."""
        return leaves_by(self.dead_ends, source, path)


class _GroupDocument(StrictModel):
    """Cables and switches with a shared risk, such as a duct or a power supply."""

    name: str
    cables: list[str] = Field(default=[])
    switches: list[str] = Field(default=[])

    @model_validator(mode="after")
    def _names_something(self) -> _GroupDocument:
        if not self.cables and not self.switches:
            raise ValueError(f"group '{self.name}' is empty; name cables such as s1:3-s2:3, or switches")
        return self


class _GroupsFile(RootModel[list[_GroupDocument]]):
    """A file of shared-risk groups."""


def failures_of(lab: Lab, texts: Sequence[str]) -> tuple[NetworkFailure, ...]:
    """Return the failures that options such as ``cables=1`` name, each once.

    ``cables=N`` are all sets of up to N cables between switches, ``switches=N`` of up to N switches or
    cables: a dead cable is less than a dead switch, but a flow that begins or ends at one of its switches
    ends with that, and survives only the cable. Anything else is a file of shared-risk groups. Raises
    `InputError` for other texts, for too many failures, and for different failures of one name.
    """
    failures: dict[Ends, NetworkFailure] = {}
    named: dict[str, Ends] = {}
    for text in texts:
        for failure in _failures(lab, text):
            if named.setdefault(failure.name, failure.dead_ends) != failure.dead_ends:
                raise InputError(
                    f"--survive {text}: '{failure.name}' names two different failures; give each group a name"
                    " of its own"
                )
            known = failures.setdefault(failure.dead_ends, failure)
            if failure.is_joined_by_any_cable and not known.is_joined_by_any_cable:
                failures[failure.dead_ends] = replace(known, is_joined_by_any_cable=True)
            if len(failures) > MOST_FAILURES:
                raise InputError(
                    f"--survive {text}: more than {MOST_FAILURES:,} failures; cover fewer at a time, or name"
                    " groups in a file"
                )
    if not failures:
        raise InputError(f"--survive {' '.join(texts)}: the lab has no cable between two switches")
    return tuple(failures.values())


def _failures(lab: Lab, text: str) -> Iterator[NetworkFailure]:
    kind, separator, count = text.partition("=")
    if not separator:
        yield from _groups(lab, Path(text))
        return
    if kind not in _KINDS or not re.fullmatch(r"[1-9][0-9]{0,8}", count):
        raise InputError(f"--survive {text}: give cables=1, switches=1, or a file of groups")
    switches = [] if kind == "cables" else [failure_of_switch(lab, name) for name in lab.switches]
    parts = [*switches, *_cables(lab)]
    most = min(len(parts), int(count))
    total = sum(math.comb(len(parts), size) for size in range(1, most + 1))
    if total > MOST_FAILURES:
        raise InputError(
            f"--survive {text}: {total:,} failures, more than {MOST_FAILURES:,}; cover fewer at a time, or"
            " name groups in a file"
        )
    for size in range(1, most + 1):
        for together in itertools.combinations(parts, size):
            failure = _joined(" and ".join(part.name for part in together), together)
            yield replace(failure, is_joined_by_any_cable=size < int(count))


def _groups(lab: Lab, file: Path) -> Iterator[NetworkFailure]:
    if not file.is_file():
        raise InputError(f"--survive {file}: no such file; give cables=1, switches=1, or a file of groups")
    cables = {
        name: failure
        for link, failure in zip(lab.links, _cables(lab, with_hosts=True), strict=True)
        for name in (link.name, f"{link.b}-{link.a}")
    }
    groups = read(file, _GroupsFile).root
    if not groups:
        raise InputError(f"{file}: has no groups; list at least one")
    for group in groups:
        parts = []
        for name in group.cables:
            found = cables.get(name)
            if found is None:
                raise InputError(
                    f"{file}: group '{group.name}': lab '{lab.name}' has no cable '{name}'; name both ends,"
                    f" such as {next(iter(cables))}"
                )
            parts.append(found)
        for name in group.switches:
            if name not in lab.switches:
                raise InputError(f"{file}: group '{group.name}': lab '{lab.name}' has no switch '{name}'")
            parts.append(failure_of_switch(lab, name))
        yield _joined(group.name, parts)


def _cables(lab: Lab, *, with_hosts: bool = False) -> list[NetworkFailure]:
    """Return each cable as a failure; by default only those between switches, as hosts have no other."""
    return [
        NetworkFailure(name=f"cable {link.name}", switches=frozenset(), dead_ends=link.ends)
        for link in lab.links
        if with_hosts or (link.a.node in lab.switches and link.b.node in lab.switches)
    ]


def failure_of_switch(lab: Lab, name: str) -> NetworkFailure:
    """Return the failure of a switch with all its cables, those of its hosts included."""
    links = [link for link in lab.links if name in {link.a.node, link.b.node}]
    ends = frozenset[tuple[str, int]]().union(*(link.ends for link in links))
    return NetworkFailure(name=f"switch {name}", switches=frozenset({name}), dead_ends=ends)


def _joined(name: str, parts: Sequence[NetworkFailure]) -> NetworkFailure:
    return NetworkFailure(
        name=name,
        switches=frozenset[str]().union(*(part.switches for part in parts)),
        dead_ends=frozenset[tuple[str, int]]().union(*(part.dead_ends for part in parts)),
    )


class Reachability:
    """Which switches frames still reach after a failure."""

    def __init__(self, lab: Lab, failure: NetworkFailure) -> None:
        self._lab, self._failure = lab, failure
        self._reached: LazyMapping[str, frozenset[str]] = LazyMapping(self._search)

    def joins(self, source: str, destination: str) -> bool:
        """Return whether frames get from one switch to another."""
        return destination in self._reached[source]

    def cuts_off(self, flow: Flow) -> bool:
        """Return whether no path is left from the flow's source to its destination."""
        return not self.joins(*self.ends_of(flow))

    def takes_host_of(self, flow: Flow) -> bool:
        """Return whether the failure takes one of the flow's hosts away, so that no path could help it."""
        hosts = {(flow.source, 1), (flow.destination, 1)}
        return bool(hosts & self._failure.dead_ends or self._failure.switches & set(self.ends_of(flow)))

    def ends_of(self, flow: Flow) -> tuple[str, str]:
        """Return the switches of the flow's source and destination."""
        first, last = (self._lab.far_end(host, 1) for host in (flow.source, flow.destination))
        return ("" if first is None else first.node, "" if last is None else last.node)

    def _search(self, begin: str) -> frozenset[str]:
        """Return the switches that frames reach from one; what is found serves all of them if cables do."""
        lab, dead_ends = self._lab, self._failure.dead_ends
        found, waiting = {begin}, deque([begin])
        while waiting:
            node = waiting.popleft()
            for port, far in lab.outgoing_cables(node):
                if far.node not in found and far.node in lab.switches and (node, port) not in dead_ends:
                    found.add(far.node)
                    waiting.append(far.node)
        reached = frozenset(found)
        if lab.is_two_way:
            self._reached.update(dict.fromkeys(reached, reached))
        return reached
