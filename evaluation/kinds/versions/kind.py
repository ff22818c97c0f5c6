"""The kind ``versions``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import SIMULATED, Kind
from evaluation.kinds.versions.document import Versions
from evaluation.kinds.versions.production import compute
from evaluation.outcome import OneByOne
from evaluation.replay.point import carriage

_VIRTUAL_S_PER_S: Final = 0.05
"""Time that a second of the two versions takes."""


KIND: Final = Kind(
    document=Versions,
    produce=OneByOne(compute, carriage),
    estimate_s=lambda figure: {"virtual": 1 + 2 * figure.runs * figure.seconds * _VIRTUAL_S_PER_S},
    honours=SIMULATED,
)
"""Comparisons of versions: in virtual time only."""
