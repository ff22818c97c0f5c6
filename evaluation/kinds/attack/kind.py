"""The kind ``attack``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.attack.document import AttackFigure
from evaluation.kinds.attack.production import compute
from evaluation.outcome import OneByOne

_S_PER_GENERATION: Final = 0.15


def _estimate_s(figure: AttackFigure) -> dict[str, float]:
    """On one core: each scheme is searched twice."""
    return {"virtual": 2 * _S_PER_GENERATION * figure.effort.generations * len(figure.schemes)}


KIND: Final = Kind(document=AttackFigure, produce=OneByOne(compute), estimate_s=_estimate_s, honours=IN_TASKS)
