"""From an inventory to a switch under test: what the bench builds, starts, and ends again."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import psutil

from evaluation.bench.cases import IN_PORT, OUT_PORT
from evaluation.bench.equations import Wire
from evaluation.bench.inventory import (
    Controller,
    Emulator,
    Entry,
    Hardware,
    Port,
    SoftwareSwitch,
    load_inventory,
)
from evaluation.bench.live.controller_endpoint import ControllerEndpoint
from evaluation.bench.live.live_device import Instruments, LiveDevice
from evaluation.bench.live.own_network import own_network
from evaluation.bench.live.pacing import unlimited_realtime
from evaluation.bench.live.packet_tap import PacketTap, clock_of, stamps_in_hardware
from evaluation.bench.live.self_test import self_test
from evaluation.live.boards import Boards
from evaluation.live.cores import CorePlan
from evaluation.live.exclusion import claim
from evaluation.live.interfaces import switch_off_offloads
from evaluation.live.openvswitch import OpenVSwitch
from evaluation.live.programs import require_emulator, run
from evaluation.runner import RunError, Stall
from loko.device import load_profile
from loko.document import InputError
from loko.lab import Lab, Switch

_SWITCH: Final = "s1"
_DATAPATH_ID: Final = 0x70B3D56C0001
"""The datapath id of a board is its MAC address; Open vSwitch is given the same."""
_PORTS: Final = MappingProxyType({1: Port(interface="bench1"), 2: Port(interface="bench2")})
_FAR: Final = MappingProxyType({1: "s1-eth1", 2: "s1-eth2"})
_NATIVE_PORT: Final = 4
_NETWORK: Final = Controller(interface="bench4", listen="10.0.1.8:6633")
"""Where a board with its factory settings looks for its controller."""
_HOST: Final = Controller(interface="lo", listen="127.0.0.1:6633")
_IFF_UP: Final = 1
_PRIORITY: Final = 40
_START_S: Final = 30.0
_CONNECT_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A switch between instruments, ready to be connected."""

    entry: Entry
    ports: dict[int, Port]
    controller: Controller
    datapath_id: int | None
    device: LiveDevice
    endpoint: ControllerEndpoint
    stamps: str
    """Whose stamps the taps give."""


@contextmanager
def open_device(name_or_path: str | Path) -> Iterator[LiveDevice]:
    """The switch of an inventory, connected, its wiring tested, with an empty table. Raises `InputError` or `RunError`."""
    with open_bench(load_inventory(name_or_path)) as bench:
        self_test(bench, connect_s=_CONNECT_S)
        yield bench.device


