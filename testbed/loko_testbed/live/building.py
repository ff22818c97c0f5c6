"""Starts the confined tree of a lab; containerlab builds what has to be outside the tree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from loko.document import InputError
from loko.topology.lab import Lab
from loko_testbed.live.confinement import Confinement
from loko_testbed.live.containerlab import deployment, topology
from loko_testbed.live.messages import BuildRequest
from loko_testbed.live.state import LABS
from loko_testbed.simulation.options import Builder
from loko_testbed.simulation.runner import RunError

CONTAINERS = LABS / "containers"
"""Where containerlab keeps its files of labs that are up."""


def start(
    lab: Lab, request: BuildRequest, builder: Builder, *, outlive: bool = False, log: Path | None = None
) -> tuple[Confinement, BuildRequest]:
    """Start the tree. Return it, and the request completed by what exists already. Raises `RunError`."""
    if builder is Builder.MININET:
        return Confinement.start(relaxed=request.cores.relaxed, outlive=outlive, log=log), request
    if lab.cabling is not None:
        raise InputError("--builder containerlab: its boards are emulated; leave --cabling out")
    if request.cores.relaxed:
        raise InputError("--builder containerlab: its boards want the machine; leave --relaxed out")
    if request.backend is not None:
        lab = lab.with_backend(request.backend)
    if reason := deployment.obstacle():
        raise RunError(reason)
    tree = Confinement.start(outlive=outlive, log=log, outside=lambda: deployment.deploy(lab, CONTAINERS))
    try:
        nodes = [topology.CONTROLLER, *lab.switches, *lab.machines]
        return tree, replace(request, containers=deployment.running_containers(lab, nodes))
    except BaseException:
        tree.close()
        raise


def remove(lab: Lab, builder: Builder) -> list[str]:
    """Remove what an earlier lab left outside of its tree, and return the names. Raises `RunError`."""
    if builder is Builder.MININET:
        return []
    if reason := deployment.no_docker():
        raise RunError(reason)
    return deployment.remove(lab, CONTAINERS)
