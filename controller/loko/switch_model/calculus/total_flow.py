"""Total flow analysis of a network of ports, with or without cycles (docs/port-queues.md).

The bound of a port follows from the bursts that come to it, and these follow from the bounds of the ports
before. Where paths form a cycle, this is an equation d = F(d). Any d with F(d) <= d is a bound for every
port (theorem 1); the least one is found by iteration from below.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from loko.exact_sum import ExactSum
from loko.switch_model.calculus.ports import (
    Arriving,
    backlog_of_port_bytes,
    delay_of_port_ns,
    leftover_service,
    longest_busy_ns,
)
from loko.switch_model.calculus.token_buckets import RateLatency, TokenBucket, aggregate, bytes_in
from loko.units import BITS_NS_PER_BYTE_S

_ROUNDING: Final = 1e-9
"""Relative slack for rounding errors of binary fractions; bounds are rounded up to whole nanoseconds."""
_MOST_STEPS: Final = 20_000
"""Evaluations of one port's bound after which the search for a fixed point is given up."""


@dataclass(frozen=True, kw_only=True)
class PortServer:
    """A queue of a port, in the order of arrival, and the way to it."""

    service: RateLatency
    """Service curve of a port for its highest class, from a frame's arrival at the queue."""
    before_ns: float = 0.0
    """The most that a frame takes from its arrival until it is in the queue."""
    spread_ns: float = 0.0
    """By how much that time may differ between frames: so much closer they may follow each other."""
    line_rate_bps: float = math.inf
    """The rate at which its cable brings frames to the next servers."""
    above: tuple[str, ...] = ()
    """The servers of the same port that have a higher priority."""
    blocking_bytes: float = 0.0
    """The largest frame of lower priority: it is not interrupted."""
    frame_bytes: float = 0.0
    """The largest frame of flows that a cable brings, all included."""


class PathStep(NamedTuple):
    """A server on a flow's path."""

    server: str
    least_ns: float = 0.0
    """The least time from a frame's arrival at the server until it is at the next one."""


class ServerLoad(NamedTuple):
    """The frames that come to a server, and its service."""

    arriving: Sequence[Arriving]
    """By each cable."""
    service: RateLatency


class UnsettledError(Exception):
    """The bound of a server is above what it may be, or no bound is found."""

    def __init__(self, server: str, delay_ns: float) -> None:
        super().__init__(f"{server}: {delay_ns} ns")
        self.server = server
        self.delay_ns = delay_ns


@dataclass(slots=True)
class _CableLoad:
    """Arrival curve of a cable at a server: b + r (t + J), J = sum over earlier servers of (d - least)."""

    rate: ExactSum = field(default_factory=ExactSum)
    burst: ExactSum = field(default_factory=ExactSum)
    """Sum of the bursts at the sources, less r times the least times, in bytes."""
    passed: dict[str, ExactSum] = field(default_factory=dict)
    """By server passed before: the rate that has passed there."""
    flows: int = 0


