"""Conformance of recorded frames to a token bucket, by the definition itself, in exact arithmetic.

Shares no code with the shaper that made them or the meter in the simulator (`zodiac_simulator::Meter`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def excess_bytes(
    sent_ns: Sequence[int], frame_bytes: int, *, rate_bps: float, burst_bytes: float
) -> Fraction:
    """Return the most by which the frames of any interval exceed burst + rate x length; conforming if <= 0.

    For all i <= j: (j - i + 1) l - r (t_j - t_i) <= b (Le Boudec and Thiran, section 1.2.2). With
    a_k = k l - r t_k that is the largest a_j - a_i + l - b, found in one pass over the least a_i so far.
    """
    rate = Fraction(rate_bps) / 8_000_000_000
    least: Fraction | None = None
    worst = Fraction(0) - Fraction(burst_bytes)
    for number, at_ns in enumerate(sent_ns):
        level = number * frame_bytes - rate * int(at_ns)
        least = level if least is None else min(least, level)
        worst = max(worst, level - least + frame_bytes - Fraction(burst_bytes))
    return worst
