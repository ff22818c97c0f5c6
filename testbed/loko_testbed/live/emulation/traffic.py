"""The cabled lab at the pace of the clock: boards that talk to a controller, and hosts that send.

Its time never runs ahead of the clock. If the machine cannot keep up, its time falls behind: everything in it
is then slower, but the delays in it stay the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import switch_emulator

from loko.service.delays import DelayObservation
from loko.service.faults import Fault
from loko.switch_model.device import Profile
from loko.topology.lab import Lab
from loko_testbed.live.emulation.boards import EmulatedBoard
from loko_testbed.live.emulation.cabled import CabledLab, cabled_network
from loko_testbed.live.sidecars.program import report
from loko_testbed.live.sidecars.senders import FlowsInPlace

_STEP_S: Final = 0.002
_MOST_AT_ONCE_NS: Final = 10_000_000
"""Longest step of virtual time; connections are served between steps."""
_REPORT_S: Final = 0.25


class PacedLab:
    """Makes a cabled lab follow the clock, in steps of limited length."""

    def __init__(self, cabled: CabledLab) -> None:
        self.cabled = cabled
        self._behind_ns = time.monotonic_ns() - cabled.now_ns

    def advance(self) -> None:
        """Let time pass up to now, but not more than the limit. The excess is skipped for good."""
        wanted_ns = time.monotonic_ns() - self._behind_ns
        too_much_ns = wanted_ns - self.cabled.now_ns - _MOST_AT_ONCE_NS
        if too_much_ns > 0:
            self._behind_ns += too_much_ns
            wanted_ns -= too_much_ns
        self.cabled.advance(wanted_ns)


class CabledBoard:
    """A board of the cabled lab; see `BoardTime`. It shares its time, so it cannot run ahead to answer."""

    def __init__(self, name: str, lab: PacedLab) -> None:
        self._name = name
        self._lab = lab

    def connected(self) -> None:
        """See `BoardTime`."""
        self._lab.advance()
        self._lab.cabled.connected(self._name)

    def disconnected(self) -> None:
        """See `BoardTime`."""
        self._lab.advance()
        self._lab.cabled.disconnected(self._name)

    def segment(self, data: bytes) -> None:
        """See `BoardTime`."""
        self._lab.advance()
        self._lab.cabled.segment(self._name, data)

    def hurry(self) -> Iterator[list[switch_emulator.Output]]:
        """Yield nothing: others share the board's time, so it cannot run ahead."""
        return iter(())


class TrafficLab:
    """The boards, their connections, and the traffic of the service's flows."""

    def __init__(self, lab: Lab, controller: tuple[str, int], *, free_control: bool) -> None:
        self.cabled = CabledLab(lab, cabled_network(lab, free_control=free_control))
        self._lab = PacedLab(self.cabled)
        self._connections = {
            name: EmulatedBoard(
                name,
                CabledBoard(name, self._lab),
                controller,
                asks_to_connect=isinstance(switch.profile, Profile),
            )
            for name, switch in lab.switches.items()
        }
        self._others = [
            name for name, switch in lab.switches.items() if not isinstance(switch.profile, Profile)
        ]

    async def run(self, report: Callable[[Sequence[DelayObservation]], None] = report) -> None:
        """Run until cancelled. `report` receives what the hosts' taps have seen."""
        async with asyncio.TaskGroup() as tasks:
            for name in self._others:
                tasks.create_task(self._connections[name].stay_connected())
            tasks.create_task(self._follow_clock(report))

    async def _follow_clock(self, report: Callable[[Sequence[DelayObservation]], None]) -> None:
        report_s = time.monotonic() + _REPORT_S
        while True:
            self._lab.advance()
            for name, outputs in self.cabled.drain_outputs():
                self._connections[name].take(outputs)
            if time.monotonic() >= report_s:
                report_s = time.monotonic() + _REPORT_S
                report(self.cabled.observations())
            await asyncio.sleep(_STEP_S)

    def cause(self, fault: Fault) -> None:
        """Pull a cable, plug it in again, or restart a board."""
        self._lab.advance()
        self.cabled.cause(fault)

    def set_flows(self, in_place: FlowsInPlace) -> None:
        """Let these flows send from now on, and no others."""
        self._lab.advance()
        self.cabled.set_flows(in_place)
