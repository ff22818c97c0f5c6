"""The rules of boards in ticks, and rules that are too weak: shares of rate and burst, and packet-granular.

A released flow counts at a switch until its last frame has arrived there; then its burst joins the switch's
backlog (docs/model.md, section 6; docs/packet-granular.md, "Flows that come and go").
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from loko_testbed.simulation.state_models.network import ModelFlow

NO_BACKLOG: Final = Fraction(-1_000_000)
"""Less than any backlog that matters."""


class BoardState(NamedTuple):
    """The flows that count, and the backlogs."""

    admitted: frozenset[int]
    draining: tuple[tuple[int, int], ...]
    """Released flows that still count somewhere, with the ticks since their release."""
    backlogs: tuple[Fraction, ...]
    """By switch, in frames."""


class ShareRule:
    """Sums of rates, and of bursts with the backlog, within what a switch can do (full-rate, fifth-rate)."""

    def __init__(self, flows: Sequence[ModelFlow], limits: Sequence[int]) -> None:
        """Take the flows that may be requested, and the frames that may wait at each switch."""
        self.flows, self.limits = tuple(flows), tuple(limits)

    def initial(self) -> BoardState:
        """Return the state without flows."""
        return BoardState(frozenset(), (), (NO_BACKLOG,) * len(self.limits))

    def admit(self, state: BoardState, number: int) -> BoardState | None:
        """Return the state with the flow; None if a switch on its path has no room."""
        for server in self.flows[number].path:
            counted = (*self._counted(state, server), number)
            if self.rate(counted) > 1 or not self.has_room(server, counted, state.backlogs[server]):
                return None
        return state._replace(admitted=state.admitted | {number})

    def release(self, state: BoardState, number: int) -> BoardState:
        """Return the state in which the flow counts where its frames may still arrive."""
        draining = tuple(sorted((*state.draining, (number, 0))))
        return self._with_backlogs(state._replace(admitted=state.admitted - {number}, draining=draining))

    def tick(self, state: BoardState) -> BoardState:
        """Return the state a tick later."""
        backlogs = tuple(
            self.backlog_after_tick(server, self._counted(state, server), backlog)
            if backlog > NO_BACKLOG
            else NO_BACKLOG
            for server, backlog in enumerate(state.backlogs)
        )
        draining = tuple((number, age + 1) for number, age in state.draining)
        return self._with_backlogs(state._replace(backlogs=backlogs, draining=draining))

    def is_draining(self, state: BoardState, number: int) -> bool:
        """Return whether the flow is released and counts at some switch."""
        return any(number == draining for draining, _ in state.draining)

    # Rules differ in these.

    def arrives_within(self, flow: ModelFlow, server: int) -> int:
        """Return the ticks from a release until the flow's last frame has arrived at a switch."""
        return sum(self.limits[passed] for passed in flow.before(server))

    def owed(self, flow: ModelFlow, server: int) -> Fraction:
        """Return what joins the backlog when a flow ceases to count."""
        return self.burst(flow, server)

    def has_room(self, server: int, counted: tuple[int, ...], backlog: Fraction) -> bool:
        """Return whether a switch can hold what these flows send, beside the backlog."""
        return self.bursts(server, counted) + max(backlog, Fraction()) <= self.limits[server]

    def backlog_after_tick(
        self,
        server: int,  # noqa: ARG002 - packet-granular admission needs it
        counted: tuple[int, ...],
        backlog: Fraction,
    ) -> Fraction:
        """Return what is left of a backlog after a tick."""
        left = backlog - self.spare_rate(counted)
        return left if left > 0 else NO_BACKLOG

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

    def _with_backlogs(self, state: BoardState) -> BoardState:
        """Return the state after flows that cease to count at a switch have joined its backlog."""
        backlogs, staying = list(state.backlogs), []
        for number, age in state.draining:
            flow = self.flows[number]
            for server in flow.path:
                if age == self.arrives_within(flow, server):
                    backlogs[server] = max(backlogs[server], Fraction()) + self.owed(flow, server)
            if age < max(self.arrives_within(flow, server) for server in flow.path):
                staying.append((number, age))
        return state._replace(backlogs=tuple(backlogs), draining=tuple(staying))


class PacketRule(ShareRule):
    """Whole frames instead of bursts (equation 1), and a backlog that may fall below 0 (D)."""

    def has_room(self, server: int, counted: tuple[int, ...], backlog: Fraction) -> bool:
        """Return whether whole frames fit at any time, and bursts beside the backlog."""
        limit, bursts = self.limits[server], self.bursts(server, counted)
        if backlog > NO_BACKLOG and bursts + backlog > limit:
            return False
        if self.rate(counted) == 1:
            return bursts <= limit
        last = math.ceil(bursts / self.spare_rate(counted))
        return all(self._frames(server, counted, ticks) - ticks <= limit for ticks in range(last + 1))

    def burst(self, flow: ModelFlow, server: int) -> Fraction:
        """Return a flow's burst at a switch: it grows by the jitter, so not by a frame's own tick."""
        jitter = sum(self.limits[passed] - 1 for passed in flow.before(server))
        return flow.burst + _refilled(flow, jitter)

    def backlog_after_tick(self, server: int, counted: tuple[int, ...], backlog: Fraction) -> Fraction:
        """Return the rest of a backlog after a tick; it matters while its sum with all bursts is above 0."""
        left = backlog - self.spare_rate(counted)
        return left if left + self.bursts(server, counted) > 0 else NO_BACKLOG

    def _frames(self, server: int, counted: tuple[int, ...], ticks: int) -> int:
        flows = [self.flows[number] for number in counted]
        return sum(math.floor(self.burst(flow, server) + _refilled(flow, ticks)) for flow in flows)


class ForgetfulBoards(ShareRule):
    """A flow that ceases to count leaves no backlog."""

    def owed(self, flow: ModelFlow, server: int) -> Fraction:  # noqa: ARG002 - as above
        """Return nothing."""
        return NO_BACKLOG


class GoneAtRelease(ShareRule):
    """A flow joins the backlogs of its whole path at its release, as if no frame were on its way."""

    def arrives_within(self, flow: ModelFlow, server: int) -> int:  # noqa: ARG002 - as above
        """Return 0."""
        return 0


class FallsAtFullRate(ShareRule):
    """The backlog falls as if the flows that count sent nothing."""

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
