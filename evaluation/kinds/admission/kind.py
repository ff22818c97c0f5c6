"""The kind ``admission``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import IN_TASKS, Kind
from evaluation.kinds.admission.ceilings import CEILINGS
from evaluation.kinds.admission.document import AdmissionFigure
from evaluation.kinds.admission.production import compute
from evaluation.outcome import OneByOne
from loko.allocation import OPTIMISED, PACKET_GRANULAR

_S_PER_REQUEST: Final = 8e-6
_S_PER_PACKET_REQUEST: Final = 200e-6
_S_TO_OPTIMISE: Final = 1.0


def _estimate_s(figure: AdmissionFigure) -> dict[str, float]:
    """On one core."""
    seconds, hops = 2.0, len(figure.hops)
    for number, (scheme, _) in enumerate(figure.series):
        runs = figure.runs_of_others or figure.runs if number else figure.runs
        is_packets = scheme.startswith(PACKET_GRANULAR) or scheme in CEILINGS
        seconds += figure.requests * runs * hops * (_S_PER_PACKET_REQUEST if is_packets else _S_PER_REQUEST)
        seconds += hops * _S_TO_OPTIMISE if scheme.endswith(OPTIMISED) else 0.0
    return {"virtual": seconds}


KIND: Final = Kind(
    document=AdmissionFigure, produce=OneByOne(compute), estimate_s=_estimate_s, honours=IN_TASKS
)
