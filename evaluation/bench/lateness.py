"""What an emulated switch's own lateness hides: its host passes no frame on within a microsecond."""

from __future__ import annotations

from typing import Final

import numpy as np

from evaluation.bench.campaign import INTEGRATED_SWITCH_PART, LATENESS
from evaluation.bench.store import Samples

_LATE: Final = 0.03
"""A time of which the lateness is a larger share says more of the host."""


def is_hidden(time_ns: float, samples: Samples) -> bool:
    """Whether the switch is too late for a time of its integrated switch to be told."""
    late_ns = samples.get(INTEGRATED_SWITCH_PART, {}).get(LATENESS, np.zeros(1))[0]
    return bool(late_ns > _LATE * time_ns)
