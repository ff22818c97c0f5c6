"""A switch between instruments, and how the instruments are put around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from loko_testbed.instruments.controller_endpoint import ControllerEndpoint
from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.instruments.packet_tap import PacketTap, clock_of, stamps_in_hardware
from loko_testbed.measure.bench.cables import port_cable
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.inventory import ControllerPort, Hardware, Inventory, InventoryPort
from loko_testbed.measure.bench.live.arrival_tap import ArrivalTap
from loko_testbed.measure.bench.live.cable_watch import CableWatch
from loko_testbed.measure.bench.live.live_device import BenchInstruments, EnterMode, LiveDevice, SwitchMode
from loko_testbed.simulation.runner import Stall

SWITCH: Final = "s1"
"""Name of a switch that the bench creates itself."""
DATAPATH_ID: Final = 0x70B3D56C0001
"""Its datapath id. A board's is its MAC address; this is the one set in the factory."""
SWITCH_PORTS: Final = MappingProxyType({1: f"{SWITCH}-eth1", 2: f"{SWITCH}-eth2"})
"""The switch's ends of the cables."""
BENCH_PORTS: Final = MappingProxyType(
    {1: InventoryPort(interface="bench1", tap=SWITCH_PORTS[1]), 2: InventoryPort(interface="bench2")}
)
"""The bench's ends of the cables to the switch.

Each tap is where frames arrive. So the way through a cable, some microseconds of this machine's work, counts
neither for the switch nor against it.
"""
START_S: Final = 30.0
CONNECT_S: Final = 60.0
"""How long a switch may take to start, and to find its controller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The surroundings of the switch: ports, controller, links."""

    ports: Mapping[int, InventoryPort]
    controller: ControllerPort
    datapath_id: int | None
    """The datapath id that the switch should report; None accepts any."""
    wire: LinkTiming
    endpoint: ControllerEndpoint
    core: int
    """Core for the thread that sends."""
    requests_at: str | None = None
    """The switch's end of the controller's link, if that is on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A switch between instruments; it need not have connected yet."""

    name: str
    around: Surroundings
    device: LiveDevice
    stamps: str
    """Where the taps' stamps come from: the network card or the kernel."""


def assemble(
    stack: ExitStack,
    inventory: Inventory,
    around: Surroundings,
    *,
    stalls: Callable[[], Sequence[Stall]] = tuple,
    renew: Callable[[], None] | None = None,
    enter: EnterMode = lambda mode: mode is SwitchMode.USUAL,
    lateness: Callable[[], int] = int,
) -> Bench:
    """Set up taps and sender until the stack is closed. Raises `RunError`."""
    ends = [around.ports[IN_PORT], around.ports[OUT_PORT], around.controller]
    # At the exit the bench only receives, so any tap is as good as a passive one there.
    passive = [ends[0].passive, True, ends[2].passive]
    hardware = stamps_in_hardware(
        [clock_of(end.tap_interface, passive=only) for end, only in zip(ends, passive, strict=True)]
    )
    taps = [stack.enter_context(PacketTap(end.tap_interface, hardware=hardware)) for end in ends]
    requests = ArrivalTap(around.requests_at) if around.requests_at else None
    instruments = BenchInstruments(
        in_interface=ends[0].interface,
        out_interface=ends[1].interface,
        in_tap=taps[0],
        out_tap=taps[1],
        control_tap=taps[2],
        controller=around.endpoint,
        core=around.core,
        request_tap=requests,
        in_tap_passive=ends[0].passive,
        line_is_real=isinstance(inventory, Hardware),
    )
    device = LiveDevice(
        inventory.name,
        around.wire,
        instruments,
        stalls=stalls,
        renew=renew,
        enter=enter,
        lateness=lateness,
        cables=CableWatch(_cables(around)),
    )
    stack.callback(device.close)
    return Bench(
        name=inventory.name,
        around=around,
        device=device,
        stamps="the network card" if hardware else "the kernel",
    )


def _cables(around: Surroundings) -> dict[str, list[str]]:
    """Return the interfaces at each cable, by the cable's name."""
    ends = {port_cable(port): around.ports[port] for port in (IN_PORT, OUT_PORT)}
    ends["the controller's cable"] = around.controller
    return {
        f"{cable} ({end.interface})": list(dict.fromkeys([end.interface, end.tap_interface]))
        for cable, end in ends.items()
    }
