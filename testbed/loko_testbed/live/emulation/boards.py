"""Emulated boards in real time, without root, each with its own connection to the controller.

Alone, the boards are not cabled, and each has its own time; `loko_testbed.live.emulation.traffic` cables
them.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

import switch_emulator

from loko.control.framing import SEGMENT_BYTES, segments_of, whole_messages
from loko.document import InputError
from loko.service.faults import RESTART, Fault, FaultKind, cable_named
from loko.switch_model.device import Profile, profile_text
from loko.switch_model.linux_switch import LinuxSwitch
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab, Switch
from loko.topology.ring import Setting

_IDLE_S: Final = 0.05
_RETRY_S: Final = 1.0
_MAC_BITS: Final = 48
_AHEAD_NS: Final = 50_000
"""A board with work to do runs ahead of the clock in such steps until it has answered."""
_MOST_AHEAD_NS: Final = 20_000_000
_BOOTED_NS: Final = 2_000_000_000
"""Time after power-up at which a board looks for its controller."""
KEPT_SESSION: Final[Mapping[str, Setting]] = MappingProxyType({"control": "session"})
"""The setting of a board whose TCP session is kept by the program that runs it."""


class BoardTime(Protocol):
    """A board that follows the clock. `EmulatedBoard.take` carries out what it gives out."""

    def connected(self) -> None:
        """Tell the board that its TCP session is established."""

    def disconnected(self) -> None:
        """Tell the board that its TCP session is gone."""

    def segment(self, data: bytes) -> None:
        """Give the board the payload of one TCP segment from the controller."""

    def hurry(self) -> Iterator[list[switch_emulator.Output]]:
        """Run ahead of the clock, if the board may, step by step until the caller has its answer."""


class FreeRunningBoard:
    """A board with a time of its own, which may run ahead of the clock to answer."""

    def __init__(self, board: switch_emulator.Board, *, is_booted: bool = False) -> None:
        self._board = board
        self._began_ns = time.monotonic_ns() - (_BOOTED_NS if is_booted else 0)
        self._now_ns = 0

    def connected(self) -> None:
        """See `BoardTime`."""
        self._board.connected(self._clock())

    def disconnected(self) -> None:
        """See `BoardTime`."""
        self._board.disconnected(self._clock())

    def segment(self, data: bytes) -> None:
        """See `BoardTime`."""
        self._board.segment(self._clock(), data)

    def link(self, port: int, *, is_up: bool) -> None:
        """Plug in the cable of a port, or pull it."""
        self._board.link(self._clock(), port, is_up)

    def restart(self) -> None:
        """Have the board restart, by its serial console."""
        self._board.console(self._clock(), RESTART)

    def hurry(self) -> Iterator[list[switch_emulator.Output]]:
        """See `BoardTime`."""
        for _ in range(_MOST_AHEAD_NS // _AHEAD_NS):
            yield self.advance(_AHEAD_NS)

    def advance(self, ahead_ns: int = 0) -> list[switch_emulator.Output]:
        """Let time pass, and return what the board gave out."""
        self._now_ns = self._clock() + ahead_ns
        self._board.advance(self._now_ns)
        return self._board.outputs()

    def _clock(self) -> int:
        self._now_ns = max(self._now_ns, time.monotonic_ns() - self._began_ns)
        return self._now_ns


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


class EmulatedBoard:
    """The connection of one switch, which connects, disconnects and connects again as the real one does."""

    def __init__(
        self,
        name: str,
        board: BoardTime,
        controller: tuple[str, int],
        tell: Callable[[str], None] = _tell,
        *,
        asks_to_connect: bool = True,
    ) -> None:
        """`tell` receives the board's events, such as what it cannot do, and why.

        A board asks for its connection whenever it has none. For other switches (not `asks_to_connect`),
        `stay_connected` decides.
        """
        self._name = name
        self._tell = tell
        self._board = board
        self._controller = controller
        self._asks_to_connect = asks_to_connect
        self._writer: asyncio.StreamWriter | None = None
        self._connecting: asyncio.Task[None] | None = None

    def take(self, outputs: Iterable[switch_emulator.Output]) -> bool:
        """Carry out what the board gave out. Return whether it has sent something to the controller."""
        spoke = False
        for output in outputs:
            if output.kind == "controller" and self._writer is not None:
                if not self._writer.is_closing():  # the other side may have gone without a word of it here
                    self._writer.write(output.data)
                spoke = True
            elif output.kind == "event":
                self._event(output.data)
        return spoke

    def _event(self, data: bytes) -> None:
        if data == b"connect":
            if self._connecting is None and self._asks_to_connect:
                self._connecting = asyncio.create_task(self._connect())
        elif data == b"close":
            self._hang_up()
        else:
            self._tell(f"{self._name}: {data.decode()}")

    async def stay_connected(self) -> None:
        """Connect, and again a second after each end of the connection, until cancelled."""
        while True:
            await self._connect()
            await asyncio.sleep(_RETRY_S)

    async def _connect(self) -> None:
        try:
            reader, writer = await asyncio.open_connection(*self._controller, limit=SEGMENT_BYTES * 4)
        except OSError:
            self._connecting = None
            return  # the board tries again
        self._hang_up()
        self._writer = writer
        self._board.connected()
        self._connecting = None
        self._hurry()
        try:
            await self._converse(reader, writer)
        finally:
            if self._writer is writer:
                self._hang_up()
                self._board.disconnected()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pending = b""
        with contextlib.suppress(ConnectionError):
            while self._writer is writer and (data := await reader.read(4 * SEGMENT_BYTES)):
                messages, pending = whole_messages(pending + data)
                for segment in segments_of(messages):
                    self._board.segment(segment)
                    self._hurry()
                    await writer.drain()

    def _hurry(self) -> None:
        for outputs in self._board.hurry():
            if self.take(outputs):
                break

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def free_of_control_cost(profile: str, folder: Path) -> str:
    """Write a copy of a profile whose control plane takes no time, and return its path."""
    costs = tomllib.loads(profile_text(profile))["cpu"]["control"]
    path = folder / f"{Path(profile).stem}.toml"
    free = profile_text(profile, "cpu.control", **dict.fromkeys(costs, 0))
    path.write_text(free, encoding="utf-8")
    return str(path)


def profile_of(switch: Switch) -> Profile:
    """Return the profile of a board. Raises `InputError` if the switch is something else."""
    if not isinstance(switch.profile, Profile):
        raise InputError(f"{switch.name}: {switch.profile.name} is no board that can be emulated by itself")
    return switch.profile


def check_switches(lab: Lab, openflow: OpenFlow = OpenFlow.V1_0) -> None:
    """Raise `InputError` unless every switch can be emulated beside a service, in this version."""
    for name, switch in lab.switches.items():
        if openflow is not OpenFlow.V1_0 and not isinstance(switch.profile, Profile):
            raise InputError(
                f"{name}: {switch.profile.name} is emulated in OpenFlow 1.0 only; leave --openflow out"
            )
        if isinstance(switch.profile, LinuxSwitch):
            raise InputError(f"{name}: {switch.profile.name} cannot be emulated beside a service")
        if switch.datapath_id >> _MAC_BITS:
            raise InputError(
                f"{lab.path}: {name}: datapath_id: that of an emulated switch begins with 00:00; change it"
            )
    for profile in {switch.emulated_as for switch in lab.switches.values()}:
        try:
            switch_emulator.Network(seed=0).add_board("switch", profile=profile)
        except ValueError as error:
            raise InputError(f"lab '{lab.name}': {error}") from None


@contextlib.contextmanager
def switch_profiles(lab: Lab, *, free_control: bool) -> Iterator[dict[str, str]]:
    """Offer each switch's profile while the context lasts. Raises as `check_switches`."""
    check_switches(lab)
    with tempfile.TemporaryDirectory() as folder:
        profiles = {}
        for name, switch in lab.switches.items():
            profiles[name] = switch.emulated_as
            if free_control and isinstance(switch.profile, Profile):
                profiles[name] = free_of_control_cost(switch.emulated_as, Path(folder))
        yield profiles


