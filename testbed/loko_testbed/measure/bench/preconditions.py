"""Preconditions of Loko's model, checked on a switch against a campaign's numbers.

Loko gives hard bounds because the processing time of a case hardly varies (section 3.3.3), and because one
slow CPU forwards every frame and handles every entry: processing time grows with the table, and capacity
follows from processing time (equations 6 and 7, within 6 %, section 3.4.2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.switch_model.scenario import (
    TABLE_1_ENTRIES,
    ActionType,
    MatchType,
    PriorityOrder,
    Scenario,
    UsedEntry,
)
from loko.units import BPS_PER_MBPS, NS_PER_US
from loko_testbed.measure.bench.campaign import parts
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.equations import LinkTiming, throughput_bps
from loko_testbed.measure.bench.part import (
    NOTHING,
    Combinations,
    MeasurementPart,
    Procedure,
    Samples,
    SampleSet,
)
from loko_testbed.measure.bench.procedures import buffer, dp_time, throughput
from loko_testbed.measure.bench.procedures.throughput import PAPER_PRECISION_BPS

SPREAD: Final = 1.25
"""Largest p99.9 over p50 of a deterministic switch, whose worst case is then near the usual one."""
TAIL: Final = 2.0
"""Largest time of a frame over p50 that occasional work of a main loop and its timers explains."""
GROWTH: Final = 1.5
"""Smallest ratio of times, longest table to shortest, at which entries count as examined."""
EQUATION_6: Final = 0.06
"""Error of equation 6 that the paper found (section 3.4.2)."""

SAMPLES: Final = 1000
"""Enough samples to contain the slowest in a thousand."""
SIZES: Final = (64, 306, 1516)

_BURST_FRAMES: Final = 4000

_P50, _P999 = 50.0, 99.9

MeasuredTable = tuple[TableCase, int, int]
"""A flow table, the turn in which it was measured, and the frame length."""


def reduced_parts(*, samples: int = SAMPLES) -> list[MeasurementPart]:
    """Return parts that suffice for any switch: all table sizes, throughput and buffer at the extremes."""
    scenario = Scenario(
        match=MatchType.FIVE_TUPLE,
        action=ActionType.OUTPUT,
        priorities=PriorityOrder.INCREASING,
        used_entry=UsedEntry.LAST,
        packet_sizes_bytes=SIZES,
    )
    extremes = [
        TableCase(entries=entries, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)
        for entries in (TABLE_1_ENTRIES[0], TABLE_1_ENTRIES[-1])
    ]
    return [
        *parts((dp_time.PROCEDURE,), samples=samples, scenario=scenario),
        *(throughput.part_of(table, SIZES) for table in extremes),
        MeasurementPart(buffer.PROCEDURE.key(buffer.SLOWEST), _buffer_of_any),
    ]


def _buffer_of_any(device: BenchDevice, _: int) -> Combinations:
    return {size: _held(device, size) for size in SIZES}


def _held(device: BenchDevice, size: int) -> SampleSet:
    """Return how many frames the switch holds, or no samples if no burst loses a frame."""
    for way in (buffer.capacity, partial(buffer.capacity_by_one_burst, frames=_BURST_FRAMES)):
        with suppress(buffer.NothingLostError):
            return way(device, size).taken
    return NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """Something that Loko's model presumes, and what was measured."""

    name: str
    presumed: str
    """The model's requirement, and the paper's finding on the Zodiac FX."""
    measured: str
    holds: bool | None
    """None if the samples do not tell."""


def preconditions(samples: Samples, wire: LinkTiming) -> list[Precondition]:
    """Check all preconditions against the samples of dp-time, throughput and buffer."""
    times = {case: value for case, value in _cases(samples, dp_time.PROCEDURE).items() if len(value)}
    rates = {
        case: float(value[0]) for case, value in _cases(samples, throughput.PROCEDURE).items() if len(value)
    }
    return [
        _determinism(times),
        _tail(times),
        _shared_cpu(times),
        _capacity_follows(times, rates, wire),
        _buffer(_cases(samples, buffer.PROCEDURE)),
    ]


def _determinism(times: Mapping[MeasuredTable, NDArray[np.int64]]) -> Precondition:
    presumed = f"p99.9 at most {SPREAD:g} times p50 in every case: one worst case stands for all frames"
    if not times:
        return _unknown("determinism: spread", presumed)
    spreads = {case: _spread(value) for case, value in times.items()}
    worst = max(spreads, key=spreads.__getitem__)
    p50, p999 = np.percentile(times[worst], (_P50, _P999)) / NS_PER_US
    values = sorted(spreads.values())
    return Precondition(
        name="determinism: spread",
        presumed=presumed,
        measured=f"p99.9/p50 from {values[0]:.2f} to {values[-1]:.2f}; worst {_describe(worst)}:"
        f" p50 {p50:.1f} us, p99.9 {p999:.1f} us",
        holds=values[-1] <= SPREAD,
    )


