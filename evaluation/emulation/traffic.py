"""The cabled lab at the pace of the clock: boards that a controller talks to, and hosts that send.

Its time never runs ahead of the clock, and falls behind where the machine cannot keep up: then everything in
it is slower, and the delays in it are what they were.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import switch_emulator

from evaluation.beside.program import report
from evaluation.beside.senders import Turn
from evaluation.emulation.boards import EmulatedBoard, power_up
from evaluation.emulation.cabled import CabledLab
from loko.flow import Flow
from loko.lab import Lab
from loko.serve.delays import Observation

_STEP_S: Final = 0.002
_MOST_AT_ONCE_NS: Final = 10_000_000
"""Virtual time in one go; connections are served in between."""
_REPORT_S: Final = 0.25


class PacedLab:
    """Follows the clock, by so much at a time."""

    def __init__(self, cabled: CabledLab) -> None:
        self.cabled = cabled
        self._behind_ns = time.monotonic_ns() - cabled.now_ns

    def advance(self) -> None:
        """Let time pass, up to now if that is not too much at once; what is left out is left out for good."""
        wanted_ns = time.monotonic_ns() - self._behind_ns
        too_much_ns = wanted_ns - self.cabled.now_ns - _MOST_AT_ONCE_NS
        if too_much_ns > 0:
            self._behind_ns += too_much_ns
            wanted_ns -= too_much_ns
        self.cabled.advance(wanted_ns)


class CabledBoard:
    """One board of the cabled lab; see `BoardTime`. It answers in its own time."""

    def __init__(self, name: str, lab: PacedLab) -> None:
        self._name = name
        self._lab = lab

    def connected(self) -> None:
        """As `BoardTime` says."""
        self._lab.advance()
        self._lab.cabled.connected(self._name)

    def disconnected(self) -> None:
        """As `BoardTime` says."""
        self._lab.advance()
        self._lab.cabled.disconnected(self._name)

    def segment(self, data: bytes) -> None:
        """As `BoardTime` says."""
        self._lab.advance()
        self._lab.cabled.segment(self._name, data)

    def hurry(self) -> Iterator[list[switch_emulator.Output]]:
        """It cannot: others share its time."""
        return iter(())


class TrafficLab:
    """The boards, their connections, and the traffic that the service's flows allow."""

    def __init__(self, lab: Lab, controller: tuple[str, int], *, free_control: bool) -> None:
        self.boards = power_up(lab, free_control=free_control)
        self.cabled = CabledLab(lab, self.boards)
        self._lab = PacedLab(self.cabled)
        self._connections = {
            name: EmulatedBoard(name, CabledBoard(name, self._lab), controller) for name in lab.switches
        }

    async def run(self, report: Callable[[Sequence[Observation]], None] = report) -> None:
        """Live until cancelled; `report` is told what the hosts' taps have seen."""
        report_s = time.monotonic() + _REPORT_S
        while True:
            self._lab.advance()
            for name, outputs in self.cabled.said():
                self._connections[name].take(outputs)
            if time.monotonic() >= report_s:
                report_s = time.monotonic() + _REPORT_S
                report(self.cabled.observations())
            await asyncio.sleep(_STEP_S)

    def told(self, flows: Sequence[Flow], turns: Mapping[str, Turn] = MappingProxyType({})) -> None:
        """The service says which flows are in place, and the turns of those that have slots."""
        self._lab.advance()
        self.cabled.carry(flows, turns)
