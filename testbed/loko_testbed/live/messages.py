"""Requests to a confined lab, and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loko.control.address import Address
from loko.service.faults import Fault
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Backend, Lab
from loko.topology.network import Hop
from loko_testbed.live.containerlab.containers import Containers
from loko_testbed.live.cores import CorePlan
from loko_testbed.live.lab_capture.capture_request import CaptureFolder
from loko_testbed.simulation.options import OS_KEN
from loko_testbed.simulation.traffic import Sender

CONTROLLER_PORT = 6633
"""The board's default."""


def controller_address(lab: Lab) -> str:
    """Return the address at which the boards look for the controller, inside the tree."""
    host = "127.0.0.1" if lab.controller is None else str(lab.controller.ip)
    return f"{host}:{CONTROLLER_PORT}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """Build the lab and have the controller set up the tables. Answered by `LabStatus`."""

    lab: Path
    cabling: Path | None
    """The file that says which of its switches are real boards."""
    flows: tuple[Flow, ...]
    """Without flows no controller is started."""
    paths: Mapping[str, tuple[Hop, ...]]
    """By flow id, the path on which it was already admitted; the controller chooses the others' paths."""
    allocation: str
    """The scheme by which the controller admits the flows."""
    entries: int
    """Entries in each table, padding entries included."""
    cores: CorePlan
    seed: int
    openflow: OpenFlow = OpenFlow.V1_0
    """Version of the switches' sessions, on which the controller's admission counts."""
    backend: Backend | None = None
    """The backend of all switches, if it is not the lab's."""
    framework: str = OS_KEN
    """The controller's OpenFlow framework (`loko.control.relay.FRAMEWORKS`)."""
    framework_python: str | None = None
    """The interpreter that has it, if not this one."""
    as_printed: bool = False
    """Whether the flows were admitted as the papers print it (`Lab.as_printed`)."""
    containers: Containers | None = None
    """The containers of hosts and boards, if containerlab has built the lab; else Mininet builds it."""
    elsewhere: Address | None = None
    """The controller to which the boards are relayed, if it is not ours."""
    without_quirks: tuple[str, ...] = ()
    """Names of quirks that its boards do not have, beside those that the lab switches off."""
    captures: CaptureFolder | None = None
    """Where captures of the lab go, if it is captured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRequest:
    """Send traffic once. Answered by `RunRecords`."""

    traffic: tuple[Sender, ...]
    seconds: float
    echoes_per_s: float = 0
    """EchoRequests a second that the controller sends to each switch meanwhile."""


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """Ask for the lab's status. Answered by `LabStatus`."""


@dataclass(frozen=True, slots=True)
class FaultRequest:
    """Cause a fault in the lab. Answered by None."""

    fault: Fault


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """Answer at this socket from now on. Answered by None."""

    socket: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PortStatus:
    """A port of a switch, and the frames that the kernel has counted at its interface."""

    switch: str
    port: int
    peer: str
    """Host, or switch and port, at the other end of the cable."""
    received: int
    """Frames that came to the switch."""
    sent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabStatus:
    """A running lab."""

    lab: str
    path: str
    switches: int
    connected: int
    """How many switches hold a connection to the controller."""
    controller: str
    """Which controller they connect to, in words."""
    awaits_controller: bool
    """Whether that one is still to be started, inside the lab."""
    flows: tuple[str, ...]
    """The flows that our own controller lets pass, in words; empty if the controller is another one."""
    scheduling: str
    """How the programs that forward frames are scheduled."""
    counters: Mapping[str, Mapping[str, int]]
    """Counters of each switch since the lab came up."""
    consoles: Mapping[str, str]
    """Device of each board's serial console; a new one after a restart of the board."""
    real_boards: Mapping[str, Mapping[str, str]]
    """Self-description of each real board (`loko_testbed.simulation.runner.RunRecords.real_boards`)."""
    ports: tuple[PortStatus, ...]
    """Ports of the switches in this network namespace; not of those in containers."""
    captures: str | None
    """In words, where captures of the lab go, or why that has ended; None: it is not captured."""
    stalls: int
    """How often the machine has kept the emulator from running since the lab came up."""
