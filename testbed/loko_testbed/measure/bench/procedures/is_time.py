"""The integrated switch alone (section 3.4.1, figure 10d), and whether it is ever the bottleneck."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.switch_model.scenario import TABLE_1_FRAME_BYTES
from loko.units import PS_PER_NS
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.equations import LinkTiming, cpu_time_ns, link_bps, sequential_throughput_bps
from loko_testbed.measure.bench.part import (
    NOTHING,
    Combinations,
    MeasurementPart,
    MeasurementSize,
    NoFrameLength,
    Procedure,
    ProfileNumber,
    Samples,
    SampleSet,
    counts,
)
from loko_testbed.measure.bench.procedures.dp_time import lone_frames

_FRAMES_PER_SAMPLE: Final = 20
"""An emulated chip's times vary by half of their mean, so that one frame tells little."""
PASSES: Final = 2
"""A frame passes the integrated switch on its way to the CPU and on its way back."""
FOOTNOTE_BYTES: Final = 48
"""A frame for which the paper's argument fails (footnote 1). Ethernet has none this short."""
_LATE: Final = 0.03
"""If an emulated switch's lateness is a larger share of a time, that time says more about its host."""


def measure(alone: BenchDevice, *, samples: int, seed: int) -> dict[int, SampleSet]:
    """Measure frames of all sizes of Table 1 through the integrated switch alone. Raises `RunError`.

    `alone` is a switch as `BenchDevice.without_cpu` returns it.
    """
    random = np.random.default_rng(seed)
    what = "the integrated switch alone, OpenFlow switched off"
    return {
        size: lone_frames(alone, size, samples=samples, random=random, what=what)
        for size in TABLE_1_FRAME_BYTES
    }


@dataclass(frozen=True, slots=True)
class PipelineComparison:
    """Throughput of the three elements of the pipeline at one frame length, in bit/s."""

    switch_bps: float
    """The integrated switch at its longest processing time (equation 5)."""
    inner_link_bps: float
    cpu_bps: float | None
    """The CPU at the shortest measured processing time of the whole board (equations 5 and 7)."""

    @property
    def is_bottleneck(self) -> bool:
        """Whether the integrated switch carries less than both others."""
        others = [self.inner_link_bps] if self.cpu_bps is None else [self.inner_link_bps, self.cpu_bps]
        return self.switch_bps / PASSES < min(others)


def compare(
    longest_ns: Mapping[int, float], shortest_p_fx_ns: Mapping[int, float], wire: LinkTiming
) -> dict[int, PipelineComparison]:
    """Compare the elements by frame length, given the longest p_IS, and the shortest p_FX if known."""
    return {
        size: PipelineComparison(
            switch_bps=sequential_throughput_bps(size, p_is_ns),
            inner_link_bps=link_bps(size, wire),
            cpu_bps=sequential_throughput_bps(size, cpu_time_ns(shortest_p_fx_ns[size], size, wire))
            if size in shortest_p_fx_ns
            else None,
        )
        for size, p_is_ns in longest_ns.items()
    }


def longest_that_suffices_ns(frame_bytes: int, wire: LinkTiming) -> float:
    """Return the largest p_IS for which the paper's argument holds: half of the frame's time on the link.

    Footnote 1 says that it holds from 64 bytes on and not for 48, so the longest p_IS of the paper lies
    between the values for these two.
    """
    return frame_bytes * 8e9 / (PASSES * link_bps(frame_bytes, wire))


def _parts(extent: MeasurementSize) -> Iterator[MeasurementPart]:
    def measured(device: BenchDevice, seed: int) -> Combinations:
        alone = device.without_cpu()
        if alone is None:
            return {NoFrameLength.VALUES: NOTHING}
        samples = measure(alone, samples=_FRAMES_PER_SAMPLE * extent.samples, seed=seed)
        return {**samples, NoFrameLength.CONTEXT: counts(alone.lateness_ns)}

    yield MeasurementPart(ALONE, measured)


def times_ns(samples: Samples) -> dict[int, NDArray[np.int64]]:
    """Return what was measured, by frame length in rising order."""
    return {
        size: times for size, times in sorted(samples.get(ALONE, {}).items()) if size > NoFrameLength.VALUES
    }


def numbers(samples: Samples) -> dict[str, ProfileNumber]:
    """Return the mean time of a frame, as the paper states it, unless the switch's host hides it."""
    times = list(times_ns(samples).values())
    if not times:
        return {}
    every = np.concatenate(times)
    mean_ns = float(every.mean())
    if is_hidden(mean_ns, samples):
        return {}
    error_ns = float(every.std()) / float(np.sqrt(len(every)))
    found = ProfileNumber(mean_ns * PS_PER_NS, error_ns * PS_PER_NS, (PROCEDURE.name,), len(every))
    return {"integrated_switch.transit_ps": found}


def is_hidden(time_ns: float, samples: Samples) -> bool:
    """Return whether the switch is too late to tell a time of its integrated switch.

    An emulated switch's own lateness hides such a time: its host passes no frame on within a microsecond.
    """
    late_ns = samples.get(ALONE, {}).get(NoFrameLength.CONTEXT, np.zeros(1))[0]
    return bool(late_ns > _LATE * time_ns)


PROCEDURE: Final = Procedure(
    name="is-time",
    text="The integrated switch alone, OpenFlow switched off (section 3.4.1, figure 10d).",
    parts=_parts,
)

ALONE: Final = PROCEDURE.key("OpenFlow switched off")
"""The key of the only part."""
