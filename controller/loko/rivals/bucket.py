"""A token bucket that flows share: an output port of Silo's, a host of QJump's."""

from __future__ import annotations

import math

from loko.admission.debt import Clock, Debt
from loko.admission.exact import ExactSum

_BITS_NS_PER_BYTE_S = 8e9


class SharedBucket:
    """Sums of rates and of bursts, and what released flows may have left (docs/model.md, section 6)."""

    def __init__(self, *, rate_bps: float, burst_bytes: float, clock: Clock) -> None:
        """The limits are those of the sums."""
        self.rate_bps = rate_bps
        self.burst_bytes = burst_bytes
        self._clock = clock
        self._rate, self._burst = ExactSum(), ExactSum()
        self._debt: Debt[tuple[float, float]] = Debt()

    def used(self) -> tuple[float, float]:
        """Rate in bit/s and burst in bytes, of flows and of what they have left."""
        owed_bytes = self.debt_bytes()  # settles the sums
        return self._rate.value, self._burst.value + owed_bytes

    def owes(self) -> bool:
        """Whether what was released matters still."""
        if self._debt.is_open:
            self._debt.settle(self._clock.now_ns, self._spare, self._forget, lambda: 0.0)
        return self._debt.is_open

    def debt_bytes(self) -> float:
        """Of flows that were released and count no longer; 0 if there is none."""
        return max(self._debt.amount, 0.0) if self.owes() else 0.0

    def restore(self, debt_bytes: float) -> None:
        """Take over a debt as of now."""
        self._debt.restore(debt_bytes, self._clock.now_ns)

    def add(self, rate_bps: float, burst_bytes: float) -> None:
        """Note a flow."""
        self.owes()
        self._rate.add(rate_bps)
        self._burst.add(burst_bytes)

    def remove(self, rate_bps: float, burst_bytes: float) -> None:
        """Forget a flow that has sent nothing."""
        self.owes()
        self._forget((rate_bps, burst_bytes))

    def leave(self, until_ns: int, rate_bps: float, burst_bytes: float) -> None:
        """A flow was released; it counts until then."""
        share = rate_bps / _BITS_NS_PER_BYTE_S
        self._debt.leave(until_ns, share=share, burst=burst_bytes, kept=(rate_bps, burst_bytes))

    def clear(self) -> None:
        """Nothing was ever sent."""
        self._rate, self._burst = ExactSum(), ExactSum()
        self._debt.clear()

    def fits_ns(self, rate_bps: float, burst_bytes: float) -> float:
        """From when on a flow fits, if nothing else comes; infinite if it does not even then."""
        leaving = [one.kept for one in self._debt.leaving]
        left_bps = self.rate_bps - math.fsum([self._rate.value, rate_bps, *(-rate for rate, _ in leaving)])
        enough = self.burst_bytes - math.fsum(
            [self._burst.value, burst_bytes, *(-burst for _, burst in leaving)]
        )
        return math.inf if left_bps < 0 or enough < 0 else self._debt.paid_ns(self._spare(), enough)

    def _spare(self) -> float:
        return (self.rate_bps - self._rate.value) / _BITS_NS_PER_BYTE_S

    def _forget(self, kept: tuple[float, float]) -> None:
        rate_bps, burst_bytes = kept
        self._rate.remove(rate_bps)
        self._burst.remove(burst_bytes)
