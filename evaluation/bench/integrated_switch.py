"""Processing time of the integrated switch alone (section 3.4.1, figure 10d), and what else bounds throughput."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluation.bench.data_plane import Samples, lone_frames
from evaluation.bench.device import Device
from evaluation.bench.equations import Wire, cpu_time_ns, link_bps, sequential_throughput_bps
from evaluation.runner import RunError
from loko.scenario import TABLE_1_FRAME_BYTES

PASSES: Final = 2
"""A frame passes the integrated switch on its way to the CPU and on its way back."""
FOOTNOTE_BYTES: Final = 48
"""A frame for which the paper's argument fails (footnote 1). Ethernet carries none so short."""


def measure(device: Device, *, samples: int, seed: int) -> dict[int, Samples]:
    """Frames of Table 1 through a switch whose CPU is not used. Raises `RunError` if it has none such."""
    alone = device.without_cpu()
    if alone is None:
        raise RunError(f"{device.name}: it has no integrated switch that could be measured without its CPU")
    random = np.random.default_rng(seed)
    what = "the integrated switch alone, OpenFlow switched off"
    return {
        size: lone_frames(alone, size, samples=samples, random=random, what=what)
        for size in TABLE_1_FRAME_BYTES
    }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The three elements of the pipeline for one length of frame, in bit/s."""

    switch_bps: float
    """The integrated switch at its longest processing time (equation 5)."""
    inner_link_bps: float
    cpu_bps: float | None
    """The CPU (equations 5 and 7) at the shortest processing time of the whole board that was measured."""

    @property
    def argument_holds(self) -> bool:
        """The paper's argument: passed twice, it still carries more than the link to the CPU."""
        return self.switch_bps > PASSES * self.inner_link_bps

    @property
    def is_bottleneck(self) -> bool:
        """Whether the integrated switch carries less than both others."""
        others = [self.inner_link_bps] if self.cpu_bps is None else [self.inner_link_bps, self.cpu_bps]
        return self.switch_bps / PASSES < min(others)


def compare(
    longest_ns: Mapping[int, float], shortest_p_fx_ns: Mapping[int, float], wire: Wire
) -> dict[int, Comparison]:
    """By length of frame: `longest_ns` is the longest p_IS, `shortest_p_fx_ns` the least p_FX if known."""
    return {
        size: Comparison(
            switch_bps=sequential_throughput_bps(size, p_is_ns),
            inner_link_bps=link_bps(size, wire),
            cpu_bps=sequential_throughput_bps(size, cpu_time_ns(shortest_p_fx_ns[size], size, wire))
            if size in shortest_p_fx_ns
            else None,
        )
        for size, p_is_ns in longest_ns.items()
    }


def longest_that_suffices_ns(frame_bytes: int, wire: Wire) -> float:
    """Up to this p_IS the paper's argument holds for frames of this length: half of their time on the link.

    Footnote 1 says that it holds from 64 bytes on and not for 48, so the longest p_IS of the paper lies
    between the values for these two.
    """
    return frame_bytes * 8e9 / (PASSES * link_bps(frame_bytes, wire))
