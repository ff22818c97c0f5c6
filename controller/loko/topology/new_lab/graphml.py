"""Networks in GraphML, as the Topology Zoo, yEd, networkx and others write it."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from loko.document import InputError, read_text
from loko.topology.new_lab.parsed_graph import network_of_graph
from loko.topology.new_lab.parsed_network import ParsedNetwork

_XML: Final = "{http://graphml.graphdrawing.org/xmlns}"


def read_graphml(path: Path) -> ParsedNetwork:
    """Read the nodes and edges of a file. Raises `InputError` in one line.

    A node that contains a graph is a group (yEd: a folder), and no switch.
    """
    import networkx as nx  # noqa: PLC0415 - slow to import, so only where needed

    text = read_text(path)
    try:
        graph = nx.parse_graphml(text)
        groups = _groups(text)
    except (ET.ParseError, nx.NetworkXError, ValueError, KeyError, TypeError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: is not GraphML: {why}") from None
    return network_of_graph(path, graph, groups)


def _groups(text: str) -> frozenset[str]:
    root = ET.fromstring(text)  # noqa: S314 - a file of the user's own, which networkx has parsed already
    return frozenset(
        node.get("id", "") for node in root.iter(f"{_XML}node") if node.find(f"{_XML}graph") is not None
    )
