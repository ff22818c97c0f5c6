"""Backlog that released flows may have left at a server, charged until it provably has no effect.

A backlog outlives the flow that sent it. So a flow counts at a server until the last of its frames must have
arrived there. Then its burst joins the *residual backlog* K, which falls at the rate that the flows that
still count leave spare. Rule and proof: docs/packet-granular.md, and docs/model.md, section 6.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from loko.admission.answer import Suggestion
from loko.units import NS_PER_MS

NONE: Final = -math.inf
"""No residual backlog: no flow was released, or all that released flows have sent is served."""
_CLOCK_DRIFT: Final = 1e-3
"""How much faster the clock that is passed in may be than those of senders and boards: more than crystals are
off and NTP slews."""
_LONGEST_WAIT_NS: Final = 3_600_000_000_000

Payload = TypeVar("Payload")
"""State that a server keeps of a flow."""


@dataclass(slots=True)
class AdmissionClock:
    """The latest instant that an admission control was told. Its servers share it."""

    now_ns: int = 0

    def advance(self, now_ns: int) -> None:
        """Let time pass until `now_ns`; an earlier instant changes nothing."""
        self.now_ns = max(self.now_ns, now_ns)

    @staticmethod
    def after(begin_ns: int, duration_ns: float) -> int:
        """Return the instant by which this duration has passed by everybody's clock."""
        return begin_ns + math.ceil(duration_ns * (1 + _CLOCK_DRIFT))


class DrainingFlow(NamedTuple, Generic[Payload]):
    """A released flow at one server."""

    until_ns: int
    """The instant until which the flow counts."""
    order: int
    share: float
    """The flow's rate, in the server's units per nanosecond."""
    burst: float
    payload: Payload


class ResidualBacklog(Generic[Payload]):
    """The released flows that still count at one server, and the residual backlog of those that no longer do.

    Amounts are in the server's unit: bytes, or nanoseconds of its CPU.
    """

    __slots__ = ("_leaving", "_order", "_since_ns", "amount", "is_open")

    def __init__(self) -> None:
        self.amount = NONE
        """K, at the instant to which it was last settled. It may be negative."""
        self.is_open = False
        """Whether time changes anything here. Call `settle` if, and only if, this is set."""
        self._since_ns = 0
        self._leaving: list[DrainingFlow[Payload]] = []
        self._order = 0

    @property
    def draining(self) -> Sequence[DrainingFlow[Payload]]:
        """The released flows that still count."""
        return self._leaving

    def drain(self, until_ns: int, *, share: float, burst: float, payload: Payload) -> None:
        """Note that a flow was released; it counts until `until_ns`."""
        self.is_open = True
        self._order += 1
        heapq.heappush(self._leaving, DrainingFlow(until_ns, self._order, share, burst, payload))

    def settle(
        self,
        now_ns: int,
        spare: Callable[[], float],
        forget: Callable[[Payload], None],
        paid: Callable[[], float],
    ) -> None:
        """Let time pass. Call this before the set of flows changes, and before `amount` is read.

        `spare` gives the rate that the flows that count leave over, `forget` removes a flow that no longer
        counts, and a residual backlog of `paid` or less no longer matters.
        """
        while self._leaving and self._leaving[0].until_ns <= now_ns:
            draining = heapq.heappop(self._leaving)
            self._fall(draining.until_ns, spare())
            self.amount = max(self.amount, 0.0) + draining.burst
            forget(draining.payload)
        self._fall(now_ns, spare())
        if self.amount <= paid():
            self.amount = NONE
            self.is_open = bool(self._leaving)

    def _fall(self, now_ns: int, spare: float) -> None:
        passed_ns = now_ns - self._since_ns
        if passed_ns > 0:
            self.amount -= max(spare, 0.0) * (1 - _CLOCK_DRIFT) * passed_ns
            self._since_ns = now_ns

    def restore(self, amount: float, now_ns: int) -> None:
        """Take over a residual backlog, as if no time had passed since it was written down."""
        self.amount, self._since_ns, self.is_open = amount, now_ns, True

    def clear(self) -> None:
        """Begin anew, as if nothing had ever been sent."""
        self.amount, self.is_open = NONE, False
        self._leaving.clear()

    def falls_below_ns(self, spare: float, enough: float) -> float:
        """Return when the residual backlog has fallen to `enough`, if nothing is added; infinite if never.

        It is not before all released flows have ceased to count.
        """
        amount, at_ns = self.amount, self._since_ns
        for draining in sorted(self._leaving):
            paid = max(spare, 0.0) * (1 - _CLOCK_DRIFT) * (draining.until_ns - at_ns)
            amount, at_ns = max(amount - paid, 0.0) + draining.burst, draining.until_ns
            spare += draining.share
        if amount <= enough:
            return at_ns
        return at_ns + (amount - enough) / (spare * (1 - _CLOCK_DRIFT)) if spare > 0 else math.inf


def wait_advice(now_ns: int, fits_ns: float) -> Suggestion | None:
    """Return the advice to wait until a flow fits; None if that takes too long."""
    wait_ns = fits_ns - now_ns
    if wait_ns > _LONGEST_WAIT_NS:
        return None
    return Suggestion(wait_ms=max(math.floor(wait_ns / NS_PER_MS), 0) + 1)
