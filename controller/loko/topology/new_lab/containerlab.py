"""Networks in topology files of containerlab (https://containerlab.dev/manual/topo-def-file).

Of a file only nodes, cables and the names of interfaces are taken. Groups, kinds and defaults hand down a
node's kind and labels. Links that leave the lab are left out, and so are nodes without a cable.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, Field, model_validator

from loko.document import read
from loko.topology.new_lab.parsed_network import ParsedNetwork, ParsedNode, says_host, stated_profile

_OUTSIDE: Final = frozenset({"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"})
"""Ends and types of links that lead out of the lab, or nowhere."""
_VARIABLE: Final = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<bare>\w+)|\{(?P<name>\w+)(?:(?P<rule>:?[-=+])(?P<word>[^}]*))?\})"
)


class _End(BaseModel):
    node: str
    interface: str = ""

    @model_validator(mode="before")
    @classmethod
    def _brief(cls, written: Any) -> Any:
        if isinstance(written, str):
            node, _, interface = written.partition(":")
            return {"node": node, "interface": interface}
        return written


class _TopologyLink(BaseModel):
    type: str = "veth"
    endpoints: list[_End] = Field(default_factory=list)
    endpoint: _End | None = None

    @model_validator(mode="after")
    def _has_its_ends(self) -> Self:
        if self.endpoint is None and len(self.endpoints) != 2:
            raise ValueError(f"has {len(self.endpoints)} endpoints; give two, or one as endpoint")
        return self


class _Definition(BaseModel):
    """A part of a node's definition. Nodes, groups, kinds and defaults are written in the same way."""

    kind: str | None = None
    group: str | None = None
    labels: dict[str, Any] | None = None


_None = _Definition()


class _Topology(BaseModel):
    nodes: dict[str, _Definition | None]
    links: list[_TopologyLink] = Field(default_factory=list)
    defaults: _Definition | None = None
    kinds: dict[str, _Definition | None] = Field(default_factory=dict)
    groups: dict[str, _Definition | None] = Field(default_factory=dict)

    def handed_down(self, name: str) -> Iterator[_Definition]:
        """Yield what defines a node, the most specific first: node, group, kind, defaults."""
        node, defaults = self.nodes[name] or _None, self.defaults or _None
        group = self.groups.get(node.group or "") or _None
        kind = node.kind or group.kind or defaults.kind
        yield from (node, group, self.kinds.get(kind or "") or _None, defaults)

    def kind(self, name: str) -> str | None:
        """Return the kind of a node, if anything states it."""
        node, group, _, defaults = self.handed_down(name)
        return node.kind or group.kind or defaults.kind

    def labels(self, name: str) -> dict[str, Any]:
        """Return the labels of a node."""
        merged: dict[str, Any] = {}
        for definition in reversed([*self.handed_down(name)]):
            merged |= definition.labels or {}
        return merged


class _TopologyFile(BaseModel):
    topology: _Topology

    @model_validator(mode="before")
    @classmethod
    def _names_misplaced_keys(cls, data: Any) -> Any:
        inside = _Topology.model_fields
        if isinstance(data, Mapping):
            for key in inside.keys() & data.keys():
                raise ValueError(f"{key} belongs in topology; move it there")
            topology = data.get("topology")
            for key in topology if isinstance(topology, Mapping) else ():
                if key not in inside:
                    near = difflib.get_close_matches(str(key), inside, n=1)
                    meant = f"; did you mean '{near[0]}'?" if near else ""
                    raise ValueError(f"topology.{key}: unknown key (allowed: {', '.join(inside)}){meant}")
        return data


def read_containerlab(path: Path, environment: Mapping[str, str]) -> ParsedNetwork:
    """Read the nodes and links of a file. Raises `InputError` in one line.

    Variables such as ``${IMAGE:=alpine}`` are replaced from the environment.
    """
    topology = read(path, _TopologyFile, edit=lambda text: expand(text, environment)).topology
    outside = _OUTSIDE | {name for name in topology.nodes if topology.kind(name) == "host"}
    cables: list[tuple[str, str]] = []
    interfaces: list[tuple[str, str]] = []
    notes = []
    for link in topology.links:
        ends = link.endpoints if link.endpoint is None else [link.endpoint]
        if link.type in _OUTSIDE or len(ends) == 1 or any(end.node in outside for end in ends):
            told = " and ".join(f"{end.node}:{end.interface}" for end in ends)
            notes.append(f"the link at {told} leaves the lab; left out")
            continue
        a, b = ends
        cables.append((a.node, b.node))
        interfaces.append((a.interface, b.interface))
    degree = Counter(node for cable in cables for node in cable)
    nodes = {
        name: ParsedNode(
            name,
            says_host(topology.labels(name)) or (topology.kind(name) == "linux" and degree[name] == 1),
            stated_profile(topology.labels(name)),
        )
        for name in topology.nodes
        if degree[name] or not cables
    }
    return ParsedNetwork(nodes=nodes, cables=cables, interfaces=interfaces, notes=tuple(notes))


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Replace variables as containerlab does: ``$V``, ``${V:-word}``, ``${V:=word}``, ``${V:+word}``, ``$$``.

    A variable that is not set and has no default stays as it is.
    """

    def value(found: re.Match[str]) -> str:
        if found["escaped"]:
            return "$"
        known, rule = environment.get(found["bare"] or found["name"]), found["rule"] or ""
        is_given = bool(known) if rule.startswith(":") else known is not None
        if rule.endswith("+"):
            return expand(found["word"], environment) if is_given else ""
        if is_given:
            return known or ""
        return expand(found["word"], environment) if rule else found[0]

    return _VARIABLE.sub(value, text)
