"""The profile of a software switch on Linux (`kind = "linux-switch"`).

The simulator carries such switches (docs/devices.md); Loko cannot guarantee anything about them.
"""

from __future__ import annotations

from pydantic import Field

from loko.switch_model.quantity import Count, Factor, Section
from loko.switch_model.tolerance import Tolerant


class LinuxInterference(Section):
    """Interruptions of the CPU: ticks with a period, and stalls with exponential gaps and a Pareto length."""

    __pydantic_extra__: dict[str, Count | Factor] = Field(init=False)  # type: ignore[assignment]


class LinuxSwitch(Tolerant):
    """All that the simulator knows of such a switch."""

    format: int
    kind: str
    name: str
    title: str
    ports: Section
    switch_chip: Section
    table: Section
    cpu: Section
    interference: LinuxInterference
