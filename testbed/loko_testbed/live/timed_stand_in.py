"""The timed stand-in: Open vSwitch between two sides of a holder that gives each frame its time of departure.

Open vSwitch looks frames up and changes them. The program `zodiac-fx hold` stands at all ports. It computes
each frame's departure from its arrival by the board's delay terms, and keeps what Open vSwitch gives back
until then (docs/stand-in.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Self

from loko.switch_model.device import Profile
from loko.switch_model.scenario import Scenario
from loko.switch_model.service_curve import processing, service_curve
from loko.units import PS_PER_NS
from loko_testbed.instruments.cables import switch_off_offloads
from loko_testbed.instruments.programs import require_emulator, run
from loko_testbed.live import stand_in
from loko_testbed.live.boards import STALL_THRESHOLD_US, Reports
from loko_testbed.live.daemon import Daemon

_SIZES: Final = (64, 1518)
"""p_CPU is linear in the length between these."""
_START_TIMEOUT_S: Final = 30.0
_END_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayTerms:
    """The board's delay terms, as `zodiac-fx hold` reads them."""

    link_rate_bps: int
    preamble_bytes: int
    gap_bytes: int
    tag_bytes: int
    transit_ps: int
    cpu_base_ps: int
    cpu_byte_ps: int
    units: int
    unit_bytes: int

    @classmethod
    def of(cls, profile: Profile, scenario: Scenario) -> Self:
        """Return the device for a switch whose frames all take the scenario's longest time for their length.

        Raises `InputError` if the scenario does not fit the device.
        """
        service_curve(profile, scenario)  # refuses what does not fit
        shortest_ps, longest_ps = (_cpu_ps(profile, scenario, size) for size in _SIZES)
        per_byte_ps = round((longest_ps - shortest_ps) / (_SIZES[1] - _SIZES[0]))
        ports = profile.ports
        return cls(
            link_rate_bps=ports.link_rate_bps.value,
            preamble_bytes=ports.preamble_bytes.value,
            gap_bytes=ports.interframe_gap_bytes.value,
            tag_bytes=ports.tail_tag_bytes.value,
            transit_ps=profile.integrated_switch.transit_ps.value,
            cpu_base_ps=shortest_ps - per_byte_ps * _SIZES[0],
            cpu_byte_ps=per_byte_ps,
            units=profile.buffer.units.value,
            unit_bytes=profile.buffer.unit_bytes.value,
        )


def _cpu_ps(profile: Profile, scenario: Scenario, frame_bytes: int) -> int:
    cases = replace(scenario, packet_sizes_bytes=(frame_bytes,)).cases()
    return round(max(processing(profile, case).cpu_ns for case in cases) * PS_PER_NS)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSwitch:
    """A switch whose frames are held."""

    name: str
    ports: Mapping[int, str]
    """The interface of each port, towards the network."""
    device: DelayTerms


class HoldProgram:
    """The running program, for one switch or several."""

    def __init__(
        self, switches: list[HeldSwitch], folder: Path, *, cpu: int | None, process: str = ""
    ) -> None:
        """Start the program in the current network namespace, and wait until it is ready. Raises `RunError`.

        `cpu` is its core; without one it shares all cores with everything else. `process` has more lines for
        the section [process] of its file.
        """
        folder.mkdir(exist_ok=True)
        for switch in switches:
            _cables(switch)
        file = folder / "hold.toml"
        file.write_text(_configuration(switches, folder, cpu=cpu, process=process), encoding="utf-8")
        self._daemon = Daemon(
            "the holder",
            [str(require_emulator()), "hold", str(file)],
            log=folder / "hold.log",
            ready=folder / "holder.ready",
        )
        self.reports = Reports(self._daemon, folder / "report.json")
        try:
            self._daemon.wait_ready(_START_TIMEOUT_S)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the program, which restores the machine's limit for real-time threads."""
        self._daemon.stop(_END_TIMEOUT_S)


def inner(switch: HeldSwitch) -> dict[int, str]:
    """Return the interface that Open vSwitch takes for each port."""
    names = stand_in.Names(switch=switch.name)
    return {port: names.far(port) for port in switch.ports}


def _cables(switch: HeldSwitch) -> None:
    names = stand_in.Names(switch=switch.name)
    for port in sorted(switch.ports):
        what = f"{switch.name}: port {port}"
        for command in stand_in.commands("timed-port", {"near": names.near(port), "far": names.far(port)}):
            run(command, what=what)
        for cable_end in (names.near(port), names.far(port)):
            switch_off_offloads(cable_end, what=what)


def _configuration(switches: list[HeldSwitch], folder: Path, *, cpu: int | None, process: str) -> str:
    lines = [
        "[process]",
        *(['scheduling = "other"'] if cpu is None else [f"cpu = {cpu}", 'scheduling = "deadline"']),
        f"stall_threshold_us = {STALL_THRESHOLD_US}",
        f"report = {json.dumps(str(folder / 'report.json'))}",
        f"ready = {json.dumps(str(folder / 'holder.ready'))}",
        process,
    ]
    for switch in switches:
        lines += ["[[switch]]", f"name = {json.dumps(switch.name)}", "[switch.ports]"]
        for port, outside in sorted(switch.ports.items()):
            inside = stand_in.Names(switch=switch.name).near(port)
            lines.append(f"{port} = {{outside = {json.dumps(outside)}, inside = {json.dumps(inside)}}}")
        lines += ["[switch.device]", *(f"{key} = {value}" for key, value in asdict(switch.device).items())]
    return "\n".join(lines) + "\n"
