"""The kind ``versions``."""

from __future__ import annotations

from typing import Any, Final

from evaluation.kinds import Kind
from evaluation.kinds.versions.document import Versions
from evaluation.kinds.versions.production import compute
from evaluation.options import Options
from evaluation.outcome import OneByOne

_VIRTUAL_S_PER_S: Final = 0.05
"""Time that a second of the two versions takes."""


def _parameters(_figure: Versions, options: Options) -> dict[str, Any]:
    return {"capacity_factor": options.capacity_factor, "senders": options.senders.chosen}


KIND: Final = Kind(
    document=Versions,
    produce=OneByOne(compute, _parameters),
    estimate_s=lambda figure: {"virtual": 1 + 2 * figure.runs * figure.seconds * _VIRTUAL_S_PER_S},
)
"""Comparisons of versions: in virtual time only."""
