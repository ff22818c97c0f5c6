"""What released flows may have left at a server: they are charged until it provably no longer matters.

A backlog outlives the flow that sent it. So a flow counts at a server until the last of its frames can have
come there; then its burst joins the *debt* K, which falls as fast as the flows that count leave the server
spare. Rule and proof: docs/packet-granular.md, and docs/model.md, section 6.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

NONE: Final = -math.inf
"""No debt: no flow was released, or whatever one had sent is served."""
_NS_PER_MS: Final = 1e6
_LONGEST_WAIT_NS: Final = 3_600_000_000_000

Kept = TypeVar("Kept")
"""What a server has noted of a flow."""


@dataclass(slots=True)
class Clock:
    """The latest instant that an admission control was told of. Its servers share it."""

    now_ns: int = 0

    def advance(self, now_ns: int) -> None:
        """Let time pass; an earlier instant changes nothing."""
        self.now_ns = max(self.now_ns, now_ns)


class Leaving(NamedTuple, Generic[Kept]):
    """A released flow at one server."""

    until_ns: int
    """It counts until then."""
    order: int
    share: float
    """Its rate, in units of the server for a nanosecond."""
    burst: float
    kept: Kept


class Debt(Generic[Kept]):
    """The released flows of one server that still count, and the debt of those that do no longer.

    Units are the server's: bytes, or nanoseconds of its CPU.
    """

    __slots__ = ("_leaving", "_order", "_since_ns", "amount", "is_open")

    def __init__(self) -> None:
        self.amount = NONE
        """K, at the instant to which it was last settled. It may be negative."""
        self.is_open = False
        """Whether time changes anything here; `settle` is to be called then, and only then."""
        self._since_ns = 0
        self._leaving: list[Leaving[Kept]] = []
        self._order = 0

    @property
    def leaving(self) -> Sequence[Leaving[Kept]]:
        """The released flows that still count."""
        return self._leaving

    def leave(self, until_ns: int, *, share: float, burst: float, kept: Kept) -> None:
        """A flow was released; it counts until `until_ns`."""
        self.is_open = True
        self._order += 1
        heapq.heappush(self._leaving, Leaving(until_ns, self._order, share, burst, kept))

    def settle(
        self,
        now_ns: int,
        spare: Callable[[], float],
        forget: Callable[[Kept], None],
        paid: Callable[[], float],
    ) -> None:
        """Let time pass. To be called before the set of flows changes, and before `amount` is read.

        `spare` is the rate that the flows that count leave, `forget` strikes off one that does no longer, and
        a debt of `paid` or less matters no longer.
        """
        while self._leaving and self._leaving[0].until_ns <= now_ns:
            one = heapq.heappop(self._leaving)
            self._fall(one.until_ns, spare())
            self.amount = max(self.amount, 0.0) + one.burst
            forget(one.kept)
        self._fall(now_ns, spare())
        if self.amount <= paid():
            self.amount = NONE
            self.is_open = bool(self._leaving)

    def _fall(self, now_ns: int, spare: float) -> None:
        passed_ns = now_ns - self._since_ns
        if passed_ns > 0:
            self.amount -= max(spare, 0.0) * passed_ns
            self._since_ns = now_ns

    def restore(self, amount: float, now_ns: int) -> None:
        """Take over a debt, as if no time had passed since it was written down."""
        self.amount, self._since_ns, self.is_open = amount, now_ns, True

    def clear(self) -> None:
        """Nothing was ever sent."""
        self.amount, self.is_open = NONE, False
        self._leaving.clear()

    def paid_ns(self, spare: float, enough: float) -> float:
        """From when on the debt is at most `enough`, if nothing else comes; infinite if never.

        Not before all released flows have ceased to count.
        """
        amount, at_ns = self.amount, self._since_ns
        for one in sorted(self._leaving):
            amount = max(amount - max(spare, 0.0) * (one.until_ns - at_ns), 0.0) + one.burst
            at_ns, spare = one.until_ns, spare + one.share
        if amount <= enough:
            return at_ns
        return at_ns + (amount - enough) / spare if spare > 0 else math.inf


def patience(now_ns: int, fits_ns: float) -> str | None:
    """The advice to wait until a flow fits; none if that takes too long to be advice."""
    wait_ns = fits_ns - now_ns
    if wait_ns > _LONGEST_WAIT_NS:
        return None
    wait_ms = max(math.floor(wait_ns / _NS_PER_MS), 0) + 1
    return f"ask again in {wait_ms} ms: until then, flows that were released count"
