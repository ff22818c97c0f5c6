"""The running lab, seen from inside its confined tree: build it, carry traffic through it, describe it."""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loko.control.address import Address
from loko.document import InputError
from loko.service.faults import RESTART, Fault, FaultKind, cable_named
from loko.switch_model.flow import Flow, dump_flows
from loko.topology.lab import Backend, Lab, load_lab
from loko.topology.network import dump_paths
from loko_testbed.instruments.network_namespace import listens, set_up_namespace
from loko_testbed.live.cards import prepare
from loko_testbed.live.containerlab import topology
from loko_testbed.live.containerlab.boards import ContainerBoards
from loko_testbed.live.containerlab.network import ContainerNetwork
from loko_testbed.live.control_network import ControlNetwork
from loko_testbed.live.cores import NOT_JUDGED
from loko_testbed.live.daemon import Daemon
from loko_testbed.live.lab_capture.capture_request import (
    CAPTURE_PROGRAM,
    CaptureFolder,
    CaptureRequest,
)
from loko_testbed.live.messages import (
    CONTROLLER_PORT,
    BuildRequest,
    LabStatus,
    TrafficRequest,
    controller_address,
)
from loko_testbed.live.network import LiveNetwork
from loko_testbed.live.switches import RunningSwitches, refuse
from loko_testbed.live.transmission import records, transmit
from loko_testbed.simulation.runner import RunError, RunRecords

CONTROLLER_TIMEOUT_S = 60.0
_CONTROLLER_READY = "controller.ready"
"""File of the controller that exists while every table is set up."""
_ECHO_RATE = "echo-rate"
"""File with the rate of EchoRequests that the controller sends; while it exists, no entry is renewed."""
_PAUSE_S = 0.15
"""Pause before each run, in which the controller may renew entries that grow old."""


