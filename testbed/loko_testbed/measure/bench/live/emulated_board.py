"""An emulated board on the bench: the program `zodiac-fx` in a network of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from loko.switch_model.device import load_profile
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab, Switch
from loko_testbed.instruments.controller_endpoint import ControllerEndpoint
from loko_testbed.instruments.network_namespace import own_network
from loko_testbed.instruments.programs import require_emulator, run
from loko_testbed.live.boards import RunningBoards
from loko_testbed.live.cores import CorePlan
from loko_testbed.measure.bench.device import wire_of
from loko_testbed.measure.bench.inventory import ControllerPort, InventoryBoard
from loko_testbed.measure.bench.live.bench import (
    BENCH_PORTS,
    CONNECT_S,
    DATAPATH_ID,
    START_S,
    SWITCH,
    SWITCH_PORTS,
    Bench,
    Surroundings,
    assemble,
)
from loko_testbed.measure.bench.live.live_device import SwitchMode
from loko_testbed.simulation.runner import RunError, Stall

_NATIVE_PORT: Final = 4
_BOARD_PORTS: Final = MappingProxyType({**SWITCH_PORTS, _NATIVE_PORT: f"{SWITCH}-eth{_NATIVE_PORT}"})
_CONTROLLER: Final = ControllerPort(interface="bench4", listen="10.0.1.8:6633")
"""Where a board with factory settings looks for its controller."""
_NETWORK: Final = "10.0.1.0/24"


_OF_MODE: Final[dict[SwitchMode, dict[str, bool]]] = {
    SwitchMode.USUAL: {},
    SwitchMode.HOUSEKEEPING: {"ofchecks": True},
    SwitchMode.WITHOUT_CPU: {"openflow_enabled": False},
    SwitchMode.OPENFLOW_13: {},
}
"""Settings of the board for each mode."""


@contextmanager
def emulated_board(inventory: InventoryBoard, folder: Path) -> Iterator[Bench]:
    """Run the board, with its files in `folder`. Raises `RunError` or `InputError`."""
    require_emulator()
    wire = wire_of(load_profile(inventory.profile).ports)
    near = {port: end.interface for port, end in BENCH_PORTS.items()} | {_NATIVE_PORT: _CONTROLLER.interface}
    with ExitStack() as stack:
        stack.enter_context(own_network([(near[port], far) for port, far in _BOARD_PORTS.items()]))
        address = ["ip", "address", "add", f"{_CONTROLLER.address}/24", "dev", _CONTROLLER.interface]
        run(address, what="the controller's address")
        # Acknowledge at once, as in virtual time. Later, it would be counted with the next request.
        run(
            ["ip", "route", "change", _NETWORK, "dev", _CONTROLLER.interface, "quickack", "1"],
            what="immediate acknowledgements",
        )
        endpoint = stack.enter_context(ControllerEndpoint(_CONTROLLER.address, _CONTROLLER.port))
        board = _RestartableBoard(inventory, folder, endpoint)
        stack.callback(board.end)
        around = Surroundings(
            ports=BENCH_PORTS,
            controller=_CONTROLLER,
            datapath_id=DATAPATH_ID,
            wire=wire,
            endpoint=endpoint,
            core=min(CorePlan.here().others),
            requests_at=_BOARD_PORTS[_NATIVE_PORT],
        )
        yield assemble(
            stack,
            inventory,
            around,
            stalls=board.stalls,
            renew=board.renew,
            enter=board.enter,
            lateness=board.lateness_ns,
        )


class _RestartableBoard:
    """A board that can be power-cycled."""

    def __init__(self, inventory: InventoryBoard, folder: Path, endpoint: ControllerEndpoint) -> None:
        self._inventory = inventory
        self._profile = load_profile(inventory.profile)
        self._mode = SwitchMode.USUAL
        self._folder = folder
        self._endpoint = endpoint
        self._known_stalls = 0
        self._boards = self._start()

    def _lab(self) -> Lab:
        switch = Switch(
            name=SWITCH,
            datapath_id=DATAPATH_ID,
            profile=self._profile,
            config={
                "ofchecks": False,
                **self._inventory.config,
                **_OF_MODE[self._mode],
                "control": "network",
            },
        )
        return Lab(
            name=self._inventory.name,
            title=self._inventory.name,
            path=self._folder,
            switches={SWITCH: switch},
            hosts={},
            links=(),
            control_port=_CONTROLLER.port,
        )

    def _start(self) -> RunningBoards:
        for left in self._folder.glob("*.ready"):
            left.unlink()
        boards = RunningBoards(
            self._lab(),
            {SWITCH: _BOARD_PORTS},
            controller=_CONTROLLER.listen,
            cpu=CorePlan.here().emulator,
            seed=0,
            folder=self._folder,
        )
        try:
            boards.daemon.wait_ready(START_S)
        except BaseException:
            boards.daemon.end()
            raise
        return boards

    def renew(self) -> None:
        """Power-cycle the board and wait until it has connected. Raises `RunError`."""
        self.end()
        self._known_stalls = 0
        self._boards = self._start()
        if self._mode is not SwitchMode.WITHOUT_CPU and self._endpoint.accept(CONNECT_S) is None:
            raise RunError(
                f"{self._inventory.name}: the board does not connect after it was switched on again"
            )

    def enter(self, mode: SwitchMode) -> bool:
        """Power-cycle the board into a mode; an emulated board has all of them. Raises `RunError`."""
        self._mode = mode
        self._endpoint.openflow = OpenFlow.V1_3 if mode is SwitchMode.OPENFLOW_13 else OpenFlow.V1_0
        self.renew()
        return True

    def stalls(self) -> Sequence[Stall]:
        """Return the emulator's stalls since the last call. Raises `RunError` if there were too many."""
        report = self._boards.reports.latest()
        if report.stalls_truncated:
            raise RunError("the host stalls the emulator too often: use a quieter machine, or more cores")
        new = report.stalls[self._known_stalls :]
        self._known_stalls = len(report.stalls)
        return new

    def lateness_ns(self) -> int:
        """Return the median lateness since the board was switched on. Raises `RunError`."""
        return self._boards.reports.latest().lateness_ns["p50"]

    def end(self) -> None:
        """Switch the board off."""
        self._boards.daemon.end()
