"""Hosts and cables of a lab that containerlab has built, seen from the confined tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loko.topology.lab import Endpoint, Lab
from loko_testbed.instruments.network_namespace import set_up_namespace, within
from loko_testbed.live.containerlab.containers import Containers
from loko_testbed.live.containerlab.topology import interface
from loko_testbed.live.network import LiveNetwork


class ContainerNetwork(LiveNetwork):
    """A network whose nodes, switches too, have network namespaces that Docker made."""

    def __init__(self, lab: Lab, containers: Containers) -> None:
        """Set up and verify the network that exists. Raises `RunError` in one line."""
        self._containers = containers
        super().__init__(lab)

    def namespace(self, host: str) -> Path:
        """Return the file of a node's network namespace."""
        return Path(self._containers.namespaces[self._machine(host)])

    def inside(self, host: str) -> list[str]:
        """Return the words before a command that run it in a node's namespace, with our own files."""
        return within(self.namespace(host))

    def _name(self, end: Endpoint) -> str:
        return interface(end, self.lab)

    def _build(self, lab: Lab) -> None:
        for node in (*lab.machines, *lab.switches):
            set_up_namespace(f"{node}: network", self.inside(node))

    def _prefix(self, node: str) -> Sequence[str]:
        return self.inside(node)
