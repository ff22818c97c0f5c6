"""Throughput (section 3.4.2): a binary search for the highest rate without loss, and what lies beyond."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from loko.switch_model.scenario import (
    TABLE_1_ENTRIES,
    TABLE_1_FRAME_BYTES,
    ActionType,
    MatchType,
    PriorityOrder,
    UsedEntry,
)
from loko_testbed.instruments import numbered_frame
from loko_testbed.measure.bench.cases import TableCase, flow_mods, loading_s
from loko_testbed.measure.bench.device import MISSING, BenchDevice
from loko_testbed.measure.bench.part import (
    Combinations,
    Design,
    MeasurementPart,
    MeasurementSize,
    Procedure,
    counts,
)
from loko_testbed.measure.bench.procedures import dp_time
from loko_testbed.simulation.runner import RunError

PAPER_PRECISION_BPS: Final = 650_000
FINE_PRECISION: Final = 0.005
"""Share of the throughput itself, as the paper's resolution is too coarse for rates below it."""

_NS_BITS: Final = 8_000_000_000
_FRAMES: Final = 200
_MAX_FRAMES: Final = 20_000
_FLOOD_NS: Final = 250_000_000
"""Long enough for many ticks and stalls of an operating system."""
_TRIALS: Final = 5
"""How often a trial is repeated if the bench's own host, not the switch, has lost frames."""
_OVERFLOW_FRAMES: Final = 64
"""A surplus of this many frames overflows any of the buffers that this is made for."""
_SEARCH_TRIALS: Final = 8
_TRIAL_S: Final = 1.2
"""Duration of a trial of the binary search: a second of frames, and the wait for lost ones."""
_SIMULATED_SIZES: Final = (*TABLE_1_FRAME_BYTES[:-1], 1470, TABLE_1_FRAME_BYTES[-1])
"""Includes the length at which the paper measured a Banana Pi (section 2.3)."""


@dataclass(frozen=True, slots=True)
class RateTrial:
    """Input and output rate, in bits of frames with FCS per second."""

    input_bps: float
    output_bps: float
    lost: int
    disturbed: int
    """Frames during whose passage the bench's own host lost time."""
    lost_in_stalls: int = 0
    """Frames that were lost because of that."""

    @property
    def tells(self) -> bool:
        """Whether the trial is conclusive: no frame was lost, or the switch itself lost some."""
        return not self.lost or self.lost > self.lost_in_stalls


@dataclass(frozen=True, slots=True)
class Maximum:
    """The highest input rate at which nothing is lost."""

    bps: float
    """To within `FINE_PRECISION`."""
    by_paper_bps: float
    """The result of a search that is only as precise as the paper's."""


def offer(device: BenchDevice, size: int, rate_bps: float, frames: int) -> RateTrial:
    """Offer frames of one length at a constant rate. Return how many come out, and how fast."""
    gap_ns = max(round(size * _NS_BITS / rate_bps), _line_gap_ns(device, size))
    passage = device.send([gap_ns] * frames, numbered_frame.frames(size, frames))
    seen = passage.left_ns[passage.left_ns != MISSING]
    begun = passage.entered_ns[passage.entered_ns != MISSING]
    output_bps = 0.0
    if len(seen) > 1:
        # Count what comes out while frames go in. Queues that empty afterwards do not belong to the rate.
        steady = seen[seen <= begun[-1]]
        if len(steady) > 1:
            output_bps = (len(steady) - 1) * size * _NS_BITS / float(steady[-1] - steady[0])
    return RateTrial(
        # The rate as measured: in real time a generator may be slower than it was told.
        input_bps=(len(begun) - 1) * size * _NS_BITS / float(begun[-1] - begun[0]),
        output_bps=output_bps,
        lost=frames - len(seen),
        disturbed=int(np.count_nonzero(passage.disturbed)),
        lost_in_stalls=int(np.count_nonzero(passage.disturbed & (passage.left_ns == MISSING))),
    )


def _trial(device: BenchDevice, size: int, rate_bps: float, precision_bps: float) -> RateTrial:
    """Repeat a trial, up to `_TRIALS` times, until it is conclusive."""
    for _ in range(_TRIALS):
        carried = offer(device, size, rate_bps, _frames(rate_bps, precision_bps))
        if carried.tells:
            break
    return carried


def maximum_bps(
    device: BenchDevice, table: TableCase, size: int, *, precision_bps: float = PAPER_PRECISION_BPS
) -> float:
    """Search the highest input rate at which nothing is lost, to within `precision_bps`.

    The result is the middle of the last interval, or the highest rate that the bench can offer. Raises
    `RunError` if even the lowest rate loses frames.
    """
    device.load(flow_mods(table))
    line_bps = size * _NS_BITS / _line_gap_ns(device, size)
    most = _trial(device, size, line_bps, precision_bps)
    if not most.lost:
        return most.input_bps
    low_bps, high_bps = 0.0, min(most.input_bps, line_bps)
    while high_bps - low_bps > precision_bps:
        middle_bps = (low_bps + high_bps) / 2
        if _trial(device, size, middle_bps, precision_bps).lost:
            high_bps = middle_bps
        else:
            low_bps = middle_bps
    if low_bps == 0.0 and offer(device, size, high_bps / 16, _FRAMES).lost:
        raise RunError(f"{device.name}: loses frames of {size} bytes even at {high_bps / 16:.0f} bit/s")
    return (low_bps + high_bps) / 2


