"""The rules of boards in ticks, and rules that are too weak: shares of rate and burst, and packet-granular.

A released flow counts at a switch until its last frame has arrived there; then its burst joins the switch's
debt (docs/model.md, section 6; docs/packet-granular.md, "Flows that come and go").
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from benchmarks.evidence.models.network import ModelFlow

NO_DEBT: Final = Fraction(-1_000_000)
"""Less than any debt that matters."""


class BoardState(NamedTuple):
    """The flows that count, and the debts."""

    admitted: frozenset[int]
    draining: tuple[tuple[int, int], ...]
    """Released flows that still count somewhere, with the ticks since their release."""
    debts: tuple[Fraction, ...]
    """By switch, in frames."""


class ShareRule:
    """Sums of rates, and of bursts with the debt, within what a switch can do (full-rate, fifth-rate)."""

    def __init__(self, flows: Sequence[ModelFlow], limits: Sequence[int]) -> None:
        """Take the flows that may be requested, and the frames that may wait at each switch."""
        self.flows, self.limits = tuple(flows), tuple(limits)

    def initial(self) -> BoardState:
        """Return the state without flows."""
        return BoardState(frozenset(), (), (NO_DEBT,) * len(self.limits))

    def admit(self, state: BoardState, number: int) -> BoardState | None:
        """Return the state with the flow; None if a switch on its path has no room."""
        for server in self.flows[number].path:
            counted = (*self._counted(state, server), number)
            if self.rate(counted) > 1 or not self.has_room(server, counted, state.debts[server]):
                return None
        return state._replace(admitted=state.admitted | {number})

    def release(self, state: BoardState, number: int) -> BoardState:
        """Return the state in which the flow counts where its frames may still arrive."""
        draining = tuple(sorted((*state.draining, (number, 0))))
        return self._with_debts(state._replace(admitted=state.admitted - {number}, draining=draining))

    def tick(self, state: BoardState) -> BoardState:
        """Return the state a tick later."""
        debts = tuple(
            self.debt_after_tick(server, self._counted(state, server), debt) if debt > NO_DEBT else NO_DEBT
            for server, debt in enumerate(state.debts)
        )
        draining = tuple((number, age + 1) for number, age in state.draining)
        return self._with_debts(state._replace(debts=debts, draining=draining))

    def is_draining(self, state: BoardState, number: int) -> bool:
        """Return whether the flow is released and counts at some switch."""
        return any(number == draining for draining, _ in state.draining)

    # Rules differ in these.

    def arrives_within(self, flow: ModelFlow, server: int) -> int:
        """Return the ticks from a release until the flow's last frame has arrived at a switch."""
        return sum(self.limits[passed] for passed in flow.before(server))

    def owed(self, flow: ModelFlow, server: int) -> Fraction:
        """Return what joins the debt when a flow ceases to count."""
        return self.burst(flow, server)

    def has_room(self, server: int, counted: tuple[int, ...], debt: Fraction) -> bool:
        """Return whether a switch can hold what these flows send, beside the debt."""
        return self.bursts(server, counted) + max(debt, Fraction()) <= self.limits[server]

    def debt_after_tick(
        self,
        server: int,  # noqa: ARG002 - packet-granular admission needs it
        counted: tuple[int, ...],
        debt: Fraction,
    ) -> Fraction:
        """Return what is left of a debt after a tick."""
        left = debt - self.spare_rate(counted)
        return left if left > 0 else NO_DEBT

    def spare_rate(self, counted: tuple[int, ...]) -> Fraction:
        """Return the rate that these flows leave, in frames per tick."""
        return 1 - self.rate(counted)

    def burst(self, flow: ModelFlow, server: int) -> Fraction:
        """Return a flow's burst at a switch: it grows by the delays of the switches before."""
        jitter = sum(self.limits[passed] for passed in flow.before(server))
        return flow.burst + _refilled(flow, jitter)

    # Rules share these.

    def bursts(self, server: int, counted: tuple[int, ...]) -> Fraction:
        """Return the sum of these flows' bursts."""
        return sum((self.burst(self.flows[number], server) for number in counted), Fraction())

    def rate(self, counted: tuple[int, ...]) -> Fraction:
        """Return the sum of these flows' rates, in frames per tick."""
        return sum((_refilled(self.flows[number], 1) for number in counted), Fraction())

    def _counted(self, state: BoardState, server: int) -> tuple[int, ...]:
        """Return the flows that count at a switch: released ones until their last frame has arrived."""

        def everywhere() -> Iterator[int]:
            yield from state.admitted
            for number, age in state.draining:
                if server in (flow := self.flows[number]).path and age < self.arrives_within(flow, server):
                    yield number

        return tuple(sorted(number for number in everywhere() if server in self.flows[number].path))

    def _with_debts(self, state: BoardState) -> BoardState:
        """Return the state after flows that cease to count at a switch have joined its debt."""
        debts, staying = list(state.debts), []
        for number, age in state.draining:
            flow = self.flows[number]
            for server in flow.path:
                if age == self.arrives_within(flow, server):
                    debts[server] = max(debts[server], Fraction()) + self.owed(flow, server)
            if age < max(self.arrives_within(flow, server) for server in flow.path):
                staying.append((number, age))
        return state._replace(debts=tuple(debts), draining=tuple(staying))


