"""PT: how long the switch works on a frame, depending on what it matches and does (section II-A).

RFC 2544, section 26.2, measures latency at the throughput rate, and for store-and-forward devices from the
last bit in to the first bit out, as here. The study also varies the flow table and the rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.units import NS_PER_US
from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.instruments.virtual_session import RefusedError
from loko_testbed.measure.predictability.marks import DimensionVerdict, Mark, Thresholds
from loko_testbed.measure.predictability.subject import (
    FRAMING_BYTES,
    FrameStream,
    Pace,
    StreamTimes,
    SwitchUnderTest,
    evenly,
    transmit,
)
from loko_testbed.measure.predictability.table_iii import (
    VALUES,
    TimingDimension,
    TimingScenario,
    flow_mods,
    frame,
    variations,
)

WITHOUT_INFLUENCE: Final[tuple[TimingDimension, ...]] = (
    "entries",
    "match",
    "action",
    "matching_rule",
    "priorities",
)
"""Dimensions that should not change the processing time (section II-A.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioTimes:
    """The result of one scenario."""

    sent: int
    lost: int
    refused: bool = False
    """Whether the switch refuses the entries."""
    median_us: float = math.nan
    """Median over the frames that came."""
    least_us: float = math.nan
    most_us: float = math.nan
    disturbed: int = 0
    """In real time, frames that met a stall of the host, and so do not count."""

    @property
    def came(self) -> bool:
        """Whether any frame came."""
        return not math.isnan(self.median_us)


def measure(
    subject: SwitchUnderTest, scenario: TimingScenario, *, packets: int, seed: int
) -> NDArray[np.int64] | None:
    """Measure the processing times, in ns, of `send_frames`. None if the switch refuses the entries."""
    subject = subject.at_card_rate()
    sent = send_frames(subject, scenario, packets=packets, seed=seed)
    return None if sent is None else sent.processing_ns(subject, scenario.frame_bytes)


def measure_summary(
    subject: SwitchUnderTest, scenario: TimingScenario, *, packets: int, seed: int
) -> ScenarioTimes:
    """Measure and summarise; frames that met a stall of the host do not count."""
    subject = subject.at_card_rate()
    sent = send_frames(subject, scenario, packets=packets, seed=seed)
    if sent is None:
        return summary(None, packets)
    times_ns = sent.processing_ns(subject, scenario.frame_bytes)
    return summary(times_ns, packets, disturbed=int((~sent.kept).sum()))


def send_frames(
    subject: SwitchUnderTest, scenario: TimingScenario, *, packets: int, seed: int
) -> StreamTimes | None:
    """Send frames from port 1 to port 2 at a steady rate, and return what became of them.

    A board is sent no more than its CPU can handle. Only frames that came count. None if the switch refuses
    the entries. Raises `RunError`.
    """
    gap_ns = (scenario.frame_bytes + FRAMING_BYTES) * 8e3 / _rate_mbps(subject, scenario)
    stream = FrameStream(
        enters=IN_PORT,
        leaves=OUT_PORT,
        frame=frame(scenario.frame_bytes, tagged=scenario.tagged),
        instants_ns=evenly(packets, gap_ns),
    )
    try:
        [sent] = transmit(subject, flow_mods(scenario), [stream], seed=seed, drain_ns=_DRAIN_NS)
    except RefusedError:
        return None
    return sent


def dimensions(subject: SwitchUnderTest) -> tuple[TimingDimension, ...]:
    """Return the dimensions that are varied: a board's rate is not, since more than it can handle is TP's."""
    return tuple(name for name in VALUES if not (subject.on_cpu and name == "rate_mbps"))


def _rate_mbps(subject: SwitchUnderTest, scenario: TimingScenario) -> float:
    return min(scenario.rate_mbps, subject.pace.software_mbps) if subject.on_cpu else scenario.rate_mbps


def summary(times_ns: NDArray[np.int64] | None, packets: int, *, disturbed: int = 0) -> ScenarioTimes:
    """Summarise the result of `measure`, of which `disturbed` frames do not count."""
    if times_ns is None:
        return ScenarioTimes(sent=packets, lost=packets, refused=True)
    lost = packets - disturbed - len(times_ns)
    if not len(times_ns):
        return ScenarioTimes(sent=packets, lost=lost, disturbed=disturbed)
    return ScenarioTimes(
        sent=packets,
        lost=lost,
        median_us=float(np.median(times_ns)) / NS_PER_US,
        least_us=float(times_ns.min()) / NS_PER_US,
        most_us=float(times_ns.max()) / NS_PER_US,
        disturbed=disturbed,
    )


_DRAIN_NS: Final = 2_000_000_000
"""Longer than a CPU works on a frame."""


def in_hardware(times: ScenarioTimes, limits: Thresholds) -> bool:
    """Return whether frames came, and as fast as only a switch chip forwards."""
    return times.came and times.median_us <= limits.software_us.value


def judge(
    times: Mapping[tuple[TimingDimension, str], ScenarioTimes],
    limits: Thresholds,
    *,
    on_cpu: bool = False,
    software_mbps: float = Pace().software_mbps,
) -> DimensionVerdict:
    """Give the mark from all scenarios. As in the study, those forwarded in software do not count.

    If `on_cpu`, the switch forwards everything on a CPU, at `software_mbps`, and all scenarios count.
    """
    default = TimingScenario()
    where = "on its CPU" if on_cpu else "in hardware"
    hardware = {
        key: times for key, times in times.items() if (times.came if on_cpu else in_hardware(times, limits))
    }
    outside = sorted(
        f"{dimension} {value}" for dimension, value in times if (dimension, value) not in hardware
    )
    if _key_of(default, "match") not in hardware:
        return DimensionVerdict(mark=Mark.UNFIT, reasons=(f"the default scenario is not forwarded {where}",))
    spread_us = max(times.most_us - times.least_us for times in hardware.values())
    wider_percent = 100 * max(times.most_us / times.median_us - 1 for times in hardware.values())
    unbounded = (
        wider_percent > limits.cpu_spread_percent.value
        if on_cpu
        else spread_us > limits.partly_spread_us.value
    )
    influence_us = max(_influence_us(hardware, dimension) for dimension in WITHOUT_INFLUENCE)
    lost = sum(times.lost for times in hardware.values())
    numbers = {
        "median_us": hardware[_key_of(default, "match")].median_us,
        "bound_us": max(times.most_us for times in hardware.values()),
        "spread_us": spread_us,
        "influence_us": influence_us,
        "lost_frames": float(lost),
        "scenarios": float(len(times)),
        f"scenarios_{'on_cpu' if on_cpu else 'in_hardware'}": float(len(hardware)),
    }
    reasons: list[str] = []
    mark = Mark.FIT
    if lost > limits.lost_frames.value:
        mark = Mark.UNFIT
        reasons.append(f"{lost} frames are lost below line rate")
    if unbounded:
        mark = Mark.UNFIT
        reasons.append(f"times of one scenario differ by {spread_us:.1f} us: no constant bounds them tightly")
    elif spread_us > limits.spread_us.value:
        mark = mark if mark is Mark.UNFIT else Mark.PARTLY
        reasons.append(f"times of one scenario differ by {spread_us:.1f} us")
    if influence_us > limits.influence_us.value:
        mark = mark if mark is Mark.UNFIT else Mark.PARTLY
        reasons.append(f"the flow table changes the time by {influence_us:.1f} us")
    if mark is Mark.FIT:
        reasons.append(f"a constant of {numbers['bound_us']:.1f} us bounds it {where}")
    if on_cpu:
        numbers["longer_than_median_percent"] = wider_percent
        reasons.append(
            f"all on its CPU: up to {numbers['bound_us']:.0f} us at {software_mbps:g} Mbit/s,"
            f" and in no scenario more than {wider_percent:.0f} % above its median"
        )
    if outside:
        reasons.append(f"not {'forwarded' if on_cpu else where}: " + ", ".join(outside))
    return DimensionVerdict(mark=mark, reasons=tuple(reasons), numbers=numbers)


def _key_of(scenario: TimingScenario, dimension: TimingDimension) -> tuple[TimingDimension, str]:
    return dimension, str(getattr(scenario, dimension))


def _influence_us(
    times: Mapping[tuple[TimingDimension, str], ScenarioTimes], dimension: TimingDimension
) -> float:
    medians = [
        times[dimension, value].median_us for value, _ in variations(dimension) if (dimension, value) in times
    ]
    return max(medians) - min(medians)
