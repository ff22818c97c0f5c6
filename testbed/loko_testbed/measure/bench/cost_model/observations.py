"""Turns samples into observations: each measured time as a sum of a profile's numbers (equations 4 and 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.units import PS_PER_NS
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.cost_model.cost_terms import (
    frame_terms,
    leader_link_ps,
    leader_terms,
    link_ps,
    trial_link_ps,
    trial_terms,
)
from loko_testbed.measure.bench.cost_model.estimate import CostObservation
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.part import ROUNDS, Procedure, Samples
from loko_testbed.measure.bench.procedures import cp_time, cp_time13, dp_time, dp_time13, interference

_LONGEST_LOOP_NS: Final = 20_000
"""A sample this far above the shortest of its case met an interruption, not only the loop's phase."""
_SLACK: Final = 1.02
"""Limit of samples over the loop's length, as the taps may be slightly off. Others were interrupted."""
_QUIET: Final = 0.05
"""If a larger share of all samples lies beyond the edges, it is the bench itself that disperses them."""
_MIDDLE_TO_MEAN: Final = 1.25
"""Standard error of an interquartile mean over that of a mean: 1.09 for normal samples, 1.41 for uniform."""


@dataclass(frozen=True, slots=True)
class Edges:
    """The least and greatest time of lone frames, which meet the main loop at a random phase.

    The times are uniform between these two edges.
    """

    low_ns: float
    high_ns: float
    interrupted: int
    """Samples beyond the edges: something else than the main loop kept the CPU busy."""
    samples: int

    @property
    def middle_ns(self) -> float:
        """The mean time. For uniform samples, the middle of the extremes is its best estimate."""
        return (self.low_ns + self.high_ns) / 2

    @property
    def width_ns(self) -> float:
        """The loop's length, corrected for the fact that samples rarely meet the extremes."""
        return (self.high_ns - self.low_ns) * (self.samples + 1) / max(self.samples - 1, 1)

    @property
    def error_ns(self) -> float:
        """Standard error of the middle."""
        return max(self.width_ns / self.samples, 1.0)


def edges(times_ns: NDArray[np.int64], loop_ns: float = _LONGEST_LOOP_NS) -> Edges:
    """Find the edges of one case's samples, if the main loop takes at most `loop_ns`."""
    low = float(times_ns.min())
    uniform = times_ns[times_ns <= low + _SLACK * loop_ns]
    return Edges(low, float(uniform.max()), len(times_ns) - len(uniform), len(uniform))


def interquartile_mean(times_ns: NDArray[np.int64]) -> float:
    """Return the mean of the middle half: hardly less robust than the median, and steadier."""
    cut = len(times_ns) // 4
    return float(np.sort(times_ns)[cut : len(times_ns) - cut].mean())


@dataclass(frozen=True, slots=True)
class Centre:
    """The mean time of a case."""

    value_ns: float
    error_ns: float
    samples: int
    interrupted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationReader:
    """Turns samples into observations."""

    samples: Samples
    wire: LinkTiming
    offsets: Mapping[str, int]
    """`offset_bytes` of a profile's actions."""
    loop_ns: float
    noise_ns: float = 0.0
    """Standard deviation of the samples if the bench is so noisy that their extremes say nothing; else 0."""

    def seen(self) -> ObservationReader:
        """Return a copy that knows whether the bench is noisy."""
        every = [edges(times, self.loop_ns) for _, _, times in self.cases()]
        beyond = sum(centre.interrupted for centre in every)
        if beyond <= _QUIET * sum(centre.interrupted + centre.samples for centre in every):
            return self
        spreads = [self._near(times).std() for _, _, times in self.cases()]
        return replace(self, noise_ns=float(np.median(spreads)))

    def centre(self, times_ns: NDArray[np.int64]) -> Centre:
        """Return the mean time without interrupted samples."""
        if not self.noise_ns:
            centre_ns = edges(times_ns, self.loop_ns)
            return Centre(centre_ns.middle_ns, centre_ns.error_ns, centre_ns.samples, centre_ns.interrupted)
        near = self._near(times_ns)
        # Few samples may lie close together by chance. The noise over all cases is more reliable.
        spread_ns = max(float(near.std()), self.noise_ns)
        error_ns = _MIDDLE_TO_MEAN * spread_ns / float(np.sqrt(len(near)))
        return Centre(interquartile_mean(near), error_ns, len(near), len(times_ns) - len(near))

    def _near(self, times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the samples that no interruption lengthened, where noise hides the edges."""
        near: NDArray[np.int64] = times_ns[np.abs(times_ns - np.median(times_ns)) <= 2 * self.loop_ns]
        return near

    def cases(self) -> Iterator[tuple[TableCase, int, NDArray[np.int64]]]:
        """Yield what dp-time has measured: table, frame length, and times."""
        for key, table in dp_time.measured_tables():
            for size, times in self.samples.get(key, {}).items():
                yield table, size, times

    def of_cases(self) -> Iterator[CostObservation]:
        """Yield observations of the processing times of lone frames."""
        for table, size, times in self.cases():
            terms = frame_terms(table, size, dict(self.offsets))
            yield self._observation(dp_time.PROCEDURE, terms, times, link_ps(table, size, self.wire))

    def of_trials(self) -> Iterator[CostObservation]:
        """Yield observations of lone frames in OpenFlow 1.3."""
        for trial in dp_time13.trials():
            for times in self.samples.get(dp_time13.PROCEDURE.key(trial.name), {}).values():
                link = trial_link_ps(trial, self.wire)
                yield self._observation(dp_time13.PROCEDURE, trial_terms(trial), times, link)

    def of_leaders(self, capacity_factor: float) -> Iterator[CostObservation]:
        """Yield observations of frames behind others. A busy CPU takes p_CPU over its capacity factor."""
        for turn, leader in product(range(ROUNDS), interference.leaders()):
            key = interference.PROCEDURE.key(leader.name, turn=turn)
            for size, times in self.samples.get(key, {}).items():
                terms = leader_terms(leader, size, dict(self.offsets), capacity_factor)
                link = leader_link_ps(size, self.wire)
                yield self._observation(interference.PROCEDURE, terms, times, link)

    def of_questions(self, transit_ps: float, interrupt_ps: float) -> Iterator[CostObservation]:
        """Yield observations of messages, without the costs that all share and that they cannot tell."""
        elsewhere_ps = 2 * transit_ps + self.loop_ns * PS_PER_NS / 2
        asked = [(cp_time.PROCEDURE, question) for question in cp_time.questions()]
        asked += [(cp_time13.PROCEDURE, question) for question in cp_time13.questions()]
        for procedure, question in asked:
            interrupts_ps = len(question.segments) * interrupt_ps
            keys = [procedure.key(question.name, turn=turn) for turn in range(ROUNDS)]
            turns = [times for key in keys for times in self.samples.get(key, {}).values()]
            if turns:
                times = np.concatenate(turns)
                yield self._observation(procedure, question.terms, times, elsewhere_ps + interrupts_ps)

    def _observation(
        self, procedure: Procedure, terms: Mapping[str, float], times: NDArray[np.int64], elsewhere_ps: float
    ) -> CostObservation:
        centre = self.centre(times)
        return CostObservation(
            terms,
            centre.value_ns * PS_PER_NS - elsewhere_ps,
            centre.error_ns * PS_PER_NS,
            procedure.name,
            centre.samples,
        )
