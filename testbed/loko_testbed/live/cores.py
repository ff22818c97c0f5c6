"""Assigns cores to programs. The emulator busy-waits and needs a core of its own."""

from __future__ import annotations

import os
from collections.abc import Set
from dataclasses import dataclass
from typing import Final, Self

NOT_JUDGED: Final = "its delays say nothing of the switches, for it shares the cores with other labs"
"""Remark on a relaxed lab."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePlan:
    """The emulator's core, and the cores of everything else."""

    emulator: int
    others: frozenset[int]
    relaxed: bool = False
    """Whether the emulator has no core of its own: it shares all cores with everything else."""

    @classmethod
    def of(cls, usable: Set[int]) -> Self:
        """Plan the last core for the emulator and all others for the rest; a single core is for both."""
        last = max(usable)
        return cls(emulator=last, others=frozenset(usable - {last}) or frozenset({last}))

    @classmethod
    def here(cls) -> Self:
        """Return the plan for the cores that this process may use."""
        return cls.of(os.sched_getaffinity(0))

    @classmethod
    def relaxed_here(cls) -> Self:
        """Return the plan for a lab whose delays nobody judges: everything runs on all cores."""
        usable = os.sched_getaffinity(0)
        return cls(emulator=max(usable), others=frozenset(usable), relaxed=True)

    @property
    def warning(self) -> str | None:
        """A warning if the emulator has no core of its own; else None."""
        if self.relaxed:
            return f"relaxed: {NOT_JUDGED}"
        if self.emulator in self.others:
            return "one core only: emulator, traffic and taps disturb each other; expect many host stalls"
        return None
