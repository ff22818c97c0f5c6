"""A procedure in a single file: how many frames of a burst come out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from loko.switch_model.scenario import ActionType, MatchType
from loko_testbed.instruments.numbered_frame import frame
from loko_testbed.measure.bench.cases import TableCase, flow_mods, loading_s
from loko_testbed.measure.bench.device import MISSING, BenchDevice
from loko_testbed.measure.bench.part import Combinations, MeasurementPart, MeasurementSize, Procedure, counts

ENTRIES: Final = (1, 128)
SIZES: Final = (64, 1516)
BURST_FRAMES: Final = 60


def _parts(_: MeasurementSize) -> Iterator[MeasurementPart]:
    for entries in ENTRIES:
        table = TableCase(entries=entries, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)
        yield MeasurementPart(PROCEDURE.key(table), partial(_measured, table), loading_s(entries))


def _measured(table: TableCase, device: BenchDevice, _: int) -> Combinations:
    device.load(flow_mods(table))
    return {size: counts(_survivors(device, size)) for size in SIZES}


def _survivors(device: BenchDevice, size: int) -> int:
    passage = device.send([0] * BURST_FRAMES, [frame(size, number) for number in range(BURST_FRAMES)])
    return int(np.count_nonzero(passage.left_ns != MISSING))


PROCEDURE: Final = Procedure(
    name="survivors",
    text="How many frames of a burst come out.",
    parts=_parts,
    unit="frames",
    scale=1,
)
