"""Switches that Open vSwitch stands in for: coarse, timed, or with limited links."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loko.switch_model.device import deterministic
from loko.switch_model.scenario import Scenario
from loko.topology.lab import Backend, Switch
from loko_testbed.instruments.programs import run_json
from loko_testbed.live import mininet_link, stand_in, timed_stand_in
from loko_testbed.live.boards import BoardsReport
from loko_testbed.live.openvswitch import OpenVSwitch, hurry


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountedPorts:
    """The interfaces at which the frames of a switch are counted."""

    ports: tuple[str, ...]
    queue: str | None
    """The interface whose queue counts drops. None for limited links: Open vSwitch drops some uncounted."""


class CoarseSwitches:
    """All switches that one Open vSwitch carries."""

    def __init__(
        self,
        switches: Iterable[Switch],
        ports: Mapping[str, Mapping[int, str]],
        *,
        scenario: Scenario,
        controller: str,
        cpus: Collection[int],
        holder_cpu: int | None,
        folder: Path,
    ) -> None:
        """Build the switches in the current network namespace. Raises `RunError` or `InputError`.

        The scenario says what the switches forward; it sets their rate and their queue, or their times.
        `cpus` are the cores for Open vSwitch, `holder_cpu` is the core of the program that holds frames, if
        it has one.
        """
        self._scenario = scenario
        self._cores = ", ".join(map(str, sorted(cpus)))
        self._ovs = OpenVSwitch(folder, cpus=cpus)
        self._counted: dict[str, _CountedPorts] = {}
        switches = list(switches)
        held = [
            timed_stand_in.HeldSwitch(
                name=switch.name,
                ports=ports[switch.name],
                device=timed_stand_in.DelayTerms.of(deterministic(switch.profile), scenario),
            )
            for switch in switches
            if switch.backend is Backend.OVS_TIMED
        ]
        self._holder = timed_stand_in.HoldProgram(held, folder / "holder", cpu=holder_cpu) if held else None
        inner = {switch.name: timed_stand_in.inner(switch) for switch in held}
        for switch in switches:
            if switch.name in inner:
                self._add(switch, inner[switch.name], controller)
                continue
            build = self._build_stand_in if switch.backend is Backend.OVS else self._build_limited
            self._counted[switch.name] = build(switch, ports[switch.name], controller)
        self._held = tuple(inner)
        if holder_cpu is not None and held:
            hurry(self._ovs.pid)

    def report(self) -> BoardsReport:
        """Report on the switches. Only the holder notices stalls, not the kernel. Raises `RunError`."""
        parts = [self._report()] if self._counted else []
        if self._holder:
            held = self._holder.reports.latest()
            parts.append(replace(held, connected=self._ovs.connected(self._held)))
        return BoardsReport.joined(parts)

    def _report(self) -> BoardsReport:
        links = {link["ifname"]: link["stats64"] for link in _show("ip", "link")}
        drops = {entry["dev"]: int(entry["drops"]) for entry in _show("tc", "qdisc") if entry.get("root")}
        counters = {}
        for name, counted in self._counted.items():
            counters[name] = {
                "received": sum(links[port]["rx"]["packets"] for port in counted.ports),
                "forwarded": sum(links[port]["tx"]["packets"] for port in counted.ports),
            }
            if counted.queue:
                counters[name]["dropped_buffer"] = drops[counted.queue]
        return BoardsReport(
            counters=counters,
            connected=self._ovs.connected(self._counted),
            lateness_ns={},
            stalls=(),
            stalls_truncated=False,
            interface_losses=0,
            scheduling=f"Open vSwitch in user space, cores {self._cores}",
        )

    def _build_stand_in(self, switch: Switch, ports: Mapping[int, str], controller: str) -> _CountedPorts:
        queue = stand_in.SharedQueue.of(deterministic(switch.profile), self._scenario)
        inner = stand_in.build(switch.name, ports, queue)
        self._add(switch, inner, controller)
        return _CountedPorts(ports=tuple(ports.values()), queue=stand_in.Names(switch=switch.name).queue)

    def _build_limited(self, switch: Switch, ports: Mapping[int, str], controller: str) -> _CountedPorts:
        self._add(switch, ports, controller)
        wanted = mininet_link.LinkLimit.of(deterministic(switch.profile), self._scenario)
        for interface in ports.values():
            mininet_link.limit(interface, wanted)
        return _CountedPorts(ports=tuple(ports.values()), queue=None)

    def _add(self, switch: Switch, ports: Mapping[int, str], controller: str) -> None:
        self._ovs.add_switch(switch.name, datapath_id=switch.datapath_id, ports=ports, controller=controller)


def _show(program: str, what: str) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = run_json([program, "-s", "-json", what, "show"], what="counters")
    return shown
