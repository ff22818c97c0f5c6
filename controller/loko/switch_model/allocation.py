"""Resource allocation (section 5): how much of a switch's rate and buffer admission may give away."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from loko.document import InputError
from loko.switch_model.calculus import RateLatency, TokenBucket, bytes_in, delay_bound_ns, time_ns
from loko.switch_model.control_traffic import NO_INTERFERENCE, Interference
from loko.switch_model.margin import GuaranteeKind
from loko.switch_model.service_curve import SwitchService


@dataclass(frozen=True, kw_only=True)
class AllocationRule:
    """An allocation scheme: the fraction of R that may be admitted, and the largest burst beside it."""

    name: str
    rate_fraction: float
    most_burst_bytes: float = math.inf
    """Upper limit of the burst. A smaller burst makes the switch's delay bound shorter."""

    def __post_init__(self) -> None:
        if not 0 < self.rate_fraction <= 1:
            raise InputError(f"allocation '{self.name}': rate fraction {self.rate_fraction} is not in (0, 1]")


FULL_RATE: Final = AllocationRule(name="full-rate", rate_fraction=1.0)
FIFTH_RATE: Final = AllocationRule(name="fifth-rate", rate_fraction=0.2)
ALLOCATION_RULES: Final[Mapping[str, AllocationRule]] = MappingProxyType(
    {scheme.name: scheme for scheme in (FULL_RATE, FIFTH_RATE)}
)
"""The two schemes of figure 14, by name."""
OPTIMISED: Final = "optimised"
"""The scheme that is chosen for each switch and an expected traffic mix (`loko.admission.optimised`)."""
ALLOCATIONS: Final = (*ALLOCATION_RULES, OPTIMISED)
"""Every name of an allocation."""
PACKET_GRANULAR: Final = "packet-granular"
"""Name of the admission that counts whole frames (`loko.admission.packets`), and of its default
allocation."""
JOINT: Final = "joint"
"""Name of the packet-granular allocation that bounds flows from one switch together."""
WHOLE_PATHS: Final = "whole-paths"
"""Name of the allocation of ports that bounds whole paths where the ports' bounds are too much."""


def scheme_named(name: str) -> AllocationRule:
    """Return one of the two fixed schemes by its name. Raises `InputError` for any other name."""
    try:
        return ALLOCATION_RULES[name]
    except KeyError:
        raise InputError(f"allocation '{name}' is unknown (allowed: {', '.join(ALLOCATION_RULES)})") from None


def allocation_name(name: str) -> str:
    """Return the name if there is such an allocation. Raises `InputError` otherwise."""
    if name not in ALLOCATIONS:
        raise InputError(f"allocation '{name}' is unknown (allowed: {', '.join(ALLOCATIONS)})")
    return name


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """The possible splits of a switch into rate and burst: r <= `max_rate_bps` and b <= room - r T'.

    See docs/model.md, section 13.
    """

    max_rate_bps: float
    """The part of R that interference leaves to flows."""
    capacity_bytes: float
    """B."""
    latency_ns: float
    """T' = (T0 + t_CP) / (1 - r_CP / R): a rate r takes r T' of the room."""
    frame_bytes: int
    """l, the largest frame: a burst below it admits nothing."""
    empty_delay_ns: float
    """D without any burst: T0 + t_CP + l/R."""
    service_rate_bps: float
    """R, counted by the clock of the fastest sender."""

    @property
    def room_bytes(self) -> float:
        """B - l: the largest burst at rate 0."""
        return self.capacity_bytes - self.frame_bytes

    def burst_bytes(self, rate_bps: float) -> float:
        """Return the largest burst that may be admitted together with a rate."""
        latency_bytes = bytes_in(rate_bps=rate_bps, duration_ns=self.latency_ns)
        return self.capacity_bytes - latency_bytes - self.frame_bytes

    def rate_bps(self, burst_bytes: float) -> float:
        """Return the largest rate that may be admitted beside a burst; 0 or less if that is too large."""
        return min(self.max_rate_bps, (self.room_bytes - burst_bytes) * 8e9 / self.latency_ns)

    def burst_within(self, delay_ns: float) -> int:
        """Return the largest burst in whole bytes with which D is at most this; below 0 if none is."""
        return math.floor(
            bytes_in(rate_bps=self.service_rate_bps, duration_ns=delay_ns - self.empty_delay_ns)
        )

    def delay_ns(self, burst_bytes: float) -> float:
        """Return the delay bound D if bursts of this size in total are admitted."""
        return self.empty_delay_ns + time_ns(size_bytes=burst_bytes, rate_bps=self.service_rate_bps)

    def falls(
        self, rate_bps: float, burst_bytes: float, *, delay_ns: float, slack: float
    ) -> GuaranteeKind | None:
        """Return a promise that falls if this rate and burst are used, if any does.

        Promised are no loss, and at most `delay_ns`. `slack` is that of admission for rounding errors.
        """
        most = 1 + slack
        if rate_bps > self.max_rate_bps * most or burst_bytes > self.burst_bytes(rate_bps) * most:
            return GuaranteeKind.LOSS
        return GuaranteeKind.LATENESS if self.delay_ns(burst_bytes) > delay_ns * most else None


