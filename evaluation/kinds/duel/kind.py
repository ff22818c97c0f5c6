"""The kind ``duel``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.duel.document import DuelFigure
from evaluation.kinds.duel.production import compute, scenarios_of
from evaluation.outcome import OneByOne

_S_PER_REPLAY: Final = 3.0
_S_PER_ANSWER: Final = 2.0
"""Both of a lab and a system, on two cores."""


def _estimate_s(figure: DuelFigure) -> dict[str, float]:
    replays = len(scenarios_of(figure, figure.scale)) * _S_PER_REPLAY
    answers = len(figure.scale.rates_kbps) * _S_PER_ANSWER
    return {"virtual": len(figure.arenas) * len(figure.contenders) * (replays + answers)}


KIND: Final = Kind(document=DuelFigure, produce=OneByOne(compute), estimate_s=_estimate_s, honours=IN_TASKS)
"""In virtual time only."""
