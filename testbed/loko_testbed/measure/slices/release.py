"""Releases of frames through a sliced port, and the times of each frame; in virtual time and live."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loko_testbed.simulation.traffic import Instants


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Frames of one length that a host sends through one queue."""

    queue: int
    host: str
    frame_bytes: int
    instants_ns: Instants
    """Frames released at the same instant leave at the rate of the host's link."""


@dataclass(frozen=True, slots=True)
class PacketTimes:
    """All packets of one sender in order; times in ns."""

    sent_ns: NDArray[np.int64]
    received_ns: NDArray[np.int64]
    """`LOST` for packets that never arrived."""