def _tail(times: Mapping[MeasuredTable, NDArray[np.int64]]) -> Precondition:
    presumed = f"no frame takes more than {TAIL:g} times p50: the worst case is one that was seen"
    if not times:
        return _unknown("determinism: tail", presumed)
    longest = {case: float(value.max() / np.percentile(value, _P50)) for case, value in times.items()}
    worst = max(longest, key=longest.__getitem__)
    beyond = sum(int(np.count_nonzero(v > TAIL * np.percentile(v, _P50))) for v in times.values())
    frames = sum(len(value) for value in times.values())
    return Precondition(
        name="determinism: tail",
        presumed=presumed,
        measured=f"slowest frame {times[worst].max() / NS_PER_US:.1f} us, {longest[worst]:.1f} times p50"
        f" ({_describe(worst)}); {beyond} of {frames} frames ({beyond / frames:.2%})"
        f" beyond {TAIL:g} times p50",
        holds=longest[worst] <= TAIL,
    )


def _shared_cpu(times: Mapping[MeasuredTable, NDArray[np.int64]]) -> Precondition:
    name = "one slow CPU: time grows with the table"
    presumed = (
        f"p50 at the longest table at least {GROWTH:g} times that at the shortest: every entry is looked at"
        " (Fig. 9: 50 us to 2.1 ms)"
    )
    extremes = _extremes(times, lambda value: float(np.percentile(value, _P50)))
    if not extremes:
        return _unknown(name, presumed)
    (short, short_ns), (long, long_ns) = extremes
    return Precondition(
        name=name,
        presumed=presumed,
        measured=f"{long_ns / short_ns:.2f} times:"
        f" {short_ns / NS_PER_US:.1f} us with {short[0].entries} entries,"
        f" {long_ns / NS_PER_US:.1f} us with {long[0].entries} ({long[2]} bytes);"
        f" {(long_ns - short_ns) / (long[0].entries - short[0].entries):.0f} ns an entry",
        holds=long_ns / short_ns >= GROWTH,
    )


def _capacity_follows(
    times: Mapping[MeasuredTable, NDArray[np.int64]], rates: Mapping[MeasuredTable, float], wire: LinkTiming
) -> Precondition:
    name = "one slow CPU: capacity follows from processing time"
    presumed = (
        f"throughput within {EQUATION_6:.0%} of equation 6 in every case, and the precision of the search"
    )
    computed = {
        case: throughput_bps(case[2], float(np.percentile(times[case], _P50)), wire)
        for case in rates
        if case in times
    }
    if not computed:
        return _unknown(name, presumed)
    beyond = {
        case: max(abs(rates[case] - rate) - PAPER_PRECISION_BPS / 2, 0.0) / rate
        for case, rate in computed.items()
    }
    worst = max(beyond, key=beyond.__getitem__)
    return Precondition(
        name=name,
        presumed=presumed,
        measured=f"{rates[worst] / BPS_PER_MBPS:.2f} Mbit/s"
        f" where equation 6 says {computed[worst] / BPS_PER_MBPS:.2f}:"
        f" {rates[worst] / computed[worst] - 1:+.0%} ({_describe(worst)})",
        holds=beyond[worst] <= EQUATION_6,
    )


def _buffer(frames: Mapping[MeasuredTable, NDArray[np.int64]]) -> Precondition:
    name = "a buffer with a known size"
    presumed = "the first loss of a burst shows how many frames the switch holds (section 3.5)"
    if not frames:
        return _unknown(name, presumed)
    held = {case[2]: int(value[0]) if len(value) else None for case, value in frames.items()}
    said = (f"{size} bytes: {'no loss' if n is None else f'{n} frames'}" for size, n in sorted(held.items()))
    return Precondition(
        name=name, presumed=presumed, measured="; ".join(said), holds=None not in held.values()
    )


def _unknown(name: str, presumed: str) -> Precondition:
    return Precondition(name=name, presumed=presumed, measured="not measured", holds=None)


def _spread(times_ns: NDArray[np.int64]) -> float:
    p50, p999 = np.percentile(times_ns, (_P50, _P999))
    return float(p999 / p50)


def _extremes(
    times: Mapping[MeasuredTable, NDArray[np.int64]], middle: Callable[[NDArray[np.int64]], float]
) -> tuple[tuple[MeasuredTable, float], tuple[MeasuredTable, float]] | None:
    """Find, among cases that differ only in the number of entries, the shortest and the longest table.

    Of all such pairs, the one whose times differ least. Only tables whose last entry is used count: the
    paper's switch, too, looks at no other entry if the first one matches.
    """
    alike: defaultdict[MeasuredTable, list[MeasuredTable]] = defaultdict(list)
    for case in times:
        table, turn, size = case
        if table.used_entry is UsedEntry.LAST:
            alike[replace(table, entries=0), turn, size].append(case)
    pairs = []
    for cases in alike.values():
        short, long = (pick(cases, key=lambda case: case[0].entries) for pick in (min, max))
        if short != long:
            pairs.append(((short, middle(times[short])), (long, middle(times[long]))))
    return min(pairs, key=lambda pair: pair[1][1] / pair[0][1], default=None)


def _cases(samples: Samples, procedure: Procedure) -> dict[MeasuredTable, NDArray[np.int64]]:
    """Return the samples that a procedure took on flow tables."""
    cases = {}
    for key, by_size in procedure.among(samples).items():
        match key.subject:
            case (TableCase() as table,):
                cases.update({(table, key.turn, size): value for size, value in by_size.items()})
    return cases


def _describe(case: MeasuredTable) -> str:
    table, _, size = case
    return f"{table.entries} entries, {table.match.value}, {size} bytes"