class Session:
    """A lab with its boards and its controller."""

    def __init__(self, request: BuildRequest, folder: Path, outside_network: Path) -> None:
        """Build the lab and wait until every table is set up. Raises `RunError` or `InputError`.

        `outside_network` names the network namespace in which a controller elsewhere is reached.
        """
        self.lab = load_lab(request.lab, request.cabling).with_backend(request.backend)
        if request.without_quirks:
            from loko_testbed.simulation.quirks import without_quirks  # noqa: PLC0415 - loads the emulator

            self.lab = without_quirks(self.lab, request.without_quirks, "--without-quirk")
        refuse(self.lab, request)
        self._folder = folder
        self._request = request
        self._is_relaxed = request.cores.relaxed
        set_up_namespace("the lab's network")
        prepare(self.lab)
        self._control = ControlNetwork(self.lab)
        self._real_boards = _examine_real_boards(self.lab)
        containers = request.containers
        there = ContainerNetwork(self.lab, containers) if containers else None
        # The controller first: a board that finds none waits for seconds, and the emulator takes a core. It
        # loads while the network is built.
        prefix = there.inside(topology.CONTROLLER) if there else []
        self._controller = self._start_controller(request, prefix) if request.flows else None
        self._relay = self._start_relay(request.elsewhere, outside_network) if request.elsewhere else None
        self.network = there or LiveNetwork(self.lab)
        self._capture = self._start_capture(request, request.captures) if request.captures else None
        if self._controller:
            pid = self._controller.pid
            self._controller.wait_until(
                lambda: listens(pid, CONTROLLER_PORT), CONTROLLER_TIMEOUT_S, "does not listen"
            )
        if self._relay:
            self._relay.wait_ready(CONTROLLER_TIMEOUT_S)
        ports = {
            name: {**self.network.ports(name), **self._control.ports(name)} for name in self.lab.switches
        }
        self._switches = (
            ContainerBoards(self.lab) if containers else RunningSwitches(self.lab, ports, request, folder)
        )
        if self._controller:
            if isinstance(self._switches, RunningSwitches):
                self._switches.wait_for_real_boards()
            self._controller.wait_ready(CONTROLLER_TIMEOUT_S)

    def status(self) -> LabStatus:
        """Return the lab's status. Raises `RunError` if one of its programs has ended."""
        self._check_controller()
        report = self._switches.report()
        controller, place = self._which_controller(), controller_address(self.lab)
        return LabStatus(
            lab=self.lab.name,
            path=str(self.lab.path),
            switches=len(self.lab.switches),
            connected=sum(report.connected.values()),
            controller=controller or f"none yet; switches look for one at {place}, inside the lab",
            awaits_controller=controller is None,
            flows=tuple(_in_words(flow) for flow in self._request.flows),
            scheduling=f"{report.scheduling}; {NOT_JUDGED}" if self._is_relaxed else report.scheduling,
            counters=report.counters,
            consoles=self._switches.consoles(),
            real_boards=self._real_boards,
            ports=() if self._request.containers else tuple(self.network.counts()),
            captures=self._captures(),
            stalls=len(report.stalls),
        )

    def cause(self, fault: Fault) -> None:
        """Pull a cable, plug it in again, or restart a board. Raises `InputError` or `RunError`."""
        fault.refuse_unknown_place(self.lab)
        if fault.kind is not FaultKind.REBOOT:
            link = cable_named(self.lab, fault.place)
            self.network.set_link(link.a, link.b, is_up=fault.kind is FaultKind.PLUG)
            return
        console = self._switches.consoles().get(fault.place)
        if console is None:
            raise InputError(f"{fault.place}: has no serial console here, by which to restart it")
        Path(console).write_bytes(RESTART)

    def run(self, request: TrafficRequest) -> RunRecords:
        """Send the traffic and return every packet of the observed flows. Raises `RunError`."""
        self._check_controller()
        time.sleep(_PAUSE_S)
        readiness = self._controller.readiness() if self._controller else None
        before = self._switches.report()
        rate = self._folder / _ECHO_RATE
        rate.write_text(f"{request.echoes_per_s}", encoding="ascii")
        try:
            capture = transmit(self.network, request.traffic, seconds=request.seconds, folder=self._folder)
        finally:
            rate.unlink()
        if self._real_boards:  # else a board that was unplugged would be blamed for what it lost
            self._control.wait_for_cards()
            self.network.wait_for_cards()
        after = self._switches.report()
        if self._controller and (readiness is None or readiness != self._controller.readiness()):
            raise RunError(
                "a switch lost the connection to the controller, and with it the table: "
                + _remedy(request, self.lab)
            )
        return replace(records(capture, self.lab, before, after), real_boards=self._real_boards)

    def _check_controller(self) -> None:
        for daemon in (self._controller, self._relay):
            if daemon:
                daemon.check()

    def _which_controller(self) -> str | None:
        """Return in words which controller the switches have; None if it is still to be started."""
        if self._request.elsewhere:
            return f"tcp:{self._request.elsewhere} of this machine"
        if self._controller:
            return "Loko's own"
        return None

    def _captures(self) -> str | None:
        if self._capture is None or self._request.captures is None:
            return None
        return self._capture.end_reason() or f"in {self._request.captures.path}"

    def _start_capture(self, request: BuildRequest, folder: CaptureFolder) -> Daemon:
        file, ready = self._folder / "capture.pickle", self._folder / "capture.ready"
        capture = CaptureRequest(
            lab=self.lab,
            folder=folder,
            taps=(*self.network.cable_taps(), *self._control.cable_taps()),
            flows=request.flows,
            controller_ready=self._folder / _CONTROLLER_READY,
            log_folder=self._folder,
        )
        file.write_bytes(pickle.dumps(capture))
        daemon = Daemon(
            "capturing",
            [sys.executable, "-m", CAPTURE_PROGRAM, str(file), str(ready)],
            log=self._folder / "capture.log",
            ready=ready,
        )
        daemon.wait_ready(CONTROLLER_TIMEOUT_S)
        return daemon

    def _start_relay(self, elsewhere: Address, outside_network: Path) -> Daemon:
        ready = self._folder / "relay.ready"
        options = {
            "--listen": controller_address(self.lab),
            "--to": str(elsewhere),
            "--network": outside_network,
            "--ready": ready,
        }
        words = [str(word) for option in options.items() for word in option]
        return Daemon(
            "the way to the controller",
            [sys.executable, "-m", "loko_testbed.live.namespace_relay", *words],
            log=self._folder / "relay.log",
            ready=ready,
        )

    def _start_controller(self, request: BuildRequest, prefix: Sequence[str]) -> Daemon:
        """Start the controller; `prefix` is put before its command."""
        flows, ready = self._folder / "flows.json", self._folder / _CONTROLLER_READY
        flows.write_text(json.dumps(dump_flows(request.flows)), encoding="utf-8")
        paths = self._folder / "paths.json"
        paths.write_text(json.dumps(dump_paths(request.paths)), encoding="utf-8")
        options = {
            "--lab": self.lab.path,
            **({"--cabling": request.cabling} if request.cabling else {}),
            "--flows": flows,
            "--paths": paths,
            "--allocation": request.allocation,
            "--entries": request.entries,
            "--openflow": request.openflow.value,
            **({"--backend": request.backend} if request.backend else {}),
            "--listen": topology.controller_address() if request.containers else controller_address(self.lab),
            "--ready": ready,
            "--echo-rate": self._folder / _ECHO_RATE,
            "--framework": request.framework,
            **({"--framework-python": request.framework_python} if request.framework_python else {}),
        }
        words = [str(word) for option in options.items() for word in option]
        words += ["--as-printed"] if request.as_printed else []
        return Daemon(
            "the controller",
            [*prefix, sys.executable, "-m", "loko.control", *words],
            log=self._folder / "controller.log",
            ready=ready,
        )


def _examine_real_boards(lab: Lab) -> dict[str, dict[str, str]]:
    """Check the cables of real boards, and return what the boards say of themselves. Raises `RunError`."""
    if not lab.behind(Backend.HARDWARE):
        return {}
    # Only here: half of what a lab's first process would read at its start is for this.
    from loko_testbed.live.board_wiring import self_test_of_boards  # noqa: PLC0415

    return self_test_of_boards(lab, controller_address(lab))


def _in_words(flow: Flow) -> str:
    return (
        f"UDP from {flow.source} port {flow.udp_source} to {flow.destination} port {flow.udp_destination}"
        f" ({flow.id})"
    )


def _remedy(request: TrafficRequest, lab: Lab) -> str:
    """Return advice, for an error message, on how to keep the switches connected."""
    if request.echoes_per_s:
        return "lower the rate of EchoRequests, or leave the machine alone"
    if lab.controller is not None:
        return "send less (--points admitted): control frames wait with the others; leave the machine alone"
    return "leave the machine alone, and run again"
