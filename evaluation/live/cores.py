"""Who runs on which core. The emulator busy-waits and wants one for itself."""

from __future__ import annotations

import os
from collections.abc import Set
from dataclasses import dataclass
from typing import Final, Self

NOT_JUDGED: Final = "its delays say nothing of the switches, for it shares the cores with other labs"
"""What is said of a relaxed lab."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePlan:
    """The emulator's core, and the cores of everything else."""

    emulator: int
    others: frozenset[int]
    relaxed: bool = False
    """Whether the emulator has no core of its own: it takes turns with everything else, on any core."""

    @classmethod
    def of(cls, usable: Set[int]) -> Self:
        """The last core for the emulator, all others for the rest; a single one for both."""
        last = max(usable)
        return cls(emulator=last, others=frozenset(usable - {last}) or frozenset({last}))

    @classmethod
    def here(cls) -> Self:
        """The plan for the cores that this process may use."""
        return cls.of(os.sched_getaffinity(0))

    @classmethod
    def relaxed_here(cls) -> Self:
        """The plan for a lab whose delays nobody judges: all cores are everybody's."""
        usable = os.sched_getaffinity(0)
        return cls(emulator=max(usable), others=frozenset(usable), relaxed=True)

    @property
    def warning(self) -> str | None:
        """What to expect if the emulator has no core for itself."""
        if self.relaxed:
            return f"relaxed: {NOT_JUDGED}"
        if self.emulator in self.others:
            return "one core only: emulator, traffic and taps disturb each other; expect many host stalls"
        return None
