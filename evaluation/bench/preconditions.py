"""Is a switch of the kind that Loko's model is about? A campaign's numbers against what the model presumes.

Loko gives hard bounds since the processing time of a case hardly varies (section 3.3.3), and since one slow
CPU forwards every frame and handles every entry: processing time grows with the table, and capacity follows
from processing time (equations 6 and 7, within 6 %, section 3.4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.bench.equations import Wire, throughput_bps
from evaluation.bench.store import Samples
from evaluation.bench.throughput import PAPER_PRECISION_BPS
from loko.scenario import UsedEntry

SPREAD: Final = 1.25
"""p99.9 over p50 up to which a switch counts as deterministic; the worst case is then near the usual one."""
TAIL: Final = 2.0
"""Slowest frame over p50 up to which the rest is what a main loop and its timers do now and then."""
GROWTH: Final = 1.5
"""Time at the longest table over that at the shortest, from which on entries count as looked at."""
EQUATION_6: Final = 0.06
"""Error of equation 6 that the paper found (section 3.4.2)."""

_US: Final = 1000
_MBIT: Final = 1e6
_P50, _P999 = 50.0, 99.9

Case = tuple[int, str, int]
"""Entries, the rest of the table's name, length of frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """Something that Loko presumes, and what was measured."""

    name: str
    presumed: str
    """What the model needs, and what the paper found of the Zodiac FX."""
    measured: str
    holds: bool | None
    """None if the samples do not tell."""


def preconditions(samples: Samples, wire: Wire) -> list[Precondition]:
    """All of them, from the samples of dp-time, throughput and buffer."""
    times = {case: value for case, value in _cases(samples, "dp-time").items() if len(value)}
    rates = {case: float(value[0]) for case, value in _cases(samples, "throughput").items() if len(value)}
    return [
        _determinism(times),
        _tail(times),
        _shared_cpu(times),
        _capacity_follows(times, rates, wire),
        _buffer(_cases(samples, "buffer")),
    ]


def _determinism(times: Mapping[Case, NDArray[np.int64]]) -> Precondition:
    presumed = f"p99.9 at most {SPREAD:g} times p50 in every case: one worst case stands for all frames"
    if not times:
        return _unknown("determinism: spread", presumed)
    spreads = {case: _spread(value) for case, value in times.items()}
    worst = max(spreads, key=spreads.__getitem__)
    p50, p999 = np.percentile(times[worst], (_P50, _P999)) / _US
    values = sorted(spreads.values())
    return Precondition(
        name="determinism: spread",
        presumed=presumed,
        measured=f"p99.9/p50 from {values[0]:.2f} to {values[-1]:.2f}; worst {_said(worst)}:"
        f" p50 {p50:.1f} us, p99.9 {p999:.1f} us",
        holds=values[-1] <= SPREAD,
    )


def _tail(times: Mapping[Case, NDArray[np.int64]]) -> Precondition:
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
        measured=f"slowest frame {times[worst].max() / _US:.1f} us, {longest[worst]:.1f} times p50"
        f" ({_said(worst)}); {beyond} of {frames} frames ({beyond / frames:.2%}) beyond {TAIL:g} times p50",
        holds=longest[worst] <= TAIL,
    )


def _shared_cpu(times: Mapping[Case, NDArray[np.int64]]) -> Precondition:
    name = "one slow CPU: time grows with the table"
    presumed = (
        f"p50 at the longest table at least {GROWTH:g} times that at the shortest: every entry is looked at"
        " (Fig. 9: 50 us to 2.1 ms)"
    )
    found = _extremes(times, lambda value: float(np.percentile(value, _P50)))
    if not found:
        return _unknown(name, presumed)
    (short, short_ns), (long, long_ns) = found
    return Precondition(
        name=name,
        presumed=presumed,
        measured=f"{long_ns / short_ns:.2f} times: {short_ns / _US:.1f} us with {short[0]} entries,"
        f" {long_ns / _US:.1f} us with {long[0]} ({long[2]} bytes);"
        f" {(long_ns - short_ns) / (long[0] - short[0]):.0f} ns an entry",
        holds=long_ns / short_ns >= GROWTH,
    )


def _capacity_follows(
    times: Mapping[Case, NDArray[np.int64]], rates: Mapping[Case, float], wire: Wire
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
        measured=f"{rates[worst] / _MBIT:.2f} Mbit/s where equation 6 says {computed[worst] / _MBIT:.2f}:"
        f" {rates[worst] / computed[worst] - 1:+.0%} ({_said(worst)})",
        holds=beyond[worst] <= EQUATION_6,
    )


def _buffer(frames: Mapping[Case, NDArray[np.int64]]) -> Precondition:
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
    times: Mapping[Case, NDArray[np.int64]], middle: Callable[[NDArray[np.int64]], float]
) -> tuple[tuple[Case, float], tuple[Case, float]] | None:
    """Of cases that differ in the number of entries only, the shortest and longest table that differ least.

    Only tables whose last entry is used: the paper's switch, too, looks at no other if the first one decides.
    """
    pairs = []
    for entries, rest, size in times:
        if not rest.endswith(UsedEntry.LAST.value):
            continue
        tables = sorted(n for n, other, length in times if (other, length) == (rest, size))
        if entries == tables[0] and len(tables) > 1:
            short, long = (entries, rest, size), (tables[-1], rest, size)
            pairs.append(((short, middle(times[short])), (long, middle(times[long]))))
    return min(pairs, key=lambda pair: pair[1][1] / pair[0][1], default=None)


def _cases(samples: Samples, procedure: str) -> dict[Case, NDArray[np.int64]]:
    """The samples of a procedure whose parts are named after tables."""
    found = {}
    for part, sizes in samples.items():
        kind, _, table = part.partition("/")
        entries, _, rest = table.partition("/")
        if kind == procedure and entries.isdigit():
            found.update({(int(entries), rest, size): value for size, value in sizes.items()})
    return found


def _said(case: Case) -> str:
    entries, rest, size = case
    return f"{entries} entries, {rest.partition('/')[0]}, {size} bytes"
