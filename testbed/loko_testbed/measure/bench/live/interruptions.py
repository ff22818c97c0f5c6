"""Finds the frames that passed while the bench's own host lost time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko_testbed.measure.bench.device import MISSING, Instants
from loko_testbed.simulation.runner import Stall

_LOST_NS: Final = 20_000_000
"""How long a frame that did not come out may have been under way."""


def disturbed_mask(entered_ns: Instants, left_ns: Instants, stalls: Sequence[Stall]) -> NDArray[np.bool_]:
    """Mark frames whose passage overlaps a stall, and those that the tap at the entrance did not see."""
    unseen: NDArray[np.bool_] = entered_ns == MISSING
    if not stalls:
        return unseen
    begins = np.array(sorted(stall.start_ns for stall in stalls), dtype=np.int64)
    ends = np.maximum.accumulate(
        np.array(
            [s.start_ns + s.duration_ns for s in sorted(stalls, key=lambda s: s.start_ns)], dtype=np.int64
        )
    )
    until = np.where(left_ns == MISSING, entered_ns + _LOST_NS, left_ns)
    # Of the stalls that begin before the frame has left, the latest end decides.
    begun = np.searchsorted(begins, until, side="right")
    met: NDArray[np.bool_] = (begun > 0) & (ends[np.maximum(begun - 1, 0)] >= entered_ns)
    return met | unseen