def frontier(service: SwitchService, interference: Interference = NO_INTERFERENCE) -> Frontier:
    """Return the splits of a switch that `allocate` chooses from.

    Guarantees are given to senders. So R and all times are counted by the clock of the fastest sender, while
    the board is as slow as it may be (docs/model.md, section 14).
    """
    stretch = service.profile.tolerance.stretch
    left = 1 - stretch * interference.share
    latency_ns = stretch * service.latency_ns(interference)
    rate_bps = service.rate_bps / stretch
    return Frontier(
        max_rate_bps=left * rate_bps,
        capacity_bytes=service.capacity_bytes,
        latency_ns=latency_ns / left,
        frame_bytes=service.largest_frame_bytes,
        empty_delay_ns=latency_ns + stretch * service.packetisation_ns,
        service_rate_bps=rate_bps,
    )


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """The rate and burst of one switch that admission may give away, and the delay bound that then holds."""

    scheme: AllocationRule
    service: SwitchService
    max_rate_bps: float
    """The scheme's fraction of R, reduced by how far clocks may be off (`loko.switch_model.tolerance`)."""
    max_burst_bytes: float
    delay_ns: float
    """D, for every frame of every flow; it does not depend on later admissions."""
    control: TokenBucket
    """(r_CP, b_CP) of equation 8: what control traffic takes, in bytes at R. Rate and burst exclude it."""
    splits: Frontier
    """The splits that the rate and the burst were chosen from."""
    feasible: bool
    reason: str = ""
    """Why it is not feasible; empty if it is."""


def allocate(
    service: SwitchService, scheme: AllocationRule, interference: Interference = NO_INTERFERENCE
) -> Allocation:
    """The largest burst for which no buffer overflows: b = B - r T0 - l, and with it D = T + b/R.

    The backlog is counted as b + r T0 + l, one whole frame above the fluid b + r T0 (docs/model.md): Table 2
    needs this; `b + r T` as section 5 words it gives the same only at full rate. Infeasible if b < l.

    What takes the CPU away from flows is reserved first (docs/model.md, section 8): its rate r_CP of R, its
    burst as time in which frames wait, b = B - r (T0 + t_CP) / (1 - r_CP / R) - l and D = T + t_CP + b/R.
    """
    splits = frontier(service, interference)
    rate_bps = scheme.rate_fraction * splits.max_rate_bps
    frame_bytes = service.largest_frame_bytes
    burst_bytes = min(splits.burst_bytes(rate_bps), scheme.most_burst_bytes)
    feasible = burst_bytes >= frame_bytes
    usable = TokenBucket(rate_bps=rate_bps, burst_bytes=max(burst_bytes, 0.0))
    curve = RateLatency(rate_bps=splits.service_rate_bps, latency_ns=splits.empty_delay_ns)
    return Allocation(
        scheme=scheme,
        service=service,
        max_rate_bps=rate_bps,
        max_burst_bytes=burst_bytes,
        delay_ns=delay_bound_ns(usable, curve),
        control=interference.messages.in_bytes(service.rate_bps),
        splits=splits,
        feasible=feasible,
        reason=""
        if feasible
        else f"the buffer leaves a burst of {burst_bytes:.0f} bytes, less than one frame of {frame_bytes}",
    )
