"""The kind ``senders``."""

from __future__ import annotations

from typing import Any, Final

from evaluation.kinds import SIMULATED, Kind
from evaluation.kinds.senders.document import SendersFigure
from evaluation.kinds.senders.production import compute
from evaluation.options import Options
from evaluation.outcome import OneByOne

_S_PER_S: Final = 0.025
"""A second of a sender of the grid on one core; measured on an x86-64 VM."""
_S_PER_PREDICTION: Final = 30.0
_REGION: Final = 12
"""About so many senders are left to predict with."""


def _parameters(_figure: SendersFigure, options: Options) -> dict[str, Any]:
    return {"capacity_factor": options.capacity_factor}


def _estimate_s(figure: SendersFigure) -> dict[str, float]:
    cells = len(figure.grid.senders)
    inferring = cells * figure.effort.runs * figure.effort.seconds * _S_PER_S
    return {"virtual": inferring / 2 + _REGION * _S_PER_PREDICTION / 2}


KIND: Final = Kind(
    document=SendersFigure, produce=OneByOne(compute, _parameters), estimate_s=_estimate_s, honours=SIMULATED
)
