"""The kind ``service_curve``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import Kind
from evaluation.kinds.service_curve.document import ServiceCurve
from evaluation.kinds.service_curve.production import compute
from evaluation.outcome import OneByOne

KIND: Final = Kind(
    document=ServiceCurve, produce=OneByOne(compute), estimate_s=lambda _: {"virtual": 1.0, "live": 1.0}
)
