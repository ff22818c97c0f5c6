"""Equation 8: how the evaluation shares one switch's allocation among its flows (section 6.1).

Two local flows enter each switch, (r1, b1) and (r2, b2), and the same two from the other switch with their
bursts grown by r D. Together with the control traffic, they use up exactly what is allocated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from loko.document import InputError
from loko.switch_model.allocation import Allocation
from loko.switch_model.calculus import NOTHING, TokenBucket, bytes_in

ECHO_BYTES: Final = 66
"""b_CP of section 6.1: an EchoRequest's TCP/IP frame, without FCS."""


def echo_traffic(echoes_per_s: float) -> TokenBucket:
    """Return (r_CP, b_CP) of EchoRequests at a rate; no traffic at rate 0 (section 6.1).

    This is known to be too low: it charges 44.6 us per message at R = 11.8 Mbit/s, and a BarrierRequest takes
    92 us.
    """
    if not 0 <= echoes_per_s < math.inf:
        raise InputError(f"echo requests per second: {echoes_per_s} is no rate; give 0 or more")
    if echoes_per_s == 0:
        return NOTHING
    return TokenBucket(rate_bps=ECHO_BYTES * 8 * echoes_per_s, burst_bytes=ECHO_BYTES)


@dataclass(frozen=True, kw_only=True)
class Split:
    """The two token buckets of equation 8. With N = 0 the first flow sends nothing."""

    first: TokenBucket
    second: TokenBucket
    feasible: bool
    reason: str = ""
    """Why it is not feasible (section 6.1.1); empty if it is."""


def split(allocation: Allocation, *, ratio: float, control: TokenBucket = NOTHING) -> Split:
    """r2 = (R - r_CP) / (2N + 2), b2 = (B - b_CP - r2 D (N + 1)) / (2N + 2), r1 = N r2, b1 = N b2.

    R, B and D are those of the allocation, N is `ratio`. Infeasible if a flow that sends has less burst than
    one frame. Raises `InputError` for a negative ratio.
    """
    if ratio < 0:
        raise InputError(f"ratio N = {ratio} is negative; give 0 or more")
    parts = 2 * ratio + 2
    rate_bps = (allocation.max_rate_bps - control.rate_bps) / parts
    growth_bytes = bytes_in(rate_bps=rate_bps, duration_ns=allocation.delay_ns) * (ratio + 1)
    burst_bytes = (allocation.max_burst_bytes - control.burst_bytes - growth_bytes) / parts
    frame_bytes = allocation.service.largest_frame_bytes
    bursts = [burst_bytes] if ratio == 0 else [burst_bytes, ratio * burst_bytes]
    feasible = allocation.feasible and rate_bps > 0 and min(bursts) >= frame_bytes
    reason = allocation.reason
    if allocation.feasible and not feasible:
        reason = (
            f"N = {ratio:g} leaves {rate_bps:.0f} bit/s and a burst of {min(bursts):.1f} bytes to a flow,"
            f" a frame has {frame_bytes}"
        )
    usable = TokenBucket(rate_bps=max(rate_bps, 0.0), burst_bytes=max(burst_bytes, 0.0))
    return Split(
        first=TokenBucket(rate_bps=ratio * usable.rate_bps, burst_bytes=ratio * usable.burst_bytes),
        second=usable,
        feasible=feasible,
        reason=reason,
    )