def finer_maximum(device: BenchDevice, table: TableCase, size: int) -> Maximum:
    """Search like `maximum_bps`, but to within `FINE_PRECISION` of the result, however low that is.

    The paper's 650 kbit/s are more than twice its lowest throughput. Early trials are short, as they only
    tell rates apart that differ much. The lower end of the last interval is tried again with a long one.
    """
    device.load(flow_mods(table))
    line_bps = size * _NS_BITS / _line_gap_ns(device, size)
    if not any(offer(device, size, line_bps, frames).lost for frames in (_FRAMES, _MAX_FRAMES)):
        return Maximum(line_bps, line_bps)
    low_bps, high_bps = 0.0, line_bps
    while True:
        while high_bps - low_bps > FINE_PRECISION * high_bps:
            middle_bps = (low_bps + high_bps) / 2
            if offer(device, size, middle_bps, _frames(middle_bps, high_bps - low_bps)).lost:
                high_bps = middle_bps
            else:
                low_bps = middle_bps
        if not offer(device, size, low_bps, _MAX_FRAMES).lost:
            found_bps = (low_bps + high_bps) / 2
            return Maximum(found_bps, _by_steps(found_bps, line_bps, PAPER_PRECISION_BPS))
        low_bps, high_bps = (1 - 8 * FINE_PRECISION) * low_bps, low_bps


def _by_steps(bps: float, line_bps: float, precision_bps: float) -> float:
    """Return where a binary search between 0 and the line rate ends if it stops at this precision."""
    width_bps = line_bps
    while width_bps > precision_bps:
        width_bps /= 2
    return (bps // width_bps + 0.5) * width_bps


def flooded(device: BenchDevice, table: TableCase, size: int) -> RateTrial:
    """Offer frames at line rate: what comes out is all that the switch can forward."""
    device.load(flow_mods(table))
    gap_ns = _line_gap_ns(device, size)
    return offer(device, size, size * _NS_BITS / gap_ns, max(_MAX_FRAMES, _FLOOD_NS // gap_ns))


def sweep(device: BenchDevice, table: TableCase, size: int, rates_bps: Sequence[float]) -> list[RateTrial]:
    """Measure output rate over input rate (Fig. 12a)."""
    device.load(flow_mods(table))
    return [offer(device, size, rate, _MAX_FRAMES // 4) for rate in rates_bps]


def _frames(rate_bps: float, precision_bps: float) -> int:
    """Return how many frames overflow the buffers if the rate exceeds capacity by half the precision."""
    wanted = _OVERFLOW_FRAMES * 2 * rate_bps / precision_bps
    return int(min(max(wanted, _FRAMES), _MAX_FRAMES))


def _line_gap_ns(device: BenchDevice, size: int) -> int:
    wire = device.wire
    return wire.time_ns(wire.preamble_bytes + size + wire.gap_bytes)


def throughput_tables() -> Iterator[TableCase]:
    """Yield the tables of section 3.4.2."""
    orders = (
        (PriorityOrder.INCREASING, UsedEntry.LAST),
        (PriorityOrder.DECREASING, UsedEntry.FIRST),
    )
    for match in (MatchType.FIVE_TUPLE, MatchType.PORT):
        for priorities, used in orders:
            for entries in TABLE_1_ENTRIES:
                yield TableCase(
                    entries=entries,
                    match=match,
                    action=ActionType.OUTPUT,
                    priorities=priorities,
                    used_entry=used,
                )


def chosen_sizes(design: Design, table: TableCase) -> tuple[int, ...]:
    """Return the frame lengths that a design measures on this table of section 3.4.2; perhaps none."""
    if design is Design.FULL:
        return TABLE_1_FRAME_BYTES
    usual = table.match is MatchType.FIVE_TUPLE and table.used_entry is UsedEntry.LAST
    ends = (TABLE_1_ENTRIES[0], TABLE_1_ENTRIES[-1])
    return (*dp_time.SIZES[:2], dp_time.SIZES[-1]) if usual and table.entries in ends else ()


def part_of(table: TableCase, sizes: tuple[int, ...]) -> MeasurementPart:
    """Return the part that measures the maxima of a table."""
    expected_s = loading_s(table.entries) + len(sizes) * _SEARCH_TRIALS * _TRIAL_S
    return MeasurementPart(PROCEDURE.key(table), partial(_maxima, table, sizes), expected_s)


def _maxima(table: TableCase, sizes: tuple[int, ...], device: BenchDevice, _: int) -> Combinations:
    return {size: counts(maximum_bps(device, table, size)) for size in sizes}


def _parts(extent: MeasurementSize) -> Iterator[MeasurementPart]:
    for table in throughput_tables():
        if sizes := chosen_sizes(extent.design, table):
            yield part_of(table, sizes)


def forwarding_rate(sizes: tuple[int, ...]) -> MeasurementPart:
    """Return the part that floods a switch whose losses say more about its host than about itself."""
    table = TableCase(entries=TABLE_1_ENTRIES[0], match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)

    def measure(device: BenchDevice, _: int) -> Combinations:
        return {size: counts(flooded(device, table, size).output_bps) for size in sizes}

    return MeasurementPart(PROCEDURE.key("flooded"), measure)


def _simulated_parts(_: MeasurementSize) -> Iterator[MeasurementPart]:
    yield forwarding_rate(_SIMULATED_SIZES)


PROCEDURE: Final = Procedure(
    name="throughput",
    text="Highest rate without loss, by binary search (section 3.4).",
    parts=_parts,
    simulated_parts=_simulated_parts,
    unit="Mbit/s",
    scale=1e6,
)
