"""The rule behind the buffer (section 3.5): frames in work, units, bytes of a unit, from bursts over sizes.

A switch that holds `packets` frames and `units` of `unit_bytes`, of which a frame needs whole ones, holds
packets + floor(units / ceil(l / unit_bytes)) frames of l bytes. Each measurement rules out the triples that
say otherwise; the next length is the one about which those that are left disagree most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_LENGTHS: Final = np.arange(64, 1517)
_FIRST_LENGTHS: Final = (64, 1516)
_MOST_PACKETS: Final = 2
_MOST_UNITS: Final = 256
_MOST_UNIT_BYTES: Final = 1600
_COMPARED: Final = 4_000
"""So many of the triples that are left choose the next length."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Every rule that agrees with what was measured, one in each place."""

    packets: NDArray[np.int64]
    units: NDArray[np.int64]
    unit_bytes: NDArray[np.int64]

    def frames(self, length: int) -> NDArray[np.int64]:
        """How many frames of this length each rule holds."""
        return self.packets + self.units // -(-length // self.unit_bytes)

    def only(self, kept: NDArray[np.bool_] | NDArray[np.int64]) -> Rules:
        """Some of them."""
        return Rules(self.packets[kept], self.units[kept], self.unit_bytes[kept])


def rules(frames: Mapping[int, int]) -> Rules:
    """The rules that hold so many frames of each of these lengths."""
    found = Rules(
        *(
            one.ravel()
            for one in np.meshgrid(
                np.arange(_MOST_PACKETS + 1),
                np.arange(1, _MOST_UNITS + 1),
                np.arange(16, _MOST_UNIT_BYTES + 1),
                indexing="ij",
            )
        )
    )
    for length, held in frames.items():
        found = found.only(found.frames(length) == held)
    return found


def explore(capacity: Callable[[int], int]) -> dict[int, int]:
    """Measure the lengths that tell the rules apart. `capacity` gives how many frames of a length fit."""
    frames = {length: capacity(length) for length in _FIRST_LENGTHS}
    left = rules(frames)
    while (length := _next_length(left)) is not None:
        frames[length] = capacity(length)
        left = left.only(left.frames(length) == frames[length])
    return frames


def _next_length(left: Rules) -> int | None:
    """The length whose measurement leaves the fewest rules to be expected; None if none tells them apart."""
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
