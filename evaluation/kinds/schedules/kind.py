"""The kind ``schedules``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.schedules.document import SchedulesFigure
from evaluation.kinds.schedules.production import compute, scenarios_of
from evaluation.outcome import OneByOne

_SECONDS_A_SCENARIO: Final = 1.0
"""On two cores."""

KIND: Final = Kind(
    document=SchedulesFigure,
    produce=OneByOne(compute),
    estimate_s=lambda figure: {
        "virtual": _SECONDS_A_SCENARIO * len(scenarios_of(figure, figure.scale, seed=1))
    },
    honours=IN_TASKS,
)
