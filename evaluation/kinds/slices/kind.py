"""The kind ``slices``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.slices.document import Messages, Slices
from evaluation.kinds.slices.production import compute, parameters
from evaluation.outcome import OneByOne

_VIRTUAL_S: Final = 3.0
_BUILD_S: Final = 5.0


def _estimate_s(figure: Slices) -> dict[str, float]:
    kinds = len(figure.sends.cases if isinstance(figure.sends, Messages) else figure.sends.lengths)
    times = {"virtual": _VIRTUAL_S, "live": _BUILD_S + kinds * figure.repetitions * figure.pause_ms / 1e3}
    return {mode: times[mode] for mode in figure.modes if mode in times}


KIND: Final = Kind(
    document=Slices,
    produce=OneByOne(compute, parameters),
    estimate_s=_estimate_s,
    honours=IN_TASKS,
)
