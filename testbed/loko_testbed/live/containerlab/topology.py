"""A lab as containerlab's topology file: a container for each switch and host, and one for the controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Final

import yaml

from loko.switch_model.device import Profile
from loko.topology.lab import Endpoint, Host, Lab, Switch
from loko_testbed.instruments.emulator import SHARED_REST_US, board_tables
from loko_testbed.live.interfaces import interface_name
from loko_testbed.live.messages import CONTROLLER_PORT
from loko_testbed.simulation.runner import RunError

EMULATOR_IMAGE: Final = "loko-testbed/zodiac-fx:latest"
HOST_IMAGE: Final = "loko-testbed/host:latest"

CONTROLLER: Final = "controller"
"""The node in which the controller runs; it does nothing by itself."""

REPORT: Final = "/run/report.json"
"""The emulator's report in a board's container."""

_MANAGEMENT: Final = IPv4Network("172.30.99.0/24")
"""The network between controller and boards only, so that hosts have no second way to each other."""

_FIRST_BOARD: Final = 10
_HEADER = """\
# Generated from {lab} by 'loko lab clab {name}'. Do not edit: change the lab, then 'make topologies'.
# docs/containerlab.md says how to use it.
"""


def topology_file(lab: Lab) -> Path:
    """Return a lab's topology file: ``topology.clab.yml`` beside ``lab.yml``, else ``X.clab.yml``."""
    stem = "topology" if lab.path.stem == "lab" else lab.path.stem
    return lab.path.with_name(f"{stem}.clab.yml")


def controller_address() -> str:
    """Return address and port at which the boards look for the controller."""
    return f"{_MANAGEMENT[2]}:{CONTROLLER_PORT}"


_TAKEN: Final = {"eth0": "containerlab's", "lo": "the loopback"}
"""Interfaces that every container already has, and whose each is."""


def interface(end: Endpoint, lab: Lab) -> str:
    """Return the interface at an end of a cable, in its own container: eth0 is containerlab's."""
    host = lab.hosts.get(end.node)
    return (host and host.interface) or f"eth{end.port}"


def container(lab: Lab, node: str) -> str:
    """Return the name that containerlab gives the container of a node."""
    return f"clab-{lab.name}-{node}"


def topology(lab: Lab) -> str:
    """Return the text of a lab's topology file. Raises `RunError` if containers cannot have the lab."""
    _refuse(lab)
    nodes: dict[str, Any] = {CONTROLLER: {"image": HOST_IMAGE, "mgmt-ipv4": str(_MANAGEMENT[2])}}
    for number, switch in enumerate(lab.switches.values()):
        nodes[switch.name] = _switch(lab, switch, number)
    for machine, interfaces in lab.machines.items():
        nodes[machine] = _host(lab, interfaces)
    links = [{"endpoints": [_end(link.a, lab), _end(link.b, lab)]} for link in lab.links]
    document = {
        "name": lab.name,
        "mgmt": {"network": f"loko-{lab.name}", "ipv4-subnet": str(_MANAGEMENT)},
        "topology": {
            "defaults": {"kind": "linux", "image-pull-policy": "never"},
            "nodes": nodes,
            "links": links,
        },
    }
    name = lab.path.parent.name if lab.path.stem == "lab" else f"{lab.path.parent.name}/{lab.path.name}"
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=110)
    return _HEADER.format(lab=lab.path.name, name=name) + text


def _refuse(lab: Lab) -> None:
    if lab.controller is not None:
        raise RunError(f"{lab.path}: control: network is not possible in containers: use control: session")
    if len(lab.switches) > _MANAGEMENT.num_addresses - _FIRST_BOARD - 1:
        raise RunError(f"{lab.path}: more switches than {_MANAGEMENT} has addresses for")
    for switch in lab.switches.values():
        if not isinstance(switch.profile, Profile):
            raise RunError(
                f"{lab.path}: {switch.name}: a {switch.profile.name} is in virtual time only: use zodiac-fx"
            )
    if CONTROLLER in (*lab.switches, *lab.machines):
        raise RunError(
            f"{lab.path}: the container of the controller is called {CONTROLLER}, too: rename yours"
        )
    for host in lab.hosts.values():
        if whose := _TAKEN.get(host.interface or ""):
            raise RunError(
                f"{lab.path}: {host.name}: in containers {host.interface} is {whose}: rename it to eth1"
            )
        if host.interface:
            interface_name(host.interface, node=host.name, where=str(lab.path))


def _switch(lab: Lab, switch: Switch, number: int) -> Mapping[str, Any]:
    """Return a board's node; the environment has the emulator's configuration, so one file has everything."""
    ends = sorted(
        (end for link in lab.links for end in (link.a, link.b) if end.node == switch.name),
        key=lambda end: end.port,
    )
    ports = {end.port: interface(end, lab) for end in ends}
    process = [
        "[process]",
        # With one container per board there may be more polling threads than cores, so none gets a core of
        # its own; they rest, so that containers can start while the first boards run.
        'scheduling = "other"',
        f"rest_us = {SHARED_REST_US}",
        f'report = "{REPORT}"',
        'ready = "/run/ready"',
        "",
    ]
    board = board_tables(
        switch.name,
        ports,
        profile=switch.emulated_as,
        settings=switch.config,
        controller=controller_address(),
        seed=number,
        console="/run/console",
    )
    return {
        "image": EMULATOR_IMAGE,
        "mgmt-ipv4": str(_MANAGEMENT[_FIRST_BOARD + number]),
        "env": {"INTERFACES": " ".join(ports.values()), "CONFIGURATION": "\n".join([*process, *board, ""])},
    }


def _host(lab: Lab, interfaces: Sequence[Host]) -> Mapping[str, Any]:
    commands = []
    for host in interfaces:
        device = interface(Endpoint(node=host.name, port=1), lab)
        commands += [
            f"ip link set dev {device} address {host.mac}",
            f"ip address add {host.ip} dev {device}",
        ]
    # The label is for readers of the file: boards have the same kind, and may have several cables, too.
    return {"image": HOST_IMAGE, "network-mode": "none", "labels": {"role": "host"}, "exec": commands}


def _end(end: Endpoint, lab: Lab) -> str:
    host = lab.hosts.get(end.node)
    return f"{end.node if host is None else host.machine}:{interface(end, lab)}"


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and indents lists as yamllint wants them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        return super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
