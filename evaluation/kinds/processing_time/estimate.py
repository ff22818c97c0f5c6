"""How long a figure of processing times takes, from rates measured once."""

from __future__ import annotations

import os
from typing import Final

from evaluation.kinds.processing_time.document import ProcessingTime
from loko.scenario import TABLE_1_FRAME_BYTES

FRAMES_PER_CPU_S: Final = 50_000
"""Lone frames on emulated boards in virtual time, tables included; measured on an x86-64 VM."""
_OTHERS_S: Final = 3.0
"""Reading, drawing and writing."""
_LIVE_SETUP_S: Final = 10.0
_LIVE_FRAME_S: Final = 0.003


def estimate_s(figure: ProcessingTime) -> dict[str, float]:
    """Estimated time in seconds by mode, if nothing is there yet."""
    frames = sum(1 for _ in figure.of.tables()) * len(TABLE_1_FRAME_BYTES) * figure.samples
    times = {
        "virtual": _OTHERS_S + frames / (FRAMES_PER_CPU_S * len(os.sched_getaffinity(0))),
        "live": _LIVE_SETUP_S + frames * _LIVE_FRAME_S,
    }
    return {mode: times[mode] for mode in figure.modes if mode in times}
