"""Networks in NetJSON (https://netjson.org): objects of type ``NetworkGraph``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from loko.document import InputError, read
from loko.topology.new_lab.parsed_network import (
    ParsedNetwork,
    ParsedNode,
    network_of_arcs,
    says_host,
    stated_profile,
)


class _Typed(BaseModel):
    type: str


class _NetjsonNode(BaseModel):
    id: str
    label: str = ""
    properties: dict[str, Any] = Field(default_factory=dict)


class _NetjsonLink(BaseModel):
    source: str
    target: str
    properties: dict[str, Any] = Field(default_factory=dict)


class _Graph(BaseModel):
    nodes: list[_NetjsonNode]
    links: list[_NetjsonLink]


def read_netjson(path: Path) -> ParsedNetwork:
    """Read the nodes and links of a file. Raises `InputError` in one line.

    Routing protocols list a link from both sides; such links are one cable.
    """
    kind = read(path, _Typed).type
    if kind != "NetworkGraph":
        raise InputError(f"{path}: is NetJSON of type '{kind}'; give a NetworkGraph")
    graph = read(path, _Graph)
    nodes: dict[str, ParsedNode] = {}
    for node in graph.nodes:
        if node.id in nodes:
            raise InputError(f"{path}: two nodes have the id '{node.id}'; rename one")
        values = node.properties
        nodes[node.id] = ParsedNode(node.label, says_host(values), stated_profile(values))
    arcs = [(link.source, link.target) for link in graph.links]
    return network_of_arcs(nodes, arcs, [link.properties for link in graph.links])
