"""A real switch on the bench, on interfaces of this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from loko.document import InputError
from loko.switch_model.scenario import OpenFlow
from loko_testbed.instruments.cables import link_flags, switch_off_offloads
from loko_testbed.instruments.controller_endpoint import ControllerEndpoint
from loko_testbed.live.cores import CorePlan
from loko_testbed.measure.bench.inventory import Hardware
from loko_testbed.measure.bench.live.bench import CONNECT_S, Bench, Surroundings, assemble
from loko_testbed.measure.bench.live.board_console import switch_openflow
from loko_testbed.measure.bench.live.live_device import SwitchMode

_LOOPBACK: Final = "lo"


@contextmanager
def hardware_switch(inventory: Hardware) -> Iterator[Bench]:
    """Set up the bench around the switch of an inventory. Raises `RunError` or `InputError`."""
    for end in (*inventory.ports.values(), inventory.controller):
        for name in dict.fromkeys((end.interface, end.tap_interface)):
            require_interface(name)
        if end.interface != _LOOPBACK:
            switch_off_offloads(end.interface, what=f"interface {end.interface}")
    with ExitStack() as stack:
        controller = inventory.controller
        around = Surroundings(
            ports=inventory.ports,
            controller=controller,
            datapath_id=None if inventory.datapath_id is None else int(inventory.datapath_id, 16),
            wire=inventory.link.wire(),
            endpoint=stack.enter_context(ControllerEndpoint(controller.address, controller.port)),
            core=CorePlan.here().emulator,
        )

        def enter(mode: SwitchMode) -> bool:
            if mode is SwitchMode.HOUSEKEEPING:  # which is in its firmware or not
                return False
            endpoint = around.endpoint
            version = OpenFlow.V1_3 if mode is SwitchMode.OPENFLOW_13 else OpenFlow.V1_0
            if version is not endpoint.openflow:
                endpoint.openflow = version
                endpoint.hang_up()
                return endpoint.accept(CONNECT_S) is not None
            switch_openflow(inventory, endpoint, on=mode is not SwitchMode.WITHOUT_CPU)
            return True

        yield assemble(stack, inventory, around, enter=enter)


def require_interface(name: str) -> None:
    """Raise `InputError` if this machine has no such interface or it is down."""
    there = sorted(interface for _, interface in socket.if_nameindex())
    if name not in there:
        raise InputError(f"interface {name} does not exist; this machine has {', '.join(there)}")
    if "UP" not in link_flags(name):
        raise InputError(f"interface {name} is down: set it up with 'ip link set {name} up'")
