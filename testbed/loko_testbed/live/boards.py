"""The emulator `zodiac-fx`: boards of a lab in one process or each in its own, on one core."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from loko.topology.lab import Lab
from loko_testbed.instruments.emulator import POWERED_FOR_MS, board_tables, scheduling
from loko_testbed.instruments.programs import require_emulator
from loko_testbed.live.daemon import Daemon, version_of
from loko_testbed.simulation.runner import RunError, Stall

STALL_THRESHOLD_US = 50
"""A shorter pause of the emulator's thread is not reported: it hides in the delays' own spread."""

LATENESS = ("p50", "p99", "p999", "max")

_REPORT_TIMEOUT_S = 15.0


def configuration(
    lab: Lab,
    ports: Mapping[str, Mapping[int, str]],
    *,
    controller: str,
    cpu: int | None,
    seed: int,
    folder: Path,
    shares_core: bool = False,
) -> str:
    """Return the emulator's configuration file (TOML) for the boards of a lab that `ports` names.

    `cpu` is the emulator's core; without one it shares all cores with everything else (`CorePlan.relaxed`).
    """
    lines = [
        "[process]",
        *scheduling(cpu, shares_core=shares_core),
        f"stall_threshold_us = {STALL_THRESHOLD_US}",
        f"powered_for_ms = {POWERED_FOR_MS}",
        f"report = {json.dumps(str(folder / 'report.json'))}",
        f"ready = {json.dumps(str(folder / 'boards.ready'))}",
    ]
    for index, switch in enumerate(lab.switches.values()):
        if switch.name not in ports:
            continue
        lines += [
            "",
            *board_tables(
                switch.name,
                ports[switch.name],
                profile=switch.emulated_as,
                settings=switch.config,
                controller=controller,
                seed=seed + index,
                console=str(_console(folder, switch.name)),
            ),
        ]
        if lab.controller is not None:
            lines += ['control = "network"', f"netmask = {json.dumps(str(lab.controller.netmask))}"]
    return "\n".join(lines) + "\n"


def _console(folder: Path, switch: str) -> Path:
    """Return the link to a switch's console: visible only in the tree, while its device is so anywhere."""
    return folder / f"{switch}-console"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardsReport:
    """The emulator's report since its start. Stalls begin at nanoseconds since 1970."""

    counters: Mapping[str, Mapping[str, int]]
    connected: Mapping[str, bool]
    """Whether a board's connection to the controller stands."""
    lateness_ns: Mapping[str, int]
    """Lateness of departures that no stall delayed: ``p50``, ``p99``, ``p999``, ``max``."""
    stalls: tuple[Stall, ...]
    stalls_truncated: bool
    """Whether there were more stalls than are listed."""
    interface_losses: int
    """Frames that the kernel dropped because the emulator's thread did not fetch them in time."""
    scheduling: str

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """Read the emulator's report. Raises `RunError` if it is not one."""
        try:
            return cls(
                counters={name: dict(board["counters"]) for name, board in data["boards"].items()},
                connected={name: bool(board["connected"]) for name, board in data["boards"].items()},
                lateness_ns={key: int(data["lateness_ns"][key]) for key in LATENESS},
                stalls=tuple(
                    Stall(start_ns=int(start), duration_ns=int(duration))
                    for start, duration in data["stalls"]["list"]
                ),
                stalls_truncated=bool(data["stalls"]["truncated"]),
                interface_losses=sum(data["interface_losses"].values()),
                scheduling=str(data["scheduling"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(
                f"the emulator's report lacks what it should hold ({error!r}): run 'make setup'"
            ) from None

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Combine the reports of several emulators: all stalls, the worst lateness."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            counters={name: values for part in parts for name, values in part.counters.items()},
            connected={name: value for part in parts for name, value in part.connected.items()},
            lateness_ns={key: max(part.lateness_ns.get(key, 0) for part in parts) for key in LATENESS},
            stalls=tuple(
                sorted((stall for part in parts for stall in part.stalls), key=lambda stall: stall.start_ns)
            ),
            stalls_truncated=any(part.stalls_truncated for part in parts),
            interface_losses=sum(part.interface_losses for part in parts),
            scheduling="; ".join(dict.fromkeys(part.scheduling for part in parts)),
        )

    def counters_since(self, earlier: BoardsReport) -> dict[str, dict[str, int]]:
        """Return by how much each counter has grown since an earlier report."""
        return {
            name: {key: value - earlier.counters[name].get(key, 0) for key, value in counters.items()}
            for name, counters in self.counters.items()
        }


class Reports:
    """Asks a running `zodiac-fx` for reports."""

    def __init__(self, daemon: Daemon, file: Path) -> None:
        """`file` is the report, which the program replaces when it gets SIGUSR1."""
        self._daemon, self._file = daemon, file
        self._before: tuple[int, int] | None = None

    def ask(self) -> None:
        """Have the report written anew. Raises `RunError` if the program has ended."""
        self._before = version_of(self._file)
        self._daemon.signal(signal.SIGUSR1)

    def answer(self) -> BoardsReport:
        """Read the report that was asked for. Raises `RunError` if it does not come."""
        before = self._before
        self._daemon.wait_until(
            lambda: version_of(self._file) != before, _REPORT_TIMEOUT_S, "writes no report"
        )
        return BoardsReport.parse(json.loads(self._file.read_text(encoding="utf-8")))

    def latest(self) -> BoardsReport:
        """Ask for a report and read it. Raises `RunError`."""
        self.ask()
        return self.answer()


class RunningBoards:
    """A running emulator."""

    def __init__(
        self,
        lab: Lab,
        ports: Mapping[str, Mapping[int, str]],
        *,
        controller: str,
        cpu: int | None,
        seed: int,
        folder: Path,
        shares_core: bool = False,
    ) -> None:
        """Start the emulator; `daemon` tells when it is ready. Raises `RunError` if it is not built."""
        folder.mkdir(exist_ok=True)
        text = configuration(
            lab, ports, controller=controller, cpu=cpu, seed=seed, folder=folder, shares_core=shares_core
        )
        file = folder / "boards.toml"
        file.write_text(text, encoding="utf-8")
        self._folder, self._names = folder, tuple(ports)
        self.daemon = Daemon(
            "the emulator",
            [str(require_emulator()), "run", str(file), "--die-with-parent"],
            log=folder / "boards.log",
            ready=folder / "boards.ready",
        )
        self.reports = Reports(self.daemon, folder / "report.json")

    def consoles(self) -> dict[str, str]:
        """Return the device of each board's serial console, except for boards that are just restarting."""
        links = {name: _console(self._folder, name) for name in self._names}
        return {name: str(link.readlink()) for name, link in links.items() if link.is_symlink()}