class PacketRule(ShareRule):
    """Whole frames instead of bursts (equation 1), and a debt that may fall below 0 (D)."""

    def has_room(self, server: int, counted: tuple[int, ...], debt: Fraction) -> bool:
        """Return whether whole frames fit at any time, and bursts beside the debt."""
        limit, bursts = self.limits[server], self.bursts(server, counted)
        if debt > NO_DEBT and bursts + debt > limit:
            return False
        if self.rate(counted) == 1:
            return bursts <= limit
        last = math.ceil(bursts / self.spare_rate(counted))
        return all(self._frames(server, counted, ticks) - ticks <= limit for ticks in range(last + 1))

    def burst(self, flow: ModelFlow, server: int) -> Fraction:
        """Return a flow's burst at a switch: it grows by the jitter, so not by a frame's own tick."""
        jitter = sum(self.limits[passed] - 1 for passed in flow.before(server))
        return flow.burst + _refilled(flow, jitter)

    def debt_after_tick(self, server: int, counted: tuple[int, ...], debt: Fraction) -> Fraction:
        """Return what is left of a debt after a tick: it matters while its sum with all bursts is above 0."""
        left = debt - self.spare_rate(counted)
        return left if left + self.bursts(server, counted) > 0 else NO_DEBT

    def _frames(self, server: int, counted: tuple[int, ...], ticks: int) -> int:
        flows = [self.flows[number] for number in counted]
        return sum(math.floor(self.burst(flow, server) + _refilled(flow, ticks)) for flow in flows)


class ForgetfulBoards(ShareRule):
    """A flow that ceases to count leaves no debt."""

    def owed(self, flow: ModelFlow, server: int) -> Fraction:  # noqa: ARG002 - as above
        """Return nothing."""
        return NO_DEBT


class GoneAtRelease(ShareRule):
    """A flow joins the debts of its whole path at its release, as if none of its frames were on their way."""

    def arrives_within(self, flow: ModelFlow, server: int) -> int:  # noqa: ARG002 - as above
        """Return 0."""
        return 0


class FallsAtFullRate(ShareRule):
    """The debt falls as if the flows that count sent nothing."""

    def spare_rate(self, counted: tuple[int, ...]) -> Fraction:  # noqa: ARG002 - as above
        """Return all that is served."""
        return Fraction(1)


class ForgetfulPackets(ForgetfulBoards, PacketRule):
    """As `ForgetfulBoards`, with whole frames."""


class PacketsGoneAtRelease(GoneAtRelease, PacketRule):
    """As `GoneAtRelease`, with whole frames."""


def _refilled(flow: ModelFlow, ticks: int) -> Fraction:
    """Return the tokens that a flow's bucket gets in so many ticks."""
    return Fraction(ticks, flow.period) if flow.period else Fraction()
