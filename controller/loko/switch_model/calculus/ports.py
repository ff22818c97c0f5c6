"""One port: several cables bring frames, one takes them away.

What a cable brings is limited twice: by the token buckets of its flows, and by its own rate ("line shaping").
The proofs are in docs/port-queues.md; the curves are those of J.-Y. Le Boudec, P. Thiran, "Network Calculus",
chapter 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loko.switch_model.calculus.token_buckets import RateLatency, TokenBucket, aggregate, bytes_in, time_ns
from loko.units import BITS_NS_PER_BYTE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Arriving:
    """Arrival curve of one cable: min(b + r t, L + C t) bytes in any closed interval of length t."""

    bucket: TokenBucket
    """b and r: of all its flows together."""
    line_rate_bps: float = math.inf
    """C: of the cable. Infinite if nothing is known of it."""
    line_burst_bytes: float = 0.0
    """L: one frame, and what may come closer together than on the cable."""

    def bytes_within(self, duration_ns: float) -> float:
        """Return the most that comes in an interval of this length."""
        # As `bytes_in` has it, but this is most of the work of a search for bounds.
        bucket, line_bps = self.bucket, self.line_rate_bps
        of_flows = bucket.burst_bytes + bucket.rate_bps * duration_ns / BITS_NS_PER_BYTE_S
        if math.isinf(line_bps):
            return of_flows
        return min(of_flows, self.line_burst_bytes + line_bps * duration_ns / BITS_NS_PER_BYTE_S)

    @property
    def bend_ns(self) -> float:
        """The length of interval from which the buckets limit more than the cable; 0 if they always do."""
        bucket = self.bucket
        if math.isinf(self.line_rate_bps) or bucket.burst_bytes <= self.line_burst_bytes:
            return 0.0
        return time_ns(
            size_bytes=bucket.burst_bytes - self.line_burst_bytes,
            rate_bps=max(0.0, self.line_rate_bps - bucket.rate_bps),
        )


def delay_of_port_ns(arriving: Sequence[Arriving], service: RateLatency) -> float:
    """Horizontal deviation, in the order of arrival: sup of T + alpha(t)/R - t; infinite if r > R.

    The supremum of this concave function is at a bend of it.
    """
    if not arriving:
        return 0.0
    if not _keeps_up(arriving, service):
        return math.inf
    return max(
        service.latency_ns + time_ns(size_bytes=_all(arriving, at_ns), rate_bps=service.rate_bps) - at_ns
        for at_ns in _bends(arriving)
    )


def backlog_of_port_bytes(arriving: Sequence[Arriving], service: RateLatency) -> float:
    """Vertical deviation: sup of alpha(t) - R max(0, t - T); infinite if r > R."""
    if not arriving:
        return 0.0
    if not _keeps_up(arriving, service):
        return math.inf
    return max(
        _all(arriving, at_ns)
        - bytes_in(rate_bps=service.rate_bps, duration_ns=max(0.0, at_ns - service.latency_ns))
        for at_ns in {*_bends(arriving), service.latency_ns}
    )


def longest_busy_ns(arriving: Sequence[Arriving], service: RateLatency, *, delay_ns: float = 0.0) -> float:
    """Return how long a busy period lasts at most, counted from a backlog that takes `delay_ns` to serve.

    It ends when all that was there, and all that came, is served: (R (d + T) + b)/(R - r).
    """
    bucket = aggregate(flow.bucket for flow in arriving)
    left_bps = service.rate_bps - bucket.rate_bps
    there_bytes = bytes_in(rate_bps=service.rate_bps, duration_ns=delay_ns + service.latency_ns)
    return time_ns(size_bytes=there_bytes + bucket.burst_bytes, rate_bps=max(0.0, left_bps))


def leftover_service(service: RateLatency, above: TokenBucket, *, blocking_bytes: float) -> RateLatency:
    """Return what strict priority leaves to a class: R' = R - r, T' = (R T + b + l)/R'.

    r and b are of all higher classes. A frame on the wire is not interrupted, so a class waits for one of a
    lower class, of at most l = `blocking_bytes`. Rate 0 and an infinite latency if the higher classes leave
    nothing.
    """
    rate_bps = service.rate_bps - above.rate_bps
    if rate_bps <= 0:
        return RateLatency(rate_bps=0.0, latency_ns=math.inf)
    waits_bytes = (
        bytes_in(rate_bps=service.rate_bps, duration_ns=service.latency_ns)
        + above.burst_bytes
        + blocking_bytes
    )
    return RateLatency(rate_bps=rate_bps, latency_ns=time_ns(size_bytes=waits_bytes, rate_bps=rate_bps))


def _keeps_up(arriving: Sequence[Arriving], service: RateLatency) -> bool:
    return service.rate_bps > 0 and math.fsum(flow.bucket.rate_bps for flow in arriving) <= service.rate_bps


def _all(arriving: Sequence[Arriving], duration_ns: float) -> float:
    return math.fsum(flow.bytes_within(duration_ns) for flow in arriving)


def _bends(arriving: Sequence[Arriving]) -> set[float]:
    return {0.0, *(bend_ns for flow in arriving if math.isfinite(bend_ns := flow.bend_ns))}
