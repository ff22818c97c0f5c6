"""Deterministic network calculus with token-bucket arrivals and rate-latency servers.

Source: J.-Y. Le Boudec, P. Thiran, "Network Calculus", sections 1.2-1.4. Infinite results are `math.inf`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from loko.units import BITS_PER_BYTE, NS_PER_S


def bytes_in(*, rate_bps: float, duration_ns: float) -> float:
    """Bytes that pass at a rate in a time; 0 if either is 0, even if the other is infinite."""
    if rate_bps == 0 or duration_ns == 0:
        return 0.0
    return rate_bps * duration_ns / (BITS_PER_BYTE * NS_PER_S)


def time_ns(*, size_bytes: float, rate_bps: float) -> float:
    """Time in which a rate carries a size; infinite at rate 0, unless there is nothing to carry."""
    if size_bytes == 0:
        return 0.0
    return size_bytes * BITS_PER_BYTE * NS_PER_S / rate_bps if rate_bps > 0 else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBucket:
    """Arrival curve gamma_{r,b}(t) = b + r t for t > 0. It counts frames with their FCS."""

    rate_bps: float
    burst_bytes: float

    def __post_init__(self) -> None:
        if not (self.rate_bps >= 0 and self.burst_bytes >= 0):
            raise ValueError(f"token bucket with a negative rate or burst: {self}")

    def delayed(self, delay_ns: float) -> TokenBucket:
        """Return the output bucket of an element with this delay: the burst grows by r D (section 6.1)."""
        growth = bytes_in(rate_bps=self.rate_bps, duration_ns=delay_ns)
        return TokenBucket(rate_bps=self.rate_bps, burst_bytes=self.burst_bytes + growth)


NOTHING = TokenBucket(rate_bps=0.0, burst_bytes=0.0)
"""The arrival curve of no traffic."""


@dataclass(frozen=True, kw_only=True)
class RateLatency:
    """Service curve beta_{R,T}(t) = R max(0, t - T)."""

    rate_bps: float
    latency_ns: float

    def __post_init__(self) -> None:
        if not (self.rate_bps >= 0 and self.latency_ns >= 0):
            raise ValueError(f"rate-latency server with a negative rate or latency: {self}")


def aggregate(arrivals: Iterable[TokenBucket]) -> TokenBucket:
    """Arrival curve of several flows together. The sum does not depend on their order."""
    buckets = tuple(arrivals)
    return TokenBucket(
        rate_bps=math.fsum(bucket.rate_bps for bucket in buckets),
        burst_bytes=math.fsum(bucket.burst_bytes for bucket in buckets),
    )


def backlog_bound_bytes(arrival: TokenBucket, service: RateLatency) -> float:
    """Vertical deviation: b + r T if r <= R, else infinite."""
    if arrival.rate_bps > service.rate_bps:
        return math.inf
    return arrival.burst_bytes + bytes_in(rate_bps=arrival.rate_bps, duration_ns=service.latency_ns)


def delay_bound_ns(arrival: TokenBucket, service: RateLatency) -> float:
    """Horizontal deviation: T + b/R if r <= R, else infinite; 0 without any traffic."""
    if arrival == NOTHING:
        return 0.0
    if arrival.rate_bps > service.rate_bps:
        return math.inf
    return service.latency_ns + time_ns(size_bytes=arrival.burst_bytes, rate_bps=service.rate_bps)


def output_curve(arrival: TokenBucket, service: RateLatency) -> TokenBucket:
    """Deconvolution of arrival and service: gamma_{r, b + r T} if r <= R, else an infinite burst."""
    return TokenBucket(rate_bps=arrival.rate_bps, burst_bytes=backlog_bound_bytes(arrival, service))
