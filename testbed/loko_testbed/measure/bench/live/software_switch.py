"""Open vSwitch on the bench, with its datapath in user space, in a network of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from loko_testbed.instruments.controller_endpoint import ControllerEndpoint
from loko_testbed.instruments.network_namespace import own_network
from loko_testbed.live.cores import CorePlan
from loko_testbed.live.openvswitch import OpenVSwitch, raise_priority
from loko_testbed.measure.bench.inventory import ControllerPort, SoftwareSwitch
from loko_testbed.measure.bench.live.bench import (
    BENCH_PORTS,
    DATAPATH_ID,
    SWITCH,
    SWITCH_PORTS,
    Bench,
    Surroundings,
    assemble,
)
from loko_testbed.simulation.runner import RunError

_CONTROLLER: Final = ControllerPort(interface="lo", listen="127.0.0.1:6633")
SWITCH_PRIORITY: Final = 40
"""Below the priority of the sender."""


@contextmanager
def software_switch(inventory: SoftwareSwitch, folder: Path) -> Iterator[Bench]:
    """Run the switch, with its files in `folder`. Raises `RunError`."""
    cores = CorePlan.here()
    with ExitStack() as stack:
        cables = [(end.interface, SWITCH_PORTS[port]) for port, end in BENCH_PORTS.items()]
        stack.enter_context(own_network(cables))
        endpoint = stack.enter_context(ControllerEndpoint(_CONTROLLER.address, _CONTROLLER.port))
        switch = OpenVSwitch(folder, cpus=[cores.emulator])
        stack.callback(switch.close)
        switch.add_switch(SWITCH, datapath_id=DATAPATH_ID, ports=SWITCH_PORTS, controller=_CONTROLLER.listen)
        if inventory.real_time:
            try:
                raise_priority(switch.pid, SWITCH_PRIORITY)
            except RunError as error:
                raise RunError(f"real_time: {error}; leave it out") from None
        around = Surroundings(
            ports=BENCH_PORTS,
            controller=_CONTROLLER,
            datapath_id=DATAPATH_ID,
            wire=inventory.wire(),
            endpoint=endpoint,
            core=min(cores.others),
        )
        yield assemble(stack, inventory, around)
