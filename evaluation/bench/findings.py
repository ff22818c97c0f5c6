"""What the samples of a campaign say about a switch: the numbers of its profile, and how sure they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.bench import interference
from evaluation.bench.campaign import table_name, throughput_tables
from evaluation.bench.cases import Table, identification_tables, tables
from evaluation.bench.control_questions import questions
from evaluation.bench.cost_terms import frame_terms, link_ps
from evaluation.bench.equations import Wire, throughput_bps
from evaluation.bench.estimate import Observation, Solution, solve
from evaluation.bench.store import SampleStore
from loko.document import InputError

_PS_PER_NS: Final = 1000
_LONGEST_LOOP_NS: Final = 20_000
"""A sample so far above the least of its case has met an interruption and not only the loop's phase."""
_SLACK: Final = 1.02
"""Over the length of the loop; what lies beyond was interrupted. The taps may be off by a little."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Lone frames find the main loop at a random phase, so their times are uniform between two edges."""

    low_ns: float
    high_ns: float
    interrupted: int
    """Samples beyond: something else than the main loop kept the CPU busy."""
    samples: int

    @property
    def middle_ns(self) -> float:
        """The mean time. For uniform samples the middle of the extremes tells it best."""
        return (self.low_ns + self.high_ns) / 2

    @property
    def width_ns(self) -> float:
        """The loop's length, corrected for the extremes that were not met."""
        return (self.high_ns - self.low_ns) * (self.samples + 1) / max(self.samples - 1, 1)

    @property
    def error_ns(self) -> float:
        """Standard error of the middle."""
        return max(self.width_ns / self.samples, 1.0)


def edges(times_ns: NDArray[np.int64], loop_ns: float = _LONGEST_LOOP_NS) -> Edges:
    """The edges of samples of one case, if the main loop is at most so long."""
    low = float(times_ns.min())
    uniform = times_ns[times_ns <= low + _SLACK * loop_ns]
    return Edges(low, float(uniform.max()), len(times_ns) - len(uniform), len(uniform))


Samples = Mapping[str, Mapping[int, NDArray[np.int64]]]
"""By part and length of frame."""


def read_samples(store: SampleStore) -> Samples:
    """All samples of a store."""
    found: dict[str, dict[int, NDArray[np.int64]]] = {}
    for part, size, times, _ in store.samples():
        found.setdefault(part, {})[size] = times
    return found


@dataclass(frozen=True, slots=True)
class Findings:
    """What a campaign found."""

    costs: Solution
    """Costs of the CPU by their names in a profile."""
    loop_ns: float
    """An idle pass of the main loop: the width of the uniform part of every case's samples."""
    interrupted: float
    """Share of lone frames that met an interruption."""
    capacity_frames: Mapping[int, int]
    """Frames that the switch holds, by length."""
    equation_6_error: Mapping[tuple[Table, int], float]
    """Measured throughput over equation 6, less 1."""


def find(samples: Samples, wire: Wire, offsets: dict[str, int], transit_ps: float) -> Findings:
    """Evaluate a campaign. `offsets` are the `offset_bytes` of a profile's actions, `transit_ps` is p_IS.

    Raises `InputError` if samples are missing that this needs.
    """
    measured = [
        (table, size, times)
        for table in _measured_tables()
        for size, times in samples.get(f"dp-time/{table_name(table)}", {}).items()
    ]
    if not measured:
        raise InputError("no samples of dp-time: measure them first")
    loop_ns = float(np.median([edges(times).width_ns for _, _, times in measured]))
    cases = [(table, size, edges(times, loop_ns)) for table, size, times in measured]
    observations = [
        Observation(
            frame_terms(table, size, offsets),
            one.middle_ns * _PS_PER_NS - link_ps(table, size, wire),
            one.error_ns * _PS_PER_NS,
        )
        for table, size, one in cases
    ]
    observations += _of_leaders(samples, wire, offsets, loop_ns)
    observations += _of_questions(samples, transit_ps, loop_ns)
    p_fx_ns = {(table, size): one.middle_ns for table, size, one in cases}
    return Findings(
        costs=solve(observations),
        loop_ns=loop_ns,
        interrupted=sum(one.interrupted for _, _, one in cases)
        / sum(one.samples + one.interrupted for _, _, one in cases),
        capacity_frames={
            size: int(frames[0])
            for part in samples
            if part.startswith("buffer/")
            for size, frames in samples[part].items()
        },
        equation_6_error=_equation_6(samples, p_fx_ns, wire),
    )


def _measured_tables() -> Iterable[Table]:
    yield from identification_tables()
    yield from (table for table, _ in tables())


def _of_leaders(
    samples: Samples, wire: Wire, offsets: dict[str, int], loop_ns: float
) -> Iterable[Observation]:
    for leader in interference.leaders():
        for size, times in samples.get(f"interference/{leader.name}", {}).items():
            one = edges(times, loop_ns)
            yield Observation(
                interference.terms(leader, size, offsets),
                one.middle_ns * _PS_PER_NS - interference.link_ps(size, wire),
                one.error_ns * _PS_PER_NS,
            )


def _of_questions(samples: Samples, transit_ps: float, loop_ns: float) -> Iterable[Observation]:
    elsewhere_ps = 2 * transit_ps + loop_ns * _PS_PER_NS / 2
    for question in questions():
        for times in samples.get(f"cp-time/{question.name}", {}).values():
            one = edges(times, loop_ns)
            yield Observation(
                question.terms, one.middle_ns * _PS_PER_NS - elsewhere_ps, one.error_ns * _PS_PER_NS
            )


def _equation_6(
    samples: Samples, p_fx_ns: Mapping[tuple[Table, int], float], wire: Wire
) -> dict[tuple[Table, int], float]:
    errors = {}
    for table in throughput_tables():
        for size, measured in samples.get(f"throughput/{table_name(table)}", {}).items():
            if (table, size) in p_fx_ns:
                computed_bps = throughput_bps(size, p_fx_ns[table, size], wire)
                errors[table, size] = float(measured[0]) / computed_bps - 1
    return errors
