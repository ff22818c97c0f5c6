"""All switches of a running lab, whatever stands in for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from loko.admission.planning import scenario_of
from loko.control.entries import match_of
from loko.topology.lab import Backend, Lab, Switch
from loko_testbed.instruments.programs import STAND_IN_PACKAGES, require, require_emulator
from loko_testbed.live.boards import BoardsReport, RunningBoards
from loko_testbed.live.coarse import CoarseSwitches
from loko_testbed.live.messages import BuildRequest, controller_address
from loko_testbed.live.real_boards import RealBoards
from loko_testbed.simulation.runner import RunError

_START_TIMEOUT_S = 30.0


def refuse(lab: Lab, request: BuildRequest) -> None:
    """Raise `RunError`, before anything is built, if the lab's switches cannot run here."""
    if lab.behind(Backend.FIRMWARE):
        require_emulator()
    coarse = _coarse(lab)
    held = lab.behind(Backend.OVS_TIMED)
    if held:
        require_emulator()
    if held and lab.behind(Backend.FIRMWARE):
        raise RunError(
            f"{lab.path}: backends firmware and ovs-timed both want a core to themselves: use one of them"
        )
    if coarse:
        for program in STAND_IN_PACKAGES:
            require(program)
    if coarse and not request.flows:
        raise RunError(
            f"{lab.path}: {coarse[0].name}: backend {coarse[0].backend} takes its rate from the frames that "
            "pass: give the flows with --flows, or use the backend firmware"
        )


class RunningSwitches:
    """The running switches."""

    def __init__(
        self, lab: Lab, ports: Mapping[str, Mapping[int, str]], request: BuildRequest, folder: Path
    ) -> None:
        """Start the switches and wait until they take frames. Raises `RunError` or `InputError`."""
        boards = {switch.name: ports[switch.name] for switch in lab.behind(Backend.FIRMWARE)}
        coarse = _coarse(lab)
        held = lab.behind(Backend.OVS_TIMED)
        real = lab.behind(Backend.HARDWARE)
        self._real = RealBoards(real, controller_address(lab)) if real else None
        cores = request.cores
        self._boards: list[RunningBoards] = []
        self._coarse: CoarseSwitches | None = None
        if coarse:
            self._coarse = CoarseSwitches(
                coarse,
                ports,
                scenario=scenario_of(request.flows, entries=request.entries, match=match_of(lab)),
                controller=controller_address(lab),
                # Emulator and holder share their core with nobody; without, that core is Open vSwitch's too.
                cpus=cores.others if boards or held else cores.others | {cores.emulator},
                holder_cpu=None if cores.relaxed else cores.emulator,
                folder=folder / "openvswitch",
            )
        groups = [{name: boards[name]} for name in boards] if lab.separate else [boards] if boards else []
        for number, group in enumerate(groups):
            self._boards.append(
                RunningBoards(
                    lab,
                    group,
                    controller=controller_address(lab),
                    cpu=None if cores.relaxed else cores.emulator,
                    seed=request.seed,
                    folder=folder / f"emulator-{number}",
                    shares_core=len(groups) > 1,
                )
            )
        for part in self._boards:
            part.daemon.wait_ready(_START_TIMEOUT_S)

    def consoles(self) -> dict[str, str]:
        """Return the device of each board's serial console; other switches have none."""
        return {name: device for part in self._boards for name, device in part.consoles().items()}

    def report(self) -> BoardsReport:
        """Report on the switches. Raises `RunError` if one of their programs has ended."""
        for part in self._boards:
            part.reports.ask()
        parts = [part.reports.answer() for part in self._boards]
        parts += [part.report() for part in (self._coarse, self._real) if part]
        return BoardsReport.joined(parts)

    def wait_for_real_boards(self) -> None:
        """Wait until every real board is connected to the controller. Raises `RunError`."""
        if self._real:
            self._real.wait()


def _coarse(lab: Lab) -> list[Switch]:
    return [switch for switch in lab.switches.values() if not switch.backend.is_board]
