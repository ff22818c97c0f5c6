"""A part of the campaign for switches that are not of Loko's kind: enough to say in what they differ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.bench import buffer, throughput
from evaluation.bench.campaign import Measured, Part, parts
from evaluation.bench.cases import Table, table_name
from evaluation.bench.device import Device
from loko.scenario import TABLE_1_ENTRIES, Action, Match, Priorities, Scenario, UsedEntry

SAMPLES: Final = 1000
"""So many that the slowest in a thousand is one of them."""
SIZES: Final = (64, 306, 1516)
ENTRIES: Final = (TABLE_1_ENTRIES[0], TABLE_1_ENTRIES[-1])
_BURST_FRAMES: Final = 4000
_NOTHING: Final = np.array([], dtype=np.int64)


def reduced_parts(*, samples: int = SAMPLES) -> list[Part]:
    """Processing time for all sizes of table and three of frames; throughput and buffer at the extremes."""
    scenario = Scenario(
        match=Match.FIVE_TUPLE,
        action=Action.OUTPUT,
        priorities=Priorities.INCREASING,
        used_entry=UsedEntry.LAST,
        packet_sizes_bytes=SIZES,
    )
    return [*parts(("dp-time",), samples=samples, scenario=scenario), *_throughput(), _buffer()]


def _throughput() -> Iterator[Part]:
    for entries in ENTRIES:
        table = Table(entries=entries, match=Match.FIVE_TUPLE, action=Action.OUTPUT)

        def measure(device: Device, _seed: int, table: Table = table) -> Measured:
            return {size: (_one(throughput.maximum_bps(device, table, size)), 0) for size in SIZES}

        yield Part("throughput", table_name(table), measure)


def _buffer() -> Part:
    def measure(device: Device, _seed: int) -> Measured:
        return {size: _held(device, size) for size in SIZES}

    return Part("buffer", table_name(buffer.SLOWEST), measure)


def _held(device: Device, size: int) -> tuple[NDArray[np.int64], int]:
    """What the switch holds; nothing if no burst loses a frame."""
    for way in (buffer.capacity, partial(buffer.capacity_by_one_burst, frames=_BURST_FRAMES)):
        with suppress(buffer.NothingLostError):
            one = way(device, size)
            return _one(one.frames), int(one.disturbed)
    return _NOTHING, 0


def _one(value: float) -> NDArray[np.int64]:
    return np.array([round(value)], dtype=np.int64)
