"""A network as another program has written it, and the names that its nodes get in a lab."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from anyascii import anyascii

LONGEST_NODE: Final = 9
"""Linux takes 15 characters for an interface: of a node's these, a hyphen, and a name such as `eth12`."""
_SAYS_HOST: Final = ("type", "kind", "role")
Cable = tuple[str, str]
"""The nodes at both ends."""


class ParsedNode(NamedTuple):
    """A node of a file."""

    label: str
    """Name for people; empty if the file has none."""
    is_host: bool
    profile: str = ""
    """The profile of a switch; empty if the file has none."""


@dataclass(frozen=True, kw_only=True)
class ParsedNetwork:
    """The nodes by their ids in the file, the cables between them, and what was left out."""

    nodes: Mapping[str, ParsedNode]
    cables: Sequence[Cable]
    interfaces: Sequence[tuple[str, str]] = ()
    """Interfaces at the ends of each cable: of a switch a port, as 3 or eth3. Empty where not stated."""
    speeds: Sequence[str] = ()
    """The speed of each cable, as 100 Mbit/s; empty where not stated."""
    notes: tuple[str, ...] = ()
    """Lines that say what was left out, or how an ambiguity was read."""


def says_host(values: Mapping[str, Any]) -> bool:
    """Return whether attributes make a node a host: its type, kind or role is `host`."""
    return any(str(values.get(key, "")).lower() == "host" for key in _SAYS_HOST)


def stated_profile(values: Mapping[str, Any]) -> str:
    """Return the profile that attributes name; empty if they name none."""
    return str(values.get("profile") or "")


def _stated_interfaces(ends: Cable, values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the interfaces at the ends of a cable that has its ends as attributes ``a`` and ``b``.

    They are written as in a lab's file, such as ``s1:3``; an end without an interface has none.
    """
    stated = dict(str(values.get(key, "")).rpartition(":")[::2] for key in ("a", "b"))
    return stated.get(ends[0], ""), stated.get(ends[1], "")


def network_of_arcs(
    nodes: Mapping[str, ParsedNode],
    arcs: Sequence[Cable],
    stated: Sequence[Mapping[str, Any]] = (),
    *,
    is_directed: bool = True,
) -> ParsedNetwork:
    """Return the network of a graph; if it is directed, arcs to and fro are one cable.

    `stated` has the attributes of each arc, if the format has attributes.
    """
    kept, notes = _cables_of_arcs(arcs) if is_directed else (range(len(arcs)), ())
    return ParsedNetwork(
        nodes=nodes,
        cables=[arcs[place] for place in kept],
        interfaces=[_stated_interfaces(arcs[place], stated[place]) for place in kept] if stated else (),
        speeds=[str(stated[place].get("speed") or "") for place in kept] if stated else (),
        notes=notes,
    )


def _cables_of_arcs(arcs: Sequence[Cable]) -> tuple[list[int], tuple[str, ...]]:
    """Return the places of the arcs of a directed graph that are cables: arcs to and fro are one.

    With a note if there are such arcs.
    """
    count = Counter(arcs)
    left: Counter[Cable] = Counter()
    kept = []
    for place, arc in enumerate(arcs):
        back = arc[::-1]
        if left[back]:
            left[back] -= 1  # the way back of a cable that is listed already
        else:
            kept.append(place)
            if count[back]:
                left[arc] += 1
    if len(kept) == len(arcs):
        return kept, ()
    return kept, (f"{len(arcs)} arcs are {len(kept)} cables, since both directions are listed",)


def names_of(nodes: Mapping[str, ParsedNode]) -> dict[str, str]:
    """Return a name for each node by its id: unique, and short enough for interfaces of Linux.

    The name is the label in ASCII, or the id if the label has neither letters nor digits. Other characters
    become a hyphen. Where names are equal, all but the first get a number.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for number, (node_id, node) in enumerate(nodes.items(), 1):
        base = _plain(node.label) or _plain(node_id) or f"n{number}"
        name, again = base[:LONGEST_NODE].rstrip("-_."), 1
        while name in taken:
            again += 1
            name = f"{base[: LONGEST_NODE - 1 - len(str(again))].rstrip('-_.')}-{again}"
        taken.add(name)
        names[node_id] = name
    return names


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", anyascii(text)).strip("-_.")
