"""Buffer capacity (section 3.5): the backlog at the first loss of a burst at line rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluation.bench.cases import Table, flow_mods, frame
from evaluation.bench.device import MISSING, Device
from evaluation.runner import RunError
from loko.scenario import TABLE_1_ENTRIES, Action, Match

_BURST_FRAMES: Final = 96

SLOWEST: Final = Table(entries=TABLE_1_ENTRIES[-1], match=Match.FIVE_TUPLE, action=Action.OUTPUT)
"""The paper's table: the slower the switch, the clearer its backlog."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Frames of one length that the switch held when it lost the first one."""

    frames: int
    disturbed: bool


def capacity(
    device: Device, size: int, *, table: Table = SLOWEST, burst_frames: int = _BURST_FRAMES
) -> Capacity:
    """Send a burst as fast as the link allows. Raises `RunError` if nothing is lost."""
    device.load(flow_mods(table))
    burst = [frame(size, number) for number in range(burst_frames)]
    passage = device.send([0] * burst_frames, burst)
    lost = np.flatnonzero(passage.left_ns == MISSING)
    if not len(lost):
        raise RunError(
            f"{device.name}: loses nothing of a burst of {burst_frames} frames of {size} bytes at line rate:"
            " its buffer cannot be told from its speed"
        )
    first = int(lost[0])
    arrived_ns = passage.entered_ns[first] + device.wire.time_ns(size)
    left = passage.left_ns[:first]
    gone = int(np.count_nonzero((left != MISSING) & (left <= arrived_ns)))
    return Capacity(first - gone, bool(passage.disturbed.any()))