def power_up(lab: Lab, *, free_control: bool) -> dict[str, switch_emulator.Board]:
    """Power up the boards of a lab, at time 0. The caller keeps their TCP sessions. Raises `InputError`."""
    for switch in lab.switches.values():
        profile_of(switch)
    with switch_profiles(lab, free_control=free_control) as profiles:
        return {
            name: switch_emulator.Board(profiles[name], config={**switch.config, **KEPT_SESSION}, seed=number)
            for number, (name, switch) in enumerate(lab.switches.items())
        }


class LoneBoards:
    """The boards of a lab, each in its own time."""

    def __init__(self, lab: Lab, controller: tuple[str, int], *, free_control: bool) -> None:
        """Power up the boards. Raises `InputError`."""
        self._lab, self._controller = lab, controller
        powered_up = power_up(lab, free_control=free_control)
        self._boards = {name: FreeRunningBoard(board) for name, board in powered_up.items()}
        for name, board in self._boards.items():
            for port in range(1, lab.switches[name].profile.ports.count.value + 1):
                board.link(port, is_up=lab.far_end(name, port) is not None)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name, board in self._boards.items():
                tasks.create_task(run_board(name, board, self._controller))

    def cause(self, fault: Fault) -> None:
        """Pull a cable, plug it in again, or restart a board."""
        if fault.kind is FaultKind.REBOOT:
            self._boards[fault.place].restart()
            return
        link = cable_named(self._lab, fault.place)
        for end in (link.a, link.b):
            if (board := self._boards.get(end.node)) is not None:
                board.link(end.port, is_up=fault.kind is FaultKind.PLUG)


async def run_board(
    name: str, board: FreeRunningBoard, controller: tuple[str, int], tell: Callable[[str], None] = _tell
) -> None:
    """Run a board in its own time, until cancelled; see `EmulatedBoard`."""
    connection = EmulatedBoard(name, board, controller, tell)
    while True:
        connection.take(board.advance())
        await asyncio.sleep(_IDLE_S)
