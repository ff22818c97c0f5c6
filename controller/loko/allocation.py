"""Resource allocation (section 5): how much of a switch's rate and buffer admission may give away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from loko.calculus import RateLatency, TokenBucket, bytes_in, delay_bound_ns
from loko.control_traffic import NO_INTERFERENCE, Interference
from loko.document import InputError
from loko.service import Service


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """An allocation scheme: the fraction of R that may be admitted."""

    name: str
    rate_fraction: float

    def __post_init__(self) -> None:
        if not 0 < self.rate_fraction <= 1:
            raise InputError(f"allocation '{self.name}': rate fraction {self.rate_fraction} is not in (0, 1]")


FULL_RATE: Final = Scheme(name="full-rate", rate_fraction=1.0)
FIFTH_RATE: Final = Scheme(name="fifth-rate", rate_fraction=0.2)
SCHEMES: Final[Mapping[str, Scheme]] = MappingProxyType(
    {scheme.name: scheme for scheme in (FULL_RATE, FIFTH_RATE)}
)
"""The two schemes of figure 14, by name."""


def scheme_named(name: str) -> Scheme:
    """A scheme by its name. Raises `InputError`."""
    try:
        return SCHEMES[name]
    except KeyError:
        raise InputError(f"allocation '{name}' is unknown (allowed: {', '.join(SCHEMES)})") from None


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """What admission may use of one switch, and the delay bound that holds as long as it keeps to it."""

    scheme: Scheme
    service: Service
    max_rate_bps: float
    max_burst_bytes: float
    delay_ns: float
    """D, for every frame of every flow; it does not depend on later admissions."""
    control: TokenBucket
    """(r_CP, b_CP) of equation 8: what control traffic takes, in bytes at R. The rest is without it."""
    feasible: bool
    reason: str = ""
    """Why it is not feasible."""


def allocate(service: Service, scheme: Scheme, interference: Interference = NO_INTERFERENCE) -> Allocation:
    """The largest burst for which no buffer overflows: b = B - r T0 - l, and with it D = T + b/R.

    The backlog is counted as b + r T0 + l, one whole frame above the fluid b + r T0 (docs/model.md): Table 2
    needs this; `b + r T` as section 5 words it gives the same only at full rate. Infeasible if b < l.

    What takes the CPU away from flows is reserved first (docs/model.md, section 8): its rate r_CP of R, its
    burst as time in which frames wait, b = B - r (T0 + t_CP) / (1 - r_CP / R) - l and D = T + t_CP + b/R.
    """
    left = 1 - interference.share
    rate_bps = scheme.rate_fraction * left * service.rate_bps
    frame_bytes = service.largest_frame_bytes
    latency_ns = service.latency_ns(interference)
    latency_bytes = bytes_in(rate_bps=rate_bps, duration_ns=latency_ns / left)
    burst_bytes = service.capacity_bytes - latency_bytes - frame_bytes
    feasible = burst_bytes >= frame_bytes
    usable = TokenBucket(rate_bps=rate_bps, burst_bytes=max(burst_bytes, 0.0))
    curve = RateLatency(rate_bps=service.rate_bps, latency_ns=latency_ns + service.packetisation_ns)
    return Allocation(
        scheme=scheme,
        service=service,
        max_rate_bps=rate_bps,
        max_burst_bytes=burst_bytes,
        delay_ns=delay_bound_ns(usable, curve),
        control=interference.messages.in_bytes(service.rate_bps),
        feasible=feasible,
        reason=""
        if feasible
        else f"the buffer leaves a burst of {burst_bytes:.0f} bytes, less than one frame of {frame_bytes}",
    )
