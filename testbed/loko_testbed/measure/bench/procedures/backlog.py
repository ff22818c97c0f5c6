"""Other work of the CPU: while frames wait for it, any work between two of them shows as a longer gap.

Not in the paper, which only says that timers and housekeeping remain (section 3.1). Relies on the paper's
assumption that one CPU serves all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.units import PS_PER_NS
from loko_testbed.instruments.numbered_frame import frame
from loko_testbed.measure.bench.cases import flow_mods
from loko_testbed.measure.bench.device import MISSING, BenchDevice
from loko_testbed.measure.bench.part import (
    Combinations,
    MeasurementPart,
    MeasurementSize,
    Procedure,
    ProfileNumber,
    Samples,
    SampleSet,
)
from loko_testbed.measure.bench.procedures.buffer import SLOWEST
from loko_testbed.simulation.runner import RunError

SIZE: Final = 64
"""The shortest frames, of which the switch holds the most."""
_PROBE_FRAMES: Final = 8
_AHEAD: Final = 5
"""Frames that wait at the start. Each interruption adds to them, and all must fit into the buffer."""
_DURATION_NS: Final = 2_200_000_000
"""Shorter than the 2.5 s after which a quiet Zodiac FX asks for a sign of life, which costs time as well."""
_MAX_FRAMES: Final = 20_000
_QUIET_NS: Final = 500
"""A gap this much longer than normal is an interruption, unless noise is larger."""
_NOISES: Final = 9
_MAD_TO_SIGMA: Final = 1.4826
_SAME_COST: Final = 0.03
_TRAINS: Final = 3


def measure(device: BenchDevice) -> SampleSet:
    """Keep the switch busy without overflowing it. Return all entry instants, then all exit instants.

    Raises `RunError` if the switch does not let the probes pass.
    """
    device.load(flow_mods(SLOWEST))
    spacing_ns = period_ns(device)
    length = min(int(_DURATION_NS / spacing_ns), _MAX_FRAMES)
    gaps = [0] * _AHEAD + [spacing_ns] * (length - _AHEAD)
    passage = device.send(gaps, [frame(SIZE, number) for number in range(length)])
    left = np.where(passage.disturbed, MISSING, passage.left_ns)
    return SampleSet(np.concatenate([passage.entered_ns, left]))


def period_ns(device: BenchDevice) -> int:
    """Return the time between two frames that leave while more wait for the CPU. Raises `RunError`."""
    probes = device.send([0] * _PROBE_FRAMES, [frame(SIZE, number) for number in range(_PROBE_FRAMES)])
    left = probes.left_ns[probes.left_ns != MISSING]
    if len(left) < _PROBE_FRAMES // 2:
        raise RunError(f"{device.name}: a burst of {_PROBE_FRAMES} frames of {SIZE} bytes did not come out")
    return max(round(float(np.median(np.diff(left)))), 1)


@dataclass(frozen=True, slots=True)
class Interruption:
    """Work of the CPU that belongs to no frame."""

    at_ns: int
    """When the last frame before it left."""
    cost_ns: float


@dataclass(frozen=True, slots=True)
class BusyTrain:
    """A train through a CPU that was never idle."""

    period_ns: float
    """Time between two frames, which is p_CPU of equation 6."""
    error_ns: float
    gaps: int
    begin_ns: int
    end_ns: int
    interruptions: tuple[Interruption, ...]


def busy(samples: NDArray[np.int64]) -> BusyTrain | None:
    """Evaluate the samples of `measure`. None if the frames did not wait for each other."""
    entered, left = samples.reshape(2, -1)
    seen = (left[:-1] != MISSING) & (left[1:] != MISSING)
    gaps_ns = np.diff(left)
    if not seen.any():
        return None
    # The next frame had come well before this one left, so the CPU did not wait for it.
    waited = seen & (entered[1:] < left[:-1] - np.median(gaps_ns[seen]) / 2)
    chosen = gaps_ns[waited]
    if len(chosen) < _PROBE_FRAMES:
        return None
    middle = float(np.median(chosen))
    sigma = _MAD_TO_SIGMA * float(np.median(np.abs(chosen - middle)))
    limit_ns = max(_QUIET_NS, _NOISES * sigma)
    normal = chosen[np.abs(chosen - middle) <= limit_ns]
    period_ns = float(normal.mean())
    places = np.flatnonzero(waited & (gaps_ns > middle + limit_ns))
    return BusyTrain(
        period_ns,
        max(float(normal.std()), 0.5) / float(np.sqrt(len(normal))),
        len(normal),
        int(left[left != MISSING][0]),
        int(left[left != MISSING][-1]),
        tuple(Interruption(int(left[place]), float(gaps_ns[place] - period_ns)) for place in places),
    )


@dataclass(frozen=True, slots=True)
class PeriodicWork:
    """Work that recurs with a period and always takes the same time."""

    period_ns: float
    period_error_ns: float
    cost_ns: float
    cost_error_ns: float
    runs: int


def timers(trains: Sequence[BusyTrain]) -> PeriodicWork | None:
    """Find the most frequent interruption that is periodic; None if there is none."""
    costs = np.sort([interruption.cost_ns for train in trains for interruption in train.interruptions])
    if not len(costs):
        return None
    # For each cost, how many are about the same.
    alike = np.searchsorted(costs, costs * (1 + _SAME_COST), "right") - np.searchsorted(
        costs, costs * (1 - _SAME_COST)
    )
    typical = float(costs[int(np.argmax(alike))])
    kept = [_same_cost(train, typical) for train in trains]
    pairs = [
        (at, np.diff(at)) for at in (np.array([interruption.at_ns for interruption in some]) for some in kept)
    ]
    spacings = np.concatenate([spacing for _, spacing in pairs]) if pairs else np.array([])
    if len(spacings) < 3:
        return None
    rough = float(np.median(spacings))
    slopes, weights = [], []
    for at, _ in pairs:
        if len(at) < 2:
            continue
        turns = np.round((at - at[0]) / rough)
        spread = float(((turns - turns.mean()) ** 2).sum())
        slopes.append(float(((turns - turns.mean()) * (at - at.mean())).sum()) / spread)
        weights.append(spread)
    period_ns = float(np.average(slopes, weights=weights))
    same = np.array([interruption.cost_ns for some in kept for interruption in some])
    grain_ns = float(np.mean([train.period_ns for train in trains])) / np.sqrt(12)
    return PeriodicWork(
        period_ns,
        grain_ns / float(np.sqrt(sum(weights))),
        float(np.median(same)),
        max(float(same.std()), 0.5) / float(np.sqrt(len(same))),
        len(same),
    )


def _same_cost(train: BusyTrain, cost_ns: float) -> list[Interruption]:
    return [
        interruption
        for interruption in train.interruptions
        if abs(interruption.cost_ns - cost_ns) <= _SAME_COST * cost_ns
    ]


def without_timers(train: BusyTrain, known: PeriodicWork) -> list[Interruption]:
    """Return the interruptions of a train without those, or the parts of those, that the timers caused."""
    at = np.array([interruption.at_ns for interruption in train.interruptions], dtype=np.float64)
    if not len(at):
        return []
    cost = np.array([interruption.cost_ns for interruption in train.interruptions])
    reach_ns = 3 * train.period_ns
    # The phase at which most interruptions that cost as much as the timers fall on the timers' grid.
    candidates = at[np.abs(cost - known.cost_ns) <= _SAME_COST * known.cost_ns]
    if len(candidates):
        off = [np.abs(_off_grid(candidates - phase, known.period_ns)) < reach_ns for phase in candidates]
        phase = float(candidates[int(np.argmax([turns.sum() for turns in off]))])
        turn = np.round((at - phase) / known.period_ns)
        for value in np.unique(turn):
            near = np.flatnonzero(
                (turn == value) & (np.abs(_off_grid(at - phase, known.period_ns)) < reach_ns)
            )
            near = near[cost[near] >= known.cost_ns * (1 - _SAME_COST)]
            if len(near):
                cost[near[int(np.argmin(np.abs(cost[near] - known.cost_ns)))]] -= known.cost_ns
    least_ns = max(_QUIET_NS, _SAME_COST * known.cost_ns)
    return [
        Interruption(int(when), float(much)) for when, much in zip(at, cost, strict=True) if much > least_ns
    ]


def _off_grid(at: NDArray[np.float64], period_ns: float) -> NDArray[np.float64]:
    return at - np.round(at / period_ns) * period_ns


def _parts(_: MeasurementSize) -> Iterator[MeasurementPart]:
    for train in range(_TRAINS):
        yield MeasurementPart(PROCEDURE.key(f"train {train}"), _measured)


def _measured(device: BenchDevice, _: int) -> Combinations:
    return {SIZE: measure(device)}


def trains(samples: Samples, procedure: Procedure) -> list[BusyTrain]:
    """Evaluate the trains of a procedure that measures as this one does."""
    every = (busy(by_size[SIZE]) for by_size in procedure.among(samples).values() if len(by_size[SIZE]))
    return [train for train in every if train is not None]


def numbers(timers: PeriodicWork | None) -> dict[str, ProfileNumber]:
    """Return the numbers of the timers that interrupt between frames."""
    if timers is None:
        return {}
    source = ((PROCEDURE.name,), timers.runs)
    return {
        "cpu.timers.period_ns": ProfileNumber(timers.period_ns, timers.period_error_ns, *source),
        "cpu.timers.cost_ps": ProfileNumber(
            timers.cost_ns * PS_PER_NS, timers.cost_error_ns * PS_PER_NS, *source
        ),
    }


def gaps(samples: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the gaps between consecutive frames that both came out, from the samples of `measure`."""
    _, left = samples.reshape(2, -1)
    there = left != MISSING
    return np.asarray(np.diff(left)[there[:-1] & there[1:]])


PROCEDURE: Final = Procedure(
    name="backlog",
    text="Gaps between frames that wait for a busy CPU, which show its capacity and timers.",
    parts=_parts,
    shown=gaps,
)
