"""How samples of each procedure are shown: what of them, and in which unit."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.bench.campaign import Procedure
from evaluation.bench.device import MISSING

_UNITS: Final[dict[Procedure, tuple[str, float]]] = {
    "throughput": ("Mbit/s", 1e6),
    "buffer": ("frames", 1),
    "table": ("entries", 1),
}


def unit_of(procedure: Procedure) -> tuple[str, float]:
    """The unit, and how many of what is stored make one of it."""
    return _UNITS.get(procedure, ("us", 1000))


def shown(procedure: Procedure, samples: NDArray[np.int64]) -> NDArray[np.int64]:
    """What of the samples is shown: the stored trains as times or gaps, all others as they are."""
    if procedure not in {"idle", "backlog", "housekeeping"}:
        return samples
    entered, left = samples.reshape(2, -1)
    there = left != MISSING
    if procedure == "idle":
        return np.asarray((left - entered)[there])
    return np.asarray(np.diff(left)[there[:-1] & there[1:]])
