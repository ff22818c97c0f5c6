"""A lab as a graph: GraphML, NetJSON (a NetworkGraph) and DOT.

Nodes are switches and whole hosts, each with its ``type``. The ends of a cable are written as in a lab's
file: ``s1:3`` for a port, ``H1`` for a host, ``server:eth1`` for one interface of a host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from loko.topology.lab import Endpoint, Lab
from loko.units import rate_text


class GraphCable(NamedTuple):
    """A cable between two nodes. Parallel cables list their nodes in one order."""

    source: str
    target: str
    a: str
    """The end at `source`, as in a lab's file."""
    b: str
    speed: Mapping[str, str]
    """As an attribute, where the lab sets it for the cable or its host."""


def graphml(lab: Lab) -> str:
    """Return a lab as GraphML: an undirected graph, with addresses and devices as attributes of nodes."""
    import networkx as nx  # noqa: PLC0415 - slow to import, so only where needed

    graph = nx.MultiGraph(label=lab.title)
    for name, values in _nodes(lab).items():
        graph.add_node(name, **values)
    for number, (source, target, a, b, speed) in enumerate(_cables(lab)):
        graph.add_edge(source, target, key=number, a=a, b=b, **speed)
    return "\n".join([*nx.generate_graphml(graph), ""])


def netjson(lab: Lab) -> str:
    """Return a lab as a NetworkGraph of NetJSON (https://netjson.org), with the same attributes."""
    document = {
        "type": "NetworkGraph",
        "protocol": "static",
        "version": None,
        "metric": None,
        "label": lab.title,
        "nodes": [{"id": name, "properties": values} for name, values in _nodes(lab).items()],
        "links": [
            {"source": source, "target": target, "cost": 1.0, "properties": {"a": a, "b": b, **speed}}
            for source, target, a, b, speed in _cables(lab)
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def dot(lab: Lab) -> str:
    """Return a lab in Graphviz' DOT: switches are boxes, and each end of a cable shows its port."""
    lines = [f"graph {_quoted(lab.name)} {{", f"  label={_quoted(lab.title)};"]
    for name, values in _nodes(lab).items():
        shape = "ellipse" if values["type"] == "host" else "box"
        lines.append(f"  {_quoted(name)} [shape={shape}];")
    for source, target, a, b, _ in _cables(lab):
        ports = f"taillabel={_quoted(_interface(a))}, headlabel={_quoted(_interface(b))}"
        lines.append(f"  {_quoted(source)} -- {_quoted(target)} [{ports}];")
    return "\n".join([*lines, "}", ""])


def _nodes(lab: Lab) -> Mapping[str, Mapping[str, str]]:
    switches = {
        name: {"type": "switch", "datapath_id": f"{switch.datapath_id:016x}", "profile": switch.profile.name}
        for name, switch in lab.switches.items()
    }
    hosts = {
        machine: {
            "type": "host",
            "mac": " ".join(host.mac for host in interfaces),
            "ip": " ".join(str(host.ip) for host in interfaces),
        }
        for machine, interfaces in lab.machines.items()
    }
    return switches | hosts


def _cables(lab: Lab) -> Iterator[GraphCable]:
    for link in lab.links:
        first, second = sorted((link.a, link.b), key=lambda end: (_node(lab, end), end.port))
        hosts = [lab.hosts[end.node].speed_bps for end in (first, second) if end.node in lab.hosts]
        is_stated = link.speed_bps is not None or any(hosts)
        speed = {"speed": rate_text(lab.rate_bps(link))} if is_stated else {}
        yield GraphCable(_node(lab, first), _node(lab, second), _end(lab, first), _end(lab, second), speed)


def _node(lab: Lab, end: Endpoint) -> str:
    return lab.hosts[end.node].machine if end.node in lab.hosts else end.node


def _end(lab: Lab, end: Endpoint) -> str:
    return end.node if end.node in lab.hosts else str(end)


def _interface(end: str) -> str:
    return end.partition(":")[2]


def _quoted(text: str) -> str:
    return json.dumps(" ".join(text.split()), ensure_ascii=False)