@contextmanager
def open_bench(entry: Entry) -> Iterator[Bench]:
    """What an inventory describes, with the instruments in place; the switch has not connected yet."""
    with ExitStack() as stack:
        if isinstance(entry, Hardware):
            yield stack.enter_context(_hardware(entry))
            return
        stack.enter_context(claim())
        stack.enter_context(unlimited_realtime())
        folder = Path(tempfile.mkdtemp(prefix="loko-bench-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        started = _emulator if isinstance(entry, Emulator) else _software_switch
        yield stack.enter_context(started(entry, folder))  # type: ignore[operator]


@contextmanager
def _emulator(entry: Emulator, folder: Path) -> Iterator[Bench]:
    require_emulator()
    profile = load_profile(entry.profile)
    wire = Wire(
        rate_bps=profile.ports.link_rate_bps.value,
        preamble_bytes=profile.ports.preamble_bytes.value,
        gap_bytes=profile.ports.interframe_gap_bytes.value,
        tag_bytes=profile.ports.tail_tag_bytes.value,
    )
    far = {**_FAR, _NATIVE_PORT: f"{_SWITCH}-eth{_NATIVE_PORT}"}
    near = {port: end.interface for port, end in _PORTS.items()} | {_NATIVE_PORT: _NETWORK.interface}
    board = Switch(
        name=_SWITCH,
        datapath_id=_DATAPATH_ID,
        profile=profile,
        config={"ofchecks": False, **entry.config, "control": "network"},
    )
    lab = Lab(
        name=entry.name,
        title=entry.name,
        path=folder,
        switches={_SWITCH: board},
        hosts={},
        links=(),
        control_port=_NETWORK.port,
    )
    with ExitStack() as stack:
        stack.enter_context(own_network([(near[port], far[port]) for port in far]))
        address = ["ip", "address", "add", f"{_NETWORK.address}/24", "dev", _NETWORK.interface]
        run(address, what="the controller's address")
        endpoint = stack.enter_context(ControllerEndpoint(_NETWORK.address, _NETWORK.port))
        cores = CorePlan.here()
        boards = Boards(
            lab, {_SWITCH: far}, controller=_NETWORK.listen, cpu=cores.emulator, seed=0, folder=folder
        )
        stack.callback(boards.daemon.end)
        boards.daemon.wait_ready(_START_S)
        yield _bench(
            stack, entry, _PORTS, _NETWORK, _DATAPATH_ID, wire, endpoint, min(cores.others), _StallsOf(boards)
        )


class _StallsOf:
    """The emulator's stalls since the last question."""

    def __init__(self, boards: Boards) -> None:
        self._boards = boards
        self._known = 0

    def __call__(self) -> Sequence[Stall]:
        report = self._boards.report()
        if report.stalls_truncated:
            raise RunError("the host stalls the emulator too often: use a quieter machine, or more cores")
        new = report.stalls[self._known :]
        self._known = len(report.stalls)
        return new


@contextmanager
def _software_switch(entry: SoftwareSwitch, folder: Path) -> Iterator[Bench]:
    cores = CorePlan.here()
    with ExitStack() as stack:
        near = {port: end.interface for port, end in _PORTS.items()}
        stack.enter_context(own_network([(near[port], _FAR[port]) for port in near]))
        endpoint = stack.enter_context(ControllerEndpoint(_HOST.address, _HOST.port))
        switch = OpenVSwitch(folder, cpus=[cores.emulator])
        stack.callback(switch.close)
        switch.add_switch(_SWITCH, datapath_id=_DATAPATH_ID, ports=_FAR, controller=_HOST.listen)
        if entry.real_time:
            _raise_priority(switch.pid)
        wire = Wire(rate_bps=entry.link_rate_bps, tag_bytes=0)
        yield _bench(stack, entry, _PORTS, _HOST, _DATAPATH_ID, wire, endpoint, min(cores.others), tuple)


def _raise_priority(pid: int) -> None:
    """Give every thread of a process real-time priority. Raises `RunError`."""
    try:
        for thread in psutil.Process(pid).threads():
            os.sched_setscheduler(thread.id, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except (OSError, psutil.Error) as error:
        raise RunError(f"real_time: the kernel refuses real-time priority ({error}); leave it out") from None


@contextmanager
def _hardware(entry: Hardware) -> Iterator[Bench]:
    with ExitStack() as stack:
        stack.enter_context(claim())
        stack.enter_context(unlimited_realtime())
        for end in (*entry.ports.values(), entry.controller):
            require_interface(end.interface)
            require_interface(end.tap_interface)
            switch_off_offloads(end.interface, what=f"interface {end.interface}")
        endpoint = stack.enter_context(ControllerEndpoint(entry.controller.address, entry.controller.port))
        datapath_id = None if entry.datapath_id is None else int(entry.datapath_id, 16)
        core = CorePlan.here().emulator
        yield _bench(
            stack, entry, entry.ports, entry.controller, datapath_id, entry.link.wire(), endpoint, core, tuple
        )


def require_interface(name: str) -> None:
    """Raise `InputError` if this machine has no such interface or it is down."""
    folder = Path("/sys/class/net") / name
    if not folder.exists():
        there = ", ".join(sorted(one.name for one in folder.parent.iterdir()))
        raise InputError(f"interface {name} does not exist; this machine has {there}")
    if not int((folder / "flags").read_text(encoding="ascii"), 16) & _IFF_UP:
        raise InputError(f"interface {name} is down: set it up with 'ip link set {name} up'")


def _bench(
    stack: ExitStack,
    entry: Entry,
    ports: Mapping[int, Port],
    controller: Controller,
    datapath_id: int | None,
    wire: Wire,
    endpoint: ControllerEndpoint,
    core: int,
    stalls: Callable[[], Sequence[Stall]],
) -> Bench:
    ends = [ports[IN_PORT], ports[OUT_PORT], controller]
    hardware = stamps_in_hardware(
        # A card that only receives at the exit stamps as a passive tap does.
        [clock_of(end.tap_interface, passive=end.passive or end is ports[OUT_PORT]) for end in ends]
    )
    taps = [stack.enter_context(PacketTap(end.tap_interface, hardware=hardware)) for end in ends]
    instruments = Instruments(
        in_interface=ports[IN_PORT].interface,
        in_tap=taps[0],
        out_tap=taps[1],
        control_tap=taps[2],
        controller=endpoint,
        core=core,
        in_tap_passive=ports[IN_PORT].passive,
    )
    device = LiveDevice(entry.name, wire, instruments, stalls)
    stack.callback(device.close)
    return Bench(
        entry=entry,
        ports=dict(ports),
        controller=controller,
        datapath_id=datapath_id,
        device=device,
        endpoint=endpoint,
        stamps="the network card" if hardware else "the kernel",
    )
