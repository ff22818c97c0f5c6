"""Joins what two taps saw: when each frame that the first one saw reached the second."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loko_testbed.simulation.runner import LOST


def arrivals(
    keys: NDArray[np.int64], arrived: NDArray[np.int64], arrived_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return for each key when it first arrived, or `LOST`; `arrived` are keys in the order of arrival."""
    known, first = np.unique(arrived, return_index=True)
    place = np.searchsorted(known, keys)
    came = place < known.size
    came[came] = known[place[came]] == keys[came]
    times_ns = np.full(keys.size, LOST, dtype=np.int64)
    times_ns[came] = arrived_ns[first[place[came]]]
    return times_ns
