"""The kind ``overload``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.measured import MEASURED
from evaluation.kinds.overload.document import Overload
from evaluation.kinds.overload.production import compute
from evaluation.outcome import OneByOne

_RATE_S: Final = 0.1
"""One rate in virtual time; measured on an x86-64 VM."""
_LIVE_RATE_S: Final = 3.0


def _estimate_s(figure: Overload) -> dict[str, float]:
    count = len(figure.entries) * figure.rates
    times = {"virtual": 3 + count * _RATE_S, "live": 15 + count * _LIVE_RATE_S}
    return {mode: times[mode] for mode in figure.modes if mode in times}


KIND: Final = Kind(
    document=Overload, produce=OneByOne(compute, MEASURED), estimate_s=_estimate_s, honours=IN_TASKS
)
