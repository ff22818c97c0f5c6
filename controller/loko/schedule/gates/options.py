"""Options of gate control lists."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from loko.document import InputError

TRAFFIC_CLASSES: Final = 8
ALL_CLOSED: Final = 0x00
ALL_OPEN: Final = 0xFF
CLOCK_NS: Final = 1_000
"""How far the clocks of gates may be off: 802.1AS keeps them within 1 us over seven hops (annex B.3)."""


class GateFormat(StrEnum):
    """Formats in which gate control lists are written."""

    LISTING = "listing"
    TAPRIO = "taprio"
    YANG = "yang"


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """The choices on which a gate control list depends, besides the schedule."""

    traffic_class: int = TRAFFIC_CLASSES - 1
    """Of the scheduled flows, alone; frames of all others are in other classes."""
    clock_ns: int = CLOCK_NS
    """How far the clock of a port's gates may be off that of the slots, early or late."""

    def __post_init__(self) -> None:
        if not 0 <= self.traffic_class < TRAFFIC_CLASSES:
            raise InputError(f"traffic class {self.traffic_class}: give one of 0 to {TRAFFIC_CLASSES - 1}")

    @property
    def scheduled_open(self) -> int:
        """The gate states in which the class of the scheduled flows is open, and no other."""
        return 1 << self.traffic_class

    @property
    def others_open(self) -> int:
        """The gate states in which all other classes are open."""
        return ALL_OPEN ^ self.scheduled_open
