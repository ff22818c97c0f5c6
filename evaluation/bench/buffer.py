"""Buffer capacity (section 3.5): the backlog at the first loss of a burst at line rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluation.bench.cases import Table, flow_mods
from evaluation.bench.device import MISSING, Device, Passage
from evaluation.instruments.numbered_frame import frame
from evaluation.runner import RunError
from loko.scenario import TABLE_1_ENTRIES, Action, Match

_BURST_FRAMES: Final = 96
_BURSTS: Final = 5
"""How often a burst is repeated that the bench's own host has disturbed."""

SLOWEST: Final = Table(entries=TABLE_1_ENTRIES[-1], match=Match.FIVE_TUPLE, action=Action.OUTPUT)
"""The paper's table: the slower the switch, the clearer its backlog."""


class NothingLostError(RunError):
    """No burst was long enough."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Frames of one length that the switch held when it lost the first one."""

    frames: int
    disturbed: bool


def capacity(device: Device, size: int, *, table: Table = SLOWEST) -> Capacity:
    """Send longer and longer bursts as fast as the link allows, until a frame of one is lost.

    The last frame of the first such burst is one too many; what overload does to the others does not matter
    then. A loss that does not happen again is none of the buffer's. Raises `NothingLostError`.
    """
    device.load(flow_mods(table))
    for length in range(1, _BURST_FRAMES + 1):
        passage = _burst(device, size, length)
        if _lost(passage) and _lost(passage := _burst(device, size, length)):
            arrived_ns = passage.entered_ns[-1] + device.wire.time_ns(size)
            left = passage.left_ns[:-1]
            gone = int(np.count_nonzero((left != MISSING) & (left <= arrived_ns)))
            return Capacity(length - 1 - gone, bool(passage.disturbed.any()))
    raise NothingLostError(
        f"{device.name}: loses nothing of a burst of {_BURST_FRAMES} frames of {size} bytes at line rate:"
        " its buffer cannot be told from its speed"
    )


def _burst(device: Device, size: int, length: int) -> Passage:
    """A burst of which no frame is lost since the bench's own host lost time, if that allows one."""
    for _ in range(_BURSTS):
        passage = device.send([0] * length, [frame(size, number) for number in range(length)])
        if not (_lost(passage) and passage.disturbed.any()):
            break
    return passage


def _lost(passage: Passage) -> bool:
    return bool((passage.left_ns == MISSING).any())


def capacity_by_one_burst(device: Device, size: int, *, table: Table = SLOWEST, frames: int) -> Capacity:
    """As `capacity`, from one burst so long that it must lose frames: for switches that hold hundreds.

    Only for switches that drop what finds no room and do nothing else about it. Raises
    `NothingLostError`.
    """
    device.load(flow_mods(table))
    passage = device.send([0] * frames, [frame(size, number) for number in range(frames)])
    lost = np.flatnonzero(passage.left_ns == MISSING)
    if not len(lost):
        raise NothingLostError(f"{device.name}: loses nothing of a burst of {frames} frames of {size} bytes")
    first = int(lost[0])
    arrived_ns = passage.entered_ns[first] + device.wire.time_ns(size)
    left = passage.left_ns[:first]
    gone = int(np.count_nonzero((left != MISSING) & (left <= arrived_ns)))
    return Capacity(first - gone, bool(passage.disturbed.any()))
