"""Networks in GML, as the Topology Zoo, yEd, Gephi, igraph and others write it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from loko.document import InputError, read_text
from loko.topology.new_lab.parsed_graph import network_of_graph
from loko.topology.new_lab.parsed_network import ParsedNetwork

_GRAPH: Final = re.compile(r"\bgraph\s*\[")
_MULTIGRAPH: Final = re.compile(r"^\s*multigraph\s", re.MULTILINE)


def read_gml(path: Path) -> ParsedNetwork:
    """Read the nodes and edges of a file. Raises `InputError` in one line.

    Nodes are told apart by their ids, whatever their labels. Parallel edges are read whether or not the file
    says that it has some. A node with `isGroup` is a group (yEd: a folder), and no switch.
    """
    import networkx as nx  # noqa: PLC0415 - slow to import, so only where needed

    text = read_text(path)
    if _MULTIGRAPH.search(text) is None:
        text = _GRAPH.sub("graph [\n  multigraph 1\n", text, count=1)
    try:
        graph = nx.parse_gml(text, label="id")
    except (nx.NetworkXError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: is not GML: {why}") from None
    groups = frozenset(str(key) for key, values in graph.nodes(data=True) if values.get("isGroup"))
    return network_of_graph(path, graph, groups)
