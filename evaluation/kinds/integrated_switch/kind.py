"""The kind ``integrated_switch``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.integrated_switch.document import IntegratedSwitch
from evaluation.kinds.integrated_switch.production import compute
from evaluation.kinds.measured import MEASURED
from evaluation.outcome import OneByOne

_SECONDS: Final = {"virtual": 4.0, "live": 20.0}

KIND: Final = Kind(
    document=IntegratedSwitch,
    produce=OneByOne(compute, MEASURED),
    estimate_s=lambda figure: {mode: _SECONDS[mode] for mode in figure.modes if mode in _SECONDS},
    honours=IN_TASKS,
)
