"""Duration of an idle pass of the main loop: the departures of lone frames are whole passes apart.

Between two frames an idle CPU makes a whole number of passes, so the gaps between departures are equal up to
multiples of a pass. Noise of the taps averages out. Not in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.switch_model.scenario import ActionType, MatchType
from loko.units import PS_PER_NS
from loko_testbed.instruments.numbered_frame import frame
from loko_testbed.measure.bench.cases import TableCase, flow_mods
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
from loko_testbed.simulation.runner import RunError

SIZE: Final = 64
_SPACING_NS: Final = 1_000_000
_JITTER_NS: Final = 100_000
_SEARCHED: Final = 0.3
"""How far the pass may be from what the quartiles say, as a share, since noise widens the times."""
_STEPS: Final = 6_001
_ROUNDS: Final = 3
_LONGEST_LOOP_NS: Final = 20_000
_PASSES: Final = "passes"
FASTEST: Final = TableCase(entries=1, match=MatchType.PORT, action=ActionType.OUTPUT)


def measure(device: BenchDevice, *, samples: int, seed: int) -> SampleSet:
    """Send lone frames at random phases. Return all entry instants, then all exit instants."""
    random = np.random.default_rng(seed)
    device.load(flow_mods(FASTEST))
    gaps = _SPACING_NS + random.integers(0, _JITTER_NS, samples)
    passage = device.send(gaps.tolist(), [frame(SIZE, number) for number in range(samples)])
    left = np.where(passage.disturbed, MISSING, passage.left_ns)
    if np.count_nonzero(left != MISSING) < samples // 2:
        raise RunError(
            f"{device.name}: of {samples} lone frames of {SIZE} bytes more than half did not come out"
        )
    return SampleSet(np.concatenate([passage.entered_ns, left]))


@dataclass(frozen=True, slots=True)
class Pass:
    """An idle pass of the main loop."""

    length_ns: float
    error_ns: float
    gaps: int


def idle_pass(samples: NDArray[np.int64]) -> Pass:
    """Evaluate the samples of `measure`."""
    entered, left = samples.reshape(2, -1)
    seen = (left[:-1] != MISSING) & (left[1:] != MISSING)
    gaps_ns = np.diff(left)[seen].astype(np.float64)
    gaps_ns -= gaps_ns.min()
    length_ns = rough_ns((left - entered)[left != MISSING].astype(np.float64))
    width = _SEARCHED
    for _ in range(_ROUNDS):
        tried = length_ns * np.linspace(1 - width, 1 + width, _STEPS)
        agreement = np.abs(np.exp(2j * np.pi * gaps_ns / tried[:, None]).sum(axis=1))
        length_ns = float(tried[int(np.argmax(agreement))])
        width *= 10 / _STEPS
    turns = gaps_ns / length_ns
    phase = float(np.angle(np.exp(2j * np.pi * turns).sum())) / (2 * np.pi)
    whole = np.round(turns - phase)
    off_ns = (turns - phase - whole) * length_ns
    error_ns = max(float(off_ns.std()), 1.0) / (float(whole.std()) * float(np.sqrt(len(gaps_ns))))
    return Pass(length_ns, error_ns, len(gaps_ns))


def rough_ns(times_ns: NDArray[np.float64]) -> float:
    """Estimate the pass from the times, which are uniform over it: twice the interquartile range."""
    times_ns = times_ns[times_ns <= times_ns.min() + _LONGEST_LOOP_NS]
    low, high = np.percentile(times_ns, (25, 75))
    return max(2 * float(high - low), 1.0)


def _parts(extent: MeasurementSize) -> Iterator[MeasurementPart]:
    def measured(device: BenchDevice, seed: int) -> Combinations:
        return {SIZE: measure(device, samples=10 * extent.samples, seed=seed)}

    yield MeasurementPart(PROCEDURE.key(_PASSES), measured)


def numbers(samples: Samples) -> dict[str, ProfileNumber]:
    """Return the length of a pass."""
    times = samples.get(PROCEDURE.key(_PASSES), {}).get(SIZE)
    if times is None:
        return {}
    pass_time = idle_pass(times)
    in_ps = (pass_time.length_ns * PS_PER_NS, pass_time.error_ns * PS_PER_NS)
    return {"cpu.loop_ps": ProfileNumber(*in_ps, (PROCEDURE.name,), pass_time.gaps)}


def _times(samples: NDArray[np.int64]) -> NDArray[np.int64]:
    entered, left = samples.reshape(2, -1)
    return np.asarray((left - entered)[left != MISSING])


PROCEDURE: Final = Procedure(
    name="idle",
    text="Lone frames at random phases, which show how long the main loop is.",
    parts=_parts,
    shown=_times,
)
