"""The whole check of a schedule: arithmetic, then a replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from loko.topology.lab import Lab
from loko_testbed.reproduce.schedule_check.arithmetic import refutations
from loko_testbed.reproduce.schedule_check.document import ScheduleDocument, WantedFlow
from loko_testbed.reproduce.schedule_check.replay import ScheduleReplay, replay

CYCLES: Final = 20
"""Base periods to replay before a schedule is handed out."""


class ScheduleVerdict(NamedTuple):
    """The result of the check of a schedule."""

    by_arithmetic: list[str]
    replay: ScheduleReplay
    cycles: int
    """Base periods that were replayed."""

    @property
    def refutations(self) -> list[str]:
        """All refutations, one line each; empty if there are none."""
        return [*self.by_arithmetic, *self.replay.refutations]

    def values(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return {
            "refuted": bool(self.refutations),
            "by_arithmetic": self.by_arithmetic,
            "by_replay": self.replay.refutations,
            "base_periods": self.cycles,
            "packets": self.replay.packets,
            "worst_us": {flow: worst / 1e3 for flow, worst in self.replay.worst_ns.items()},
        }


def check(
    lab: Lab, wanted: Sequence[WantedFlow], schedule: ScheduleDocument, *, cycles: int = CYCLES, seed: int = 1
) -> ScheduleVerdict:
    """Try to refute a schedule of these flows; with 0 `cycles` by arithmetic only.

    Raises `InputError` for what the emulator does not take, `RunError` if a board refuses its table.
    """
    by_arithmetic = refutations(lab, wanted, schedule)
    replayed = ScheduleReplay(packets=0, refutations=[], worst_ns={})
    if cycles:
        replayed = replay(lab, wanted, schedule, cycles=cycles, seed=seed)
    return ScheduleVerdict(by_arithmetic=by_arithmetic, replay=replayed, cycles=cycles)
