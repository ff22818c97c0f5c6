"""Labs as large as a plant: rings at rings, trees, and networks without such a shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import networkx as nx

from loko.switch_model.device import parse_device
from loko.topology.lab import Lab, load_lab
from loko.topology.new_lab.lab_files import SwitchDevice, lab_text, simple_device
from loko.topology.new_lab.network import Drawing
from loko.units import DataSize

_DEVICE = "device.toml"


def plant_of(
    folder: Path, graph: nx.Graph, hosts: Sequence[int], names: Mapping[int, str] | None = None
) -> Lab:
    """Write a lab and load it. The nodes of the graph get these numbers of hosts, in turn."""
    switch = {node: (names or {}).get(node, f"s{number}") for number, node in enumerate(graph, start=1)}
    cables = [(switch[a], switch[b]) for a, b in graph.edges]
    machines = [
        (f"h{number}-{which}", name)
        for number, name in enumerate(switch.values(), start=1)
        for which in range(1, hosts[(number - 1) % len(hosts)] + 1)
    ]
    drawing = Drawing(
        name="plant",
        title=f"Plant of {len(switch)} switches and {len(machines)} hosts",
        switches=tuple(switch.values()),
        hosts=tuple(host for host, _ in machines),
        cables=(*machines, *cables),
    )
    text = simple_device(
        name="plant-device",
        rate_bps=95_000_000,
        latency_ns=40_000,
        room=DataSize(frames=64),
        ports=48,
        link_rate_bps=100_000_000,
    )
    (folder / _DEVICE).write_text(text)
    device = SwitchDevice(parse_device(text, folder / _DEVICE), _DEVICE)
    (folder / "lab.yml").write_text(lab_text(drawing, dict.fromkeys(drawing.switches, device)))
    return load_lab(folder)


def rings_at_rings() -> nx.Graph:
    """Return a ring of 5 with rings of 4 at three of its switches: 14 switches."""
    graph = nx.cycle_graph(5)
    for at, first in enumerate((5, 8, 11)):
        nx.add_cycle(graph, [at, first, first + 1, first + 2])
    return graph


def meshed() -> nx.Graph:
    """Return a network without rings or trees to go by: some switches with many cables, some chords."""
    graph = nx.barabasi_albert_graph(30, 2, seed=4)
    graph.add_edges_from((node, 30 + node) for node in range(0, 30, 4))
    return graph
