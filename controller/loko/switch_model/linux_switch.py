"""The profile of a software switch on Linux (`kind = "linux-switch"`).

The simulator carries such switches (docs/devices.md); Loko cannot guarantee anything about them.
"""

from __future__ import annotations

from typing import Literal

from loko.document import StrictModel
from loko.switch_model.quantity import Count, Factor
from loko.switch_model.tolerance import Tolerant


class LinuxPorts(StrictModel):
    """The front ports, and the rate of theirs and of the link between switch chip and CPU."""

    count: Count
    link_rate_bps: Count


class SwitchChip(StrictModel):
    """The switch chip between the ports and the CPU."""

    transit_ns: Count
    buffer_bytes: Count
    tag_bytes: Count


class LinuxTable(StrictModel):
    """The flow table."""

    entries: Count


class LinuxCpu(StrictModel):
    """CPU time of a frame, and lengths of the queues before and after it."""

    base_ps: Count
    per_byte_ps: Count
    interrupt_ns: Count
    poll_budget_frames: Count
    repoll_ns: Count
    ring_frames: Count
    transmit_frames: Count


class LinuxInterference(StrictModel):
    """Interruptions of the CPU: ticks with a period, and stalls with exponential gaps and a Pareto length."""

    tick_period_ns: Count
    tick_ns: Count
    stall_gap_ns: Count
    stall_least_ns: Count
    stall_most_ns: Count
    stall_shape: Factor


class LinuxSwitch(Tolerant):
    """All that the simulator knows of such a switch."""

    format: Literal[1]
    kind: Literal["linux-switch"]
    name: str
    title: str
    ports: LinuxPorts
    switch_chip: SwitchChip
    table: LinuxTable
    cpu: LinuxCpu
    interference: LinuxInterference
