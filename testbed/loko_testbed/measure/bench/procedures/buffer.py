"""Buffer capacity (section 3.5): the backlog at a burst's first loss at line rate, and the rule behind it.

A switch that holds `packets` frames and `units` of `unit_bytes`, of which a frame needs whole ones, holds
packets + floor(units / ceil(l / unit_bytes)) frames of l bytes. Each measurement rules out the triples that
give another number. The next length is the one about which the remaining triples disagree most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.switch_model.scenario import TABLE_1_ENTRIES, TABLE_1_FRAME_BYTES, ActionType, MatchType
from loko_testbed.instruments.numbered_frame import frame
from loko_testbed.measure.bench.cases import TableCase, flow_mods
from loko_testbed.measure.bench.device import MISSING, BenchDevice, TrainTimes
from loko_testbed.measure.bench.part import (
    Combinations,
    MeasurementPart,
    MeasurementSize,
    Procedure,
    ProfileNumber,
    Samples,
    SampleSet,
    counts,
)
from loko_testbed.simulation.runner import RunError

_BURST_FRAMES: Final = 96
_BURSTS: Final = 5
"""How often a burst is repeated if the bench's own host has disturbed it."""
_BURSTS_OF_SIZE: Final = 25
_BURST_S: Final = 0.06
_LENGTHS: Final = np.arange(64, 1517)
_FIRST_LENGTHS: Final = (64, 1516)
_MOST_PACKETS: Final = 2
_MOST_UNITS: Final = 256
_MOST_UNIT_BYTES: Final = 1600
_COMPARED: Final = 4_000
"""How many of the remaining triples are used to choose the next length."""

SLOWEST: Final = TableCase(entries=TABLE_1_ENTRIES[-1], match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)
"""The paper's table. The slower the switch, the clearer its backlog."""


class NothingLostError(RunError):
    """No burst was long enough to lose a frame."""


@dataclass(frozen=True, slots=True)
class BurstCapacity:
    """How many frames of one length the switch held when it first lost one."""

    frames: int
    disturbed: bool

    @property
    def taken(self) -> SampleSet:
        """The capacity as it is stored."""
        return counts(self.frames, left_out=int(self.disturbed))


def capacity(device: BenchDevice, size: int, *, table: TableCase = SLOWEST) -> BurstCapacity:
    """Send ever longer bursts as fast as the link allows, until one loses a frame.

    The last frame of that burst is one too many; it does not matter what overload does to the others. A loss
    that does not happen again is not the buffer's. Raises `NothingLostError`.
    """
    device.load(flow_mods(table))
    for length in range(1, _BURST_FRAMES + 1):
        passage = _burst(device, size, length)
        if _lost(passage) and _lost(passage := _burst(device, size, length)):
            return _held_at(passage, length - 1, device.wire.time_ns(size))
    raise NothingLostError(
        f"{device.name}: loses nothing of a burst of {_BURST_FRAMES} frames of {size} bytes at line rate:"
        " its buffer cannot be told from its speed"
    )


def _burst(device: BenchDevice, size: int, length: int) -> TrainTimes:
    """Send a burst. Repeat it, up to `_BURSTS` times, while it loses frames and the host stalls."""
    for _ in range(_BURSTS):
        passage = device.send([0] * length, [frame(size, number) for number in range(length)])
        if not (_lost(passage) and passage.disturbed.any()):
            break
    return passage


def _lost(passage: TrainTimes) -> bool:
    return bool((passage.left_ns == MISSING).any())


def capacity_by_one_burst(
    device: BenchDevice, size: int, *, table: TableCase = SLOWEST, frames: int
) -> BurstCapacity:
    """Measure the capacity by one burst so long that it must lose frames, for switches that hold hundreds.

    Only for switches that drop what does not fit and do nothing else about it. Raises `NothingLostError`.
    """
    device.load(flow_mods(table))
    passage = device.send([0] * frames, [frame(size, number) for number in range(frames)])
    lost = np.flatnonzero(passage.left_ns == MISSING)
    if not len(lost):
        raise NothingLostError(f"{device.name}: loses nothing of a burst of {frames} frames of {size} bytes")
    return _held_at(passage, int(lost[0]), device.wire.time_ns(size))


