"""The kind ``admission``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import Kind
from evaluation.kinds.admission.document import AdmissionFigure
from evaluation.kinds.admission.production import compute
from evaluation.outcome import OneByOne

_S_PER_REQUEST: Final = {"full-rate": 8e-6, "full-rate-same-delay": 8e-6, "fifth-rate": 8e-6}
_S_PER_PACKET_REQUEST: Final = 600e-6


def _estimate_s(figure: AdmissionFigure) -> dict[str, float]:
    """On one core."""
    requests = figure.requests * figure.runs * len(figure.hops)
    each = (_S_PER_REQUEST.get(scheme, _S_PER_PACKET_REQUEST) for scheme in figure.schemes)
    return {"virtual": 2 + requests * sum(each)}


KIND: Final = Kind(document=AdmissionFigure, produce=OneByOne(compute), estimate_s=_estimate_s)
