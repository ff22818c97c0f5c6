"""A graph with attributes, as networkx reads it from several formats, as a network."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loko.document import InputError
from loko.topology.new_lab.parsed_network import (
    Cable,
    ParsedNetwork,
    ParsedNode,
    network_of_arcs,
    says_host,
    stated_profile,
)

if TYPE_CHECKING:
    import networkx as nx


def network_of_graph(path: Path, graph: nx.Graph[Any], groups: Collection[str] = ()) -> ParsedNetwork:
    """Return the nodes and edges of a graph that was read from a file. Raises `InputError` in one line.

    Groups are nodes that only hold others. In a directed graph, arcs to and fro are one cable.
    """
    nodes = {
        str(key): ParsedNode(_label(values), says_host(values), stated_profile(values))
        for key, values in graph.nodes(data=True)
        if str(key) not in groups
    }
    arcs: list[Cable] = [(str(a), str(b)) for a, b in graph.edges()]
    for arc in arcs:
        if group := next((end for end in arc if end in groups), None):
            raise InputError(f"{path}: a cable leads to the group '{group}'; lead it to a node of the group")
    stated = [values for _, _, values in graph.edges(data=True)]
    return network_of_arcs(nodes, arcs, stated, is_directed=graph.is_directed())


def _label(values: Mapping[str, Any]) -> str:
    label = values.get("label")
    return "" if label is None else str(label)