class TotalFlow:
    """The flows of a network of servers, and bounds that hold for all of them.

    Rates and bursts are of what a server serves: on a cable, with preamble and gap. `bounds` is always a
    vector d with F(d) <= d, or empty.
    """

    def __init__(self, servers: Mapping[str, PortServer]) -> None:
        """Start without flows."""
        self.servers = servers
        self._below: dict[str, list[str]] = {}
        """By server: the servers of the same port that have a lower priority."""
        for name, server in servers.items():
            for higher in server.above:
                self._below.setdefault(higher, []).append(name)
        self._loads: dict[str, dict[str, _CableLoad]] = {}
        """By server, then by the server that its frames come from (empty: a source of its own)."""
        self._after: dict[str, dict[str, int]] = {}
        """By server: those whose bounds depend on its bound, with the number of flows that make it so."""
        self.bounds: dict[str, int] = {}
        """By server that has flows: a bound on the time from arrival there to arrival at the next one."""

    def add(self, steps: Sequence[PathStep], bucket: TokenBucket) -> None:
        """Note a flow. Bounds stay as they are: call `settle`."""
        self._change(steps, bucket, 1)

    def remove(self, steps: Sequence[PathStep], bucket: TokenBucket) -> None:
        """Forget a flow that was added. Bounds stay as they are, and hold: F falls with the flows."""
        self._change(steps, bucket, -1)

    def settle(
        self,
        changed: Iterable[str],
        *,
        limits_ns: Mapping[str, float] | None = None,
        start: Mapping[str, int] | None = None,
        touched: dict[str, ServerLoad] | None = None,
        most_steps: float = _MOST_STEPS,
    ) -> dict[str, int]:
        """Return the least bounds with F(d) <= d that are not below `start`, by default the present ones.

        `changed` are the servers whose flows have changed. Nothing is stored. `touched` gets the servers to
        which more may come than before, with what comes by the result; at all others nothing has changed.
        Raises `UnsettledError` as soon as a bound is above its limit, if there is none, or none after
        `most_steps` evaluations.
        """
        bounds = dict(self.bounds if start is None else start)
        limits = {} if limits_ns is None else limits_ns
        asked = dict.fromkeys(name for server in changed for name in (server, *self._below.get(server, ())))
        waiting = deque(name for name in asked if name in self._loads)
        queued = set(waiting)
        touched = {} if touched is None else touched
        steps = 0
        while waiting:
            server = waiting.popleft()
            queued.discard(server)
            # It is looked at again, if what comes to it grows.
            load = touched[server] = self.load(server, bounds)
            delay_ns = self._step_ns(server, load)
            steps += 1
            if delay_ns <= bounds.get(server, -1):
                continue
            if delay_ns > limits.get(server, math.inf) or math.isinf(delay_ns) or steps > most_steps:
                raise UnsettledError(server, delay_ns)
            bounds[server] = int(delay_ns)
            for later in self._after.get(server, ()):
                if later not in self._loads:
                    continue
                if later not in queued:
                    queued.add(later)
                    waiting.append(later)
        if start is None:  # the present bounds are those of servers that have flows
            return bounds
        return {server: bound for server, bound in bounds.items() if server in self._loads}

    def step_ns(self, server: str, bounds: Mapping[str, float]) -> float:
        """Return F(d) of one server, in whole nanoseconds; infinite if it cannot keep up."""
        return self._step_ns(server, self.load(server, bounds))

    def _step_ns(self, server: str, load: ServerLoad) -> float:
        delay_ns = delay_of_port_ns(*load)
        if math.isinf(delay_ns):
            return math.inf
        return math.ceil((self.servers[server].before_ns + delay_ns) * (1 + _ROUNDING))

    def once_more(self) -> dict[str, int]:
        """Return F(d) of all servers, never above d: the next bounds, once frames of the past are gone."""
        bounds = self.bounds
        return {name: int(min(bounds[name], self.step_ns(name, bounds))) for name in self._loads}

    def backlog_bytes(self, server: str, bounds: Mapping[str, float] | None = None) -> float:
        """Return the most that waits at a server, with the frame that is sent."""
        return backlog_of_port_bytes(*self.load(server, self.bounds if bounds is None else bounds))

    def load(self, server: str, bounds: Mapping[str, float]) -> ServerLoad:
        """Return what comes to a server and what is left for it, if these bounds hold."""
        return ServerLoad(self.arriving(server, bounds), self.service(server, bounds))

    def busy_ns(self, server: str) -> float:
        """Return how long a busy period lasts at most in which a server's frames count.

        It is one of the server, or of a lower class of its port, if the present bounds hold.
        """
        return max(
            longest_busy_ns(self.arriving(name, self.bounds), self.service(name, self.bounds))
            for name in (server, *self._below.get(server, ()))
        )

    def used_bps(self, server: str) -> float:
        """Return the rate of a server's flows together."""
        return math.fsum(load.rate.value for load in self._loads.get(server, {}).values())

    def has_flows(self, server: str) -> bool:
        """Return whether any flow passes."""
        return server in self._loads

    def service(self, server: str, bounds: Mapping[str, float]) -> RateLatency:
        """Return what strict priority leaves to a server."""
        spec = self.servers[server]
        if not spec.above and not spec.blocking_bytes:
            return spec.service
        higher = aggregate(flow.bucket for name in spec.above for flow in self.arriving(name, bounds))
        return leftover_service(spec.service, higher, blocking_bytes=spec.blocking_bytes)

    def arriving(self, server: str, bounds: Mapping[str, float]) -> list[Arriving]:
        """Return what comes to a server's queue by each cable, if these bounds hold."""
        spec = self.servers[server]
        return [
            self._by_cable(origin, load, bounds, spec) for origin, load in self._loads.get(server, {}).items()
        ]

    def _by_cable(
        self, origin: str, load: _CableLoad, bounds: Mapping[str, float], spec: PortServer
    ) -> Arriving:
        spread_ns, rate_bps = spec.spread_ns, max(0.0, load.rate.value)
        grown = [
            rate.value * bounds.get(server, 0) / BITS_NS_PER_BYTE_S for server, rate in load.passed.items()
        ]
        burst_bytes = max(0.0, math.fsum([load.burst.value, *grown]))
        # On the way to the queue frames come closer together by the spread.
        closer_bytes = bytes_in(rate_bps=rate_bps, duration_ns=spread_ns)
        spread = TokenBucket(rate_bps=rate_bps, burst_bytes=burst_bytes + closer_bytes)
        line_bps = self.servers[origin].line_rate_bps if origin else math.inf
        if math.isinf(line_bps):
            return Arriving(bucket=spread)
        return Arriving(
            bucket=spread,
            line_rate_bps=line_bps,
            line_burst_bytes=spec.frame_bytes + bytes_in(rate_bps=line_bps, duration_ns=spread_ns),
        )

    def _change(self, steps: Sequence[PathStep], bucket: TokenBucket, sign: int) -> None:
        rate_bps = sign * bucket.rate_bps
        burst_bytes = sign * bucket.burst_bytes
        for place, (server, origin) in enumerate(_with_origins(steps)):
            cables = self._loads.setdefault(server, {})
            load = cables.setdefault(origin, _CableLoad())
            load.rate.add(rate_bps)
            load.burst.add(burst_bytes)
            load.flows += sign
            for passed in steps[:place]:
                load.passed.setdefault(passed.server, ExactSum()).add(rate_bps)
                self._depend(passed.server, server, sign)
            if not load.flows:
                del cables[origin]
            if not cables:
                del self._loads[server]
                self.bounds.pop(server, None)
            burst_bytes -= bytes_in(rate_bps=1.0, duration_ns=steps[place].least_ns) * rate_bps

    def _depend(self, server: str, later: str, sign: int) -> None:
        # A lower class depends on all that its higher classes depend on.
        dependants = self._after.setdefault(server, {})
        for name in (later, *self._below.get(later, ())):
            dependants[name] = dependants.get(name, 0) + sign
            if not dependants[name]:
                del dependants[name]


def _with_origins(steps: Sequence[PathStep]) -> Iterator[tuple[str, str]]:
    origin = ""
    for step in steps:
        yield step.server, origin
        origin = step.server
