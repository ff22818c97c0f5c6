"""The rule of ports (theorem 2 of docs/port-queues.md) in ticks, and rules that are too weak."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Final, NamedTuple

from loko_testbed.simulation.state_models.network import ModelFlow

_MOST_TICKS: Final = 99
"""More than any frame of these models stays: larger ages make no difference."""


class DrainingModelFlow(NamedTuple):
    """A released flow that still counts."""

    number: int
    age: int
    """Ticks since its release."""
    passage: int
    """The sum of the bounds on its path at its release, which only `FixedAtRelease` uses."""


class PortState(NamedTuple):
    """S and d."""

    admitted: frozenset[int]
    draining: tuple[DrainingModelFlow, ...]
    bounds: tuple[int, ...]
    since: int
    """Ticks since S or d changed."""

    @property
    def counted(self) -> tuple[int, ...]:
        """S."""
        return tuple(sorted({*self.admitted, *(flow.number for flow in self.draining)}))


class PortRule:
    """Bounds for all servers; a released flow counts until its frames are gone by the bounds in force."""

    def __init__(self, flows: Sequence[ModelFlow], limits: Sequence[int]) -> None:
        """Take the flows that may be requested, and the target of each server in ticks."""
        self.flows, self.limits = tuple(flows), tuple(limits)
        self._bound, self._busy = cache(self._computed_bound), cache(self._longest_busy)

    def initial(self) -> PortState:
        """Return the state without flows."""
        return PortState(frozenset(), (), (0,) * len(self.limits), 0)

    def admit(self, state: PortState, number: int) -> PortState | None:
        """Return the state with the least bounds not below those in force; None if one exceeds its target."""
        counted, bounds = (*state.counted, number), state.bounds
        while True:
            higher = tuple(map(max, bounds, self._bounds(counted, bounds)))
            if any(bound > limit for bound, limit in zip(higher, self.limits, strict=True)):
                return None
            if higher == bounds:
                return PortState(state.admitted | {number}, state.draining, bounds, 0)
            bounds = higher

    def release(self, state: PortState, number: int) -> PortState:
        """Return the state in which the flow still counts, but as a released one."""
        passage = sum(state.bounds[server] for server in self.flows[number].path)
        draining = tuple(sorted((*state.draining, DrainingModelFlow(number, 0, passage))))
        return self._settled(state._replace(admitted=state.admitted - {number}, draining=draining))

    def tick(self, state: PortState) -> PortState:
        """Return the state a tick later: flows are gone, and bounds fall, as soon as they may."""
        draining = tuple(flow._replace(age=min(flow.age + 1, _MOST_TICKS)) for flow in state.draining)
        since = min(state.since + 1, self._longest_clear(state)) if state.counted else 0
        return self._settled(state._replace(draining=draining, since=since))

    def is_draining(self, state: PortState, number: int) -> bool:
        """Return whether the flow is released and in S."""
        return any(flow.number == number for flow in state.draining)

    def is_gone(self, state: PortState, flow: DrainingModelFlow) -> bool:
        """Return whether a released flow leaves S."""
        return flow.age >= self._clear(state, flow.number)

    def may_fall(self, state: PortState) -> bool:
        """Return whether nothing that was sent before S and d last changed matters any more."""
        return state.since >= self._longest_clear(state)

    def _settled(self, state: PortState) -> PortState:
        """Return the state when no flow is gone and no bound may fall."""
        before, state = state, self._lowered(self._without_gone(state))
        return state if state == before else self._settled(state)

    def _without_gone(self, state: PortState) -> PortState:
        staying = tuple(flow for flow in state.draining if not self.is_gone(state, flow))
        if staying == state.draining:
            return state
        state = state._replace(draining=staying, since=0)
        used = {server for number in state.counted for server in self.flows[number].path}
        bounds = tuple(bound if server in used else 0 for server, bound in enumerate(state.bounds))
        return state._replace(bounds=bounds)

    def _lowered(self, state: PortState) -> PortState:
        bounds = tuple(map(min, state.bounds, self._bounds(state.counted, state.bounds)))
        if bounds == state.bounds or not self.may_fall(state):
            return state
        return state._replace(bounds=bounds, since=0)

    def _longest_clear(self, state: PortState) -> int:
        return max((self._clear(state, number) for number in state.counted), default=0)

    def _clear(self, state: PortState, number: int) -> int:
        """Return the ticks after which a frame is neither in the network nor in a present busy period."""
        passed, clear = 0, 0
        for server in self.flows[number].path:
            busy = self._busy(server, state.counted, state.bounds)
            clear = max(clear, passed + max(state.bounds[server], busy))
            passed += state.bounds[server]
        return clear

    def _bounds(self, counted: tuple[int, ...], bounds: tuple[int, ...]) -> tuple[int, ...]:
        """Return F(d)."""
        return tuple(self._bound(server, counted, bounds) for server in range(len(self.limits)))

    def _arrivals(self, server: int, counted: tuple[int, ...], bounds: tuple[int, ...], ticks: int) -> int:
        """Return the most frames that arrive at a server within so many ticks after the first one."""
        frames = 0
        for number in counted:
            flow = self.flows[number]
            if server in flow.path:
                jitter = sum(bounds[passed] - 1 for passed in flow.before(server))
                frames += flow.burst + ((ticks + jitter) // flow.period if flow.period else 0)
        return frames

    def _computed_bound(self, server: int, counted: tuple[int, ...], bounds: tuple[int, ...]) -> int:
        """Return the longest delay of a frame: more than the target if busy periods might not end."""
        if not self._keeps_up(server, counted):
            return self.limits[server] + 1
        busy = self._busy(server, counted, bounds)
        return max((self._arrivals(server, counted, bounds, at) - at for at in range(busy)), default=0)

    def _longest_busy(
        self, server: int, counted: tuple[int, ...], bounds: tuple[int, ...], waiting: int = 0
    ) -> int:
        """Return the longest busy period that begins with so many frames waiting."""
        if not any(server in self.flows[number].path for number in counted):
            return 0
        ticks = 1
        while waiting + self._arrivals(server, counted, bounds, ticks - 1) > ticks:
            ticks += 1
        return ticks

    def _keeps_up(self, server: int, counted: tuple[int, ...]) -> bool:
        periods = [flow.period for number in counted if server in (flow := self.flows[number]).path]
        return sum(Fraction(1, period) for period in periods if period) < 1


class ForgetfulPorts(PortRule):
    """A released flow counts no more."""

    def is_gone(self, state: PortState, flow: DrainingModelFlow) -> bool:  # noqa: ARG002 - as above
        """Return True."""
        return True


class FixedAtRelease(PortRule):
    """A released flow is gone after the sum of the bounds at its release and a busy period."""

    def is_gone(self, state: PortState, flow: DrainingModelFlow) -> bool:
        """Return whether this time is over, whatever has been admitted since the release."""
        busy = max(
            self._busy(server, state.counted, state.bounds, state.bounds[server])
            for server in self.flows[flow.number].path
        )
        return flow.age >= flow.passage + busy


class WithoutBusyPeriods(PortRule):
    """A released flow counts until its frames have left, although frames that they delayed may still wait."""

    def is_gone(self, state: PortState, flow: DrainingModelFlow) -> bool:
        """Return whether its frames have left by the bounds in force."""
        return flow.age >= sum(state.bounds[server] for server in self.flows[flow.number].path)


class FallsAtOnce(PortRule):
    """Bounds fall as soon as a flow leaves S, although its frames have pushed others together."""

    def may_fall(self, state: PortState) -> bool:  # noqa: ARG002 - as above
        """Return True."""
        return True
