"""Gate control lists as commands for Linux's queueing discipline taprio (tc-taprio(8))."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from loko.schedule.gates.gate_list import GateLists, PortGates
from loko.schedule.gates.options import TRAFFIC_CLASSES

_PRIORITIES: Final = 16
"""Priorities of sockets (SO_PRIORITY)."""


def taprio_scripts(gates: GateLists) -> Mapping[str, str]:
    """Return a shell script for each node, by the name of its file."""
    schedule = gates.schedule
    scripts = {}
    for node, ports in gates.ports.items():
        lines = [
            "#!/bin/sh",
            f"# Gate control lists of {node} in lab {schedule.lab.name}",
            "# CLOCK_TAI must be the clock of the slots. Each interface needs eight transmit queues.",
            f"# Scheduled flows need SO_PRIORITY {gates.options.traffic_class}; no other socket may have it.",
            "set -e",
            *(shlex.join(taprio_command(port)) for port in ports),
        ]
        scripts[f"{node}.sh"] = "\n".join([*lines, ""])
    return scripts


def taprio_command(port: PortGates) -> list[str]:
    """Return the command for a port: a traffic class and a transmit queue for each of the priorities 0 to 7.

    A frame without such a priority is in class 0.
    """
    classes = [number if number < TRAFFIC_CLASSES else 0 for number in range(_PRIORITIES)]
    command = ["tc", "qdisc", "replace", "dev", port.interface, "parent", "root", "handle", "100", "taprio"]
    command += ["num_tc", str(TRAFFIC_CLASSES), "map", *map(str, classes)]
    command += ["queues", *(f"1@{number}" for number in range(TRAFFIC_CLASSES))]
    command += ["base-time", str(port.base_time_ns), "cycle-time", str(port.cycle_ns)]
    for entry in port.entries:
        command += ["sched-entry", "S", f"{entry.states:02x}", str(entry.interval_ns)]
    return [*command, "flags", "0x0", "clockid", "CLOCK_TAI"]
