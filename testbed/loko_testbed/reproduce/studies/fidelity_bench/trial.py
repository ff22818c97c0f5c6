"""Measure one switch at one corner, and compare it with the profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loko.switch_model.scenario import Case
from loko_testbed.reproduce.studies.fidelity_bench.corners import label
from loko_testbed.reproduce.studies.fidelity_bench.expected import ExpectedDevice
from loko_testbed.reproduce.studies.fidelity_bench.systems import FidelityBench, FidelityResult, Train

RATES_PPS: Final = (1_000, 5_000)
"""Rates of single frames, used where the device's capacity is at least twice as high."""
_LONE_SHARE: Final = 0.5
_SLOW_SHARE: Final = 0.1
"""Share of the capacity that is used where it is lower than that."""
_OVERLOAD: Final = 1.5
_RUN_IN_SHARE: Final = 0.2
"""Share of an overload's time that is skipped until buffers are full."""
_PAUSE_NS: Final = 5_000_000
_EXTRA_FRAMES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityBudget:
    """How long measurements take at one corner."""

    lone_s: float
    overload_s: float
    bursts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lone:
    """Frames sent one by one. Errors are departures minus those expected by the profile."""

    rate_pps: float
    sent: int
    lost: int
    errors_ns: list[int]
    """Errors of frames that no stall of the host delayed, as far as the switch knows."""
    stalled_errors_ns: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadTrial:
    """An overload of the switch; rates in frames per second."""

    offered_pps: float
    expected_pps: float
    measured_pps: float

    @property
    def error(self) -> float:
        """Relative error of the measured rate."""
        return self.measured_pps / self.expected_pps - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityBurst:
    """A burst of frames back to back: how many pass."""

    expected: int
    passed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CornerResult:
    """The result for one switch at one corner."""

    system: str
    corner: str
    processing_ns: float
    """p_FX of the profile (equation 4)."""
    capacity_pps: float
    capacity_frames: int
    lone: list[Lone]
    overload: OverloadTrial
    bursts: list[FidelityBurst]


def trial(
    system: str, bench: FidelityBench, corner: Case, device: ExpectedDevice, effort: FidelityBudget
) -> CornerResult:
    """Carry out all measurements on a bench that has the corner's table."""
    return CornerResult(
        system=system,
        corner=label(corner),
        processing_ns=device.cpu_ns + 2 * device.inner_ns,
        capacity_pps=device.capacity_pps,
        capacity_frames=device.capacity_frames,
        lone=[_lone(bench, device, rate, effort) for rate in _lone_rates(device)],
        overload=_overload(bench, device, effort),
        bursts=_bursts(bench, device, effort),
    )


def _lone_rates(device: ExpectedDevice) -> Sequence[float]:
    fitting = [float(rate) for rate in RATES_PPS if rate <= _LONE_SHARE * device.capacity_pps]
    return fitting or [_SLOW_SHARE * device.capacity_pps]


def _lone(bench: FidelityBench, device: ExpectedDevice, rate_pps: float, effort: FidelityBudget) -> Lone:
    interval_ns = round(1e9 / rate_pps)
    train = Train(count=int(rate_pps * effort.lone_s), interval_ns=interval_ns, spread_ns=interval_ns // 2)
    carried = bench.transmit(train)
    outside: list[int] = []
    inside: list[int] = []
    for number, expected_ns in _expected(carried, device).items():
        if expected_ns is not None and number in carried.departures_ns:
            error_ns = carried.departures_ns[number] - expected_ns
            (inside if number in carried.stalled else outside).append(error_ns)
    return Lone(
        rate_pps=rate_pps,
        sent=train.frames,
        lost=train.frames - len(carried.departures_ns),
        errors_ns=outside,
        stalled_errors_ns=inside,
    )


def _overload(bench: FidelityBench, device: ExpectedDevice, effort: FidelityBudget) -> OverloadTrial:
    interval_ns = max(round(1e9 / (_OVERLOAD * device.capacity_pps)), device.slot_ns)
    train = Train(count=int(effort.overload_s * 1e9 / interval_ns), interval_ns=interval_ns)
    carried = bench.transmit(train)
    first, last = min(carried.arrivals_ns.values()), max(carried.arrivals_ns.values())
    begin = first + _RUN_IN_SHARE * (last - first)
    expected = [at for at in _expected(carried, device).values() if at is not None]
    return OverloadTrial(
        offered_pps=1e9 * (len(carried.arrivals_ns) - 1) / (last - first),
        expected_pps=_rate_pps(expected, begin, last),
        measured_pps=_rate_pps(list(carried.departures_ns.values()), begin, last),
    )


def _rate_pps(instants_ns: Sequence[int], begin_ns: float, end_ns: float) -> float:
    within = sorted(at for at in instants_ns if begin_ns <= at <= end_ns)
    return 1e9 * (len(within) - 1) / (within[-1] - within[0]) if len(within) > 1 else 0.0


def _bursts(bench: FidelityBench, device: ExpectedDevice, effort: FidelityBudget) -> list[FidelityBurst]:
    count = 2 * device.capacity_frames + _EXTRA_FRAMES
    train = Train(
        count=count,
        interval_ns=device.slot_ns,
        bursts=effort.bursts,
        # Long enough for the switch to become idle even if nothing is lost.
        burst_interval_ns=round(count * 1e9 / device.capacity_pps) + count * device.slot_ns + _PAUSE_NS,
    )
    carried = bench.transmit(train)
    expected = _expected(carried, device)
    bursts = []
    for first in range(0, train.frames, count):
        numbers = range(first, first + count)
        bursts.append(
            FidelityBurst(
                expected=sum(expected.get(number) is not None for number in numbers),
                passed=sum(number in carried.departures_ns for number in numbers),
            )
        )
    return bursts


def _expected(carried: FidelityResult, device: ExpectedDevice) -> dict[int, int | None]:
    """Return the departures by the profile of all frames that arrived, by number."""
    order = sorted(carried.arrivals_ns, key=lambda number: carried.arrivals_ns[number])
    departures = device.departures_ns([carried.arrivals_ns[number] for number in order])
    return dict(zip(order, departures, strict=True))
