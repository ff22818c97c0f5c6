"""The jobs of the unmodified firmware, one at each tick: for how long each keeps the CPU from forwarding.

Their order tells which job is which (section 2.2.2): the most expensive one reads port counters, the next
tick checks the links, the one after it timeouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from loko.units import PS_PER_NS
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.part import (
    NOTHING,
    Combinations,
    MeasurementPart,
    MeasurementSize,
    Procedure,
    ProfileNumber,
)
from loko_testbed.measure.bench.procedures import backlog
from loko_testbed.measure.bench.procedures.backlog import (
    BusyTrain,
    Interruption,
    PeriodicWork,
    without_timers,
)

_TICK_NS: Final = 501_000_000
_JOBS: Final = ("port_counters_ps", "link_status_ps", "flow_timeouts_ps")
_ALIKE: Final = 0.1
_LATE_NS: Final = 40_000_000
"""A tick is at most this late: behind the most expensive job, and until the clock is read again."""
_TRAINS: Final = 9
"""In a train, each of the jobs has one or two ticks."""


def numbers(trains: Sequence[BusyTrain], timers: PeriodicWork | None) -> dict[str, ProfileNumber]:
    """Return the cost of each job, by its name in a profile. Empty if no train met any."""
    others = [
        (train, without_timers(train, timers) if timers else [*train.interruptions]) for train in trains
    ]
    every = [interruption.cost_ns for _, interruptions in others for interruption in interruptions]
    if not every:
        return {}
    dearest_ns = max(every)
    costs: dict[int, list[float]] = {place: [] for place in range(len(_JOBS))}
    for train, interruptions in others:
        for place, cost_ns in _in_turn(train, interruptions, dearest_ns):
            costs[place].append(cost_ns)
    return {
        f"cpu.housekeeping.{name}": ProfileNumber(
            float(np.median(costs[place])) * PS_PER_NS,
            max(float(np.std(costs[place])), 1.0) / float(np.sqrt(len(costs[place]))) * PS_PER_NS,
            (PROCEDURE.name,),
            len(costs[place]),
            "" if np.median(costs[place]) else "no longer gap than usual at its ticks",
        )
        for place, name in enumerate(_JOBS)
        if costs[place]
    }


def _in_turn(
    train: BusyTrain, interruptions: list[Interruption], dearest_ns: float
) -> Iterator[tuple[int, float]]:
    """Yield, for each tick of a train, the place of its job in the turn and its cost."""
    anchor = next(
        (interruption for interruption in interruptions if interruption.cost_ns > (1 - _ALIKE) * dearest_ns),
        None,
    )
    if anchor is None:
        return
    ticks_before = int((anchor.at_ns - train.begin_ns) / _TICK_NS - 0.5)
    ticks_after = int((train.end_ns - anchor.at_ns) / _TICK_NS - 0.5)
    for tick in range(-ticks_before, ticks_after + 1):
        due_ns = anchor.at_ns + tick * _TICK_NS
        # Other interruptions at that moment, such as by the bench's own host, are hardly as long as the job.
        near = [
            interruption.cost_ns
            for interruption in interruptions
            if abs(interruption.at_ns - due_ns) < _LATE_NS
        ]
        yield tick % len(_JOBS), max(near, default=0.0)


def _parts(_: MeasurementSize) -> Iterator[MeasurementPart]:
    for train in range(_TRAINS):
        yield MeasurementPart(PROCEDURE.key(f"train {train}"), _measured)


def _measured(device: BenchDevice, _: int) -> Combinations:
    unmodified = device.with_housekeeping()
    return {backlog.SIZE: NOTHING if unmodified is None else backlog.measure(unmodified)}


PROCEDURE: Final = Procedure(
    name="housekeeping",
    text="The gaps of backlog with the jobs of the unmodified firmware.",
    parts=_parts,
    shown=backlog.gaps,
)
