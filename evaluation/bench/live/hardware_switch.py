"""A real switch on the bench, on interfaces of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from evaluation.bench.inventory import Hardware
from evaluation.bench.live.bench import Bench, Surroundings, assemble
from evaluation.bench.live.controller_endpoint import ControllerEndpoint
from evaluation.live.cores import CorePlan
from evaluation.live.interfaces import switch_off_offloads
from loko.document import InputError

_IFF_UP: Final = 1
_LOOPBACK: Final = "lo"


@contextmanager
def hardware_switch(entry: Hardware) -> Iterator[Bench]:
    """The switch of an inventory. Raises `RunError` or `InputError`."""
    for end in (*entry.ports.values(), entry.controller):
        for name in dict.fromkeys((end.interface, end.tap_interface)):
            require_interface(name)
        if end.interface != _LOOPBACK:
            switch_off_offloads(end.interface, what=f"interface {end.interface}")
    with ExitStack() as stack:
        controller = entry.controller
        around = Surroundings(
            ports=entry.ports,
            controller=controller,
            datapath_id=None if entry.datapath_id is None else int(entry.datapath_id, 16),
            wire=entry.link.wire(),
            endpoint=stack.enter_context(ControllerEndpoint(controller.address, controller.port)),
            core=CorePlan.here().emulator,
        )
        yield assemble(stack, entry, around)


def require_interface(name: str) -> None:
    """Raise `InputError` if this machine has no such interface or it is down."""
    folder = Path("/sys/class/net") / name
    if not folder.exists():
        there = ", ".join(sorted(one.name for one in folder.parent.iterdir()))
        raise InputError(f"interface {name} does not exist; this machine has {there}")
    if not int((folder / "flags").read_text(encoding="ascii"), 16) & _IFF_UP:
        raise InputError(f"interface {name} is down: set it up with 'ip link set {name} up'")