def _held_at(passage: TrainTimes, place: int, arrives_ns: int) -> BurstCapacity:
    """Return what the switch held when this frame of a burst had arrived."""
    left = passage.left_ns[:place]
    gone = np.count_nonzero((left != MISSING) & (left <= passage.entered_ns[place] + arrives_ns))
    return BurstCapacity(place - int(gone), bool(passage.disturbed.any()))


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules that agree with what was measured: each place of the arrays is one rule."""

    packets: NDArray[np.int64]
    units: NDArray[np.int64]
    unit_bytes: NDArray[np.int64]

    def frames(self, length: int) -> NDArray[np.int64]:
        """Return how many frames of this length each rule holds."""
        return self.packets + self.units // -(-length // self.unit_bytes)

    def only(self, kept: NDArray[np.bool_] | NDArray[np.int64]) -> Rules:
        """Return the chosen rules."""
        return Rules(self.packets[kept], self.units[kept], self.unit_bytes[kept])


def rules(frames: Mapping[int, int]) -> Rules:
    """Return the rules that hold this many frames of each of these lengths."""
    rules = Rules(
        *(
            room.ravel()
            for room in np.meshgrid(
                np.arange(_MOST_PACKETS + 1),
                np.arange(1, _MOST_UNITS + 1),
                np.arange(16, _MOST_UNIT_BYTES + 1),
                indexing="ij",
            )
        )
    )
    for length, held in frames.items():
        rules = rules.only(rules.frames(length) == held)
    return rules


def explore(capacity: Callable[[int], int]) -> dict[int, int]:
    """Measure the lengths that tell the rules apart. `capacity` returns how many frames of a length fit."""
    frames = {length: capacity(length) for length in _FIRST_LENGTHS}
    left = rules(frames)
    while (length := _next_length(left)) is not None:
        frames[length] = capacity(length)
        left = left.only(left.frames(length) == frames[length])
    return frames


def _next_length(left: Rules) -> int | None:
    """Return the length after which the fewest rules are expected to remain; None if none rules any out."""
    count = len(left.units)
    if count < 2:
        return None
    some = left.only(np.linspace(0, count - 1, min(count, _COMPARED)).astype(np.int64))
    best, fewest = None, float(len(some.units))
    for length in _LENGTHS:
        sizes = np.bincount(some.frames(int(length)))
        expected = float((sizes.astype(np.float64) ** 2).sum()) / len(some.units)
        if expected < fewest:
            best, fewest = int(length), expected
    return best


def _parts(_: MeasurementSize) -> Iterator[MeasurementPart]:
    expected_s = len(TABLE_1_FRAME_BYTES) * _BURSTS_OF_SIZE * _BURST_S
    yield MeasurementPart(PROCEDURE.key(SLOWEST), _measure, expected_s)
    yield MeasurementPart(PROCEDURE.key("units"), _explore)


def _measure(device: BenchDevice, _: int) -> Combinations:
    return {size: capacity(device, size).taken for size in TABLE_1_FRAME_BYTES}


def _explore(device: BenchDevice, _: int) -> Combinations:
    frames = explore(lambda size: capacity(device, size).frames)
    return {size: counts(held) for size, held in frames.items()}


def capacity_frames(samples: Samples) -> dict[int, int]:
    """Return how many frames of each length the switch holds."""
    return _frames(samples, SLOWEST)


def numbers(samples: Samples) -> dict[str, ProfileNumber]:
    """Return the numbers of the rule on which all remaining rules agree."""
    frames = _frames(samples, "units")
    if not frames:
        return {}
    ruled = rules(frames)
    every = (("packets", ruled.packets), ("units", ruled.units), ("unit_bytes", ruled.unit_bytes))
    return {
        f"buffer.{name}": ProfileNumber(float(values[0]), 0.0, (PROCEDURE.name,), len(frames))
        for name, values in every
        if len(np.unique(values)) == 1
    }


def _frames(samples: Samples, subject: TableCase | str) -> dict[int, int]:
    return {size: int(held[0]) for size, held in samples.get(PROCEDURE.key(subject), {}).items() if len(held)}


PROCEDURE: Final = Procedure(
    name="buffer",
    text="Backlog at the first loss of a burst (section 3.5).",
    parts=_parts,
    unit="frames",
    scale=1,
)
