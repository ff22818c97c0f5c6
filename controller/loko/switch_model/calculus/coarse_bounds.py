"""Coarse bounds of a network of servers: quick to keep, and enough to see that a flow fits.

Any c with F(c) <= c is at or above the least bounds, so these are within the limits if c is: "Coarse bounds"
in docs/port-queues.md. They are mostly about twice what they must be. So most flows raise none of them, and
only the servers on their paths have to be looked at.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from loko.lazy_mapping import LazyMapping
from loko.switch_model.calculus.ports import Arriving, backlog_of_port_bytes, delay_of_port_ns
from loko.switch_model.calculus.token_buckets import RateLatency, TokenBucket, bytes_in
from loko.switch_model.calculus.total_flow import PathStep, PortServer
from loko.units import BITS_NS_PER_BYTE_S

_UNITS: Final = 1 << 40
"""Of a byte. Bursts are whole numbers of these units, rates of units per nanosecond, rounded up. So taking a
flow away restores what was there."""
_MARGIN: Final = 1 + 1e-8
"""Factor for rounding errors. It is above that of `TotalFlow`, whose bounds must not be higher."""
_OVERSHOOT: Final = 2.0
"""How far bounds are raised above what they must be, so that they need not be raised again soon."""
_CLOSE_OVERSHOOT: Final = 1.05
"""How far they are raised where limits are near."""
_MOST_RAISES: Final = 2_000
"""Raised bounds after which a search is given up."""


class PassingFlow(NamedTuple):
    """A flow on a path."""

    name: str
    steps: tuple[PathStep, ...]
    bucket: TokenBucket


class CoarseBounds:
    """The flows of a network of servers, and bounds c with F(c) <= c that are within their limits.

    Several sets of flows may share them: they are for all flows of these sets together, each of which is
    counted once. F grows with the flows, so they hold for each of the sets.
    """

    def __init__(
        self,
        servers: Mapping[str, PortServer],
        *,
        limits_ns: Mapping[str, float],
        rooms_bytes: Mapping[str, float],
        most_used: float,
    ) -> None:
        """Start without flows. `limits_ns` and `rooms_bytes` limit each server's bound and backlog.

        All flows of a port may use the part `most_used` of its rate together.
        """
        self._servers: LazyMapping[str, _Server] = LazyMapping(
            lambda name: _Server(
                servers[name],
                limit_ns=limits_ns[name],
                room_bytes=rooms_bytes[name],
                most_used=most_used,
                above=[self._servers[higher] for higher in servers[name].above],
            )
        )
        self._sets_with: Counter[PassingFlow] = Counter()
        """By flow, how many sets have it."""
        self._is_valid = True
        """Whether F(c) <= c holds, and c is within the limits."""
        self.is_shared = True
        """Whether there may be several sets of flows."""
        self._empty: Callable[[], CoarseBounds] = lambda: CoarseBounds(
            servers, limits_ns=limits_ns, rooms_bytes=rooms_bytes, most_used=most_used
        )

    def fits(self, flow: PassingFlow) -> bool:
        """Return True only if all limits certainly hold with a flow, which is not added."""
        if not self._is_valid:
            return False
        if flow in self._sets_with:
            return True
        servers = [self._servers[step.server] for step in flow.steps]
        if any(server.is_exceeded_by(flow.bucket) for server in servers):
            return False
        self._count(flow, 1)
        is_fitting = _raise(servers) or _raise(servers, is_close=True)
        self._count(flow, -1)
        return is_fitting

    def add(self, flow: PassingFlow) -> None:
        """Count a flow of a set. `fits` has returned True for it, or else `reset` has to be called."""
        if flow not in self._sets_with:
            self._count(flow, 1)
        self._sets_with[flow] += 1

    def remove(self, flow: PassingFlow) -> None:
        """Forget a flow that was added. The bounds stay: F falls with the flows."""
        self._sets_with[flow] -= 1
        if not self._sets_with[flow]:
            del self._sets_with[flow]
            self._count(flow, -1)

    def rename(self, flow: PassingFlow, name: str) -> bool:
        """Give a flow of a set another name. Return False, and leave it, if that may not fit.

        It counts twice if another set goes on to have it by the former name.
        """
        renamed = flow._replace(name=name)
        if self._sets_with[flow] > 1 and not self.fits(renamed):
            return False
        self.remove(flow)
        self.add(renamed)
        return True

    def apart(self, flows: Iterable[PassingFlow], bounds: Mapping[str, int]) -> CoarseBounds:
        """Return coarse bounds for one of the sets alone, which no longer counts here; see `reset`."""
        alone = self._empty()
        alone.is_shared = False
        for flow in flows:
            self.remove(flow)
            alone.add(flow)
        alone.reset(bounds)
        return alone

    def suspend(self) -> None:
        """Vouch for no flow until `reset`: the least bounds may be above their limits."""
        self._is_valid = False

    def reset(self, bounds: Mapping[str, int]) -> None:
        """Begin anew from bounds d with F(d) <= d that are within their limits."""
        for name, server in self._servers.items():
            server.move(bounds.get(name, 0))
        servers = list(self._servers.values())
        self._is_valid = _raise(servers) or _raise(servers, is_close=True)

    def _count(self, flow: PassingFlow, sign: int) -> None:
        rate = sign * math.ceil(_rate(flow.bucket.rate_bps))
        burst = sign * math.ceil(flow.bucket.burst_bytes * _UNITS)
        passed: list[_Server] = []
        origin: _Server | None = None
        for name, least_ns in flow.steps:
            server = self._servers[name]
            cable = server.cable_from(origin)
            cable.rate += rate
            cable.burst += burst
            for earlier in passed:
                earlier.passed[cable] = earlier.passed.get(cable, 0) + rate
            burst += rate * (server.bound_ns - int(least_ns))
            passed.append(server)
            origin = server


class _Cable:
    """The flows that come to a server from another one, or from nowhere else."""

    __slots__ = ("burst", "line_burst_bytes", "line_rate_bps", "rate", "server")

    def __init__(self, server: _Server, origin: _Server | None) -> None:
        self.server = server
        self.rate = 0
        self.burst = 0
        """With what it has grown if the coarse bounds hold before."""
        self.line_rate_bps = math.inf if origin is None else origin.line_rate_bps
        self.line_burst_bytes = 0.0
        if not math.isinf(self.line_rate_bps):
            closer_bytes = bytes_in(rate_bps=self.line_rate_bps, duration_ns=server.spread_ns)
            self.line_burst_bytes = server.frame_bytes + closer_bytes

    def limited(self, burst: float) -> Arriving:
        """Return what comes with this burst at the queue, and no faster than the line carries it."""
        return Arriving(
            bucket=TokenBucket(rate_bps=_rate_bps(self.rate), burst_bytes=burst / _UNITS),
            line_rate_bps=self.line_rate_bps,
            line_burst_bytes=self.line_burst_bytes,
        )


class _Server:
    """A server with its coarse bound."""

    __slots__ = (
        "_above",
        "_before_ns",
        "_below",
        "_cables",
        "_latency_ns",
        "_most_rate",
        "_rate",
        "_room",
        "bound_ns",
        "frame_bytes",
        "limit_ns",
        "line_rate_bps",
        "passed",
        "spread_ns",
    )

    def __init__(
        self,
        spec: PortServer,
        *,
        limit_ns: float,
        room_bytes: float,
        most_used: float,
        above: Sequence[_Server],
    ) -> None:
        self.bound_ns = 0
        self.limit_ns = limit_ns
        self.line_rate_bps = spec.line_rate_bps
        self.spread_ns = spec.spread_ns
        self.frame_bytes = spec.frame_bytes
        self.passed: dict[_Cable, int] = {}
        """By cable to a later server, the rate of the flows that have passed this one."""
        self._cables: dict[_Server | None, _Cable] = {}
        self._rate, self._before_ns = _rate(spec.service.rate_bps), spec.before_ns
        self._latency_ns = spec.service.latency_ns + spec.blocking_bytes * _UNITS / self._rate
        """With the frame of lower priority that is not interrupted."""
        self._most_rate = self._rate * most_used / _MARGIN
        self._room = room_bytes * _UNITS / _MARGIN
        self._above, self._below = above, list[_Server]()
        for higher in above:
            higher._below.append(self)

    @property
    def dependants(self) -> Iterable[_Server]:
        """The servers whose bounds depend on that of this one, some of them several times."""
        for cable in self.passed:
            yield from cable.server.with_lower

    @property
    def with_lower(self) -> Sequence[_Server]:
        """The server, and those with flows of lower priority at the same port."""
        return (self, *self._below)

    def cable_from(self, origin: _Server | None) -> _Cable:
        """Return the cable from another server; None: from a source of its own."""
        cable = self._cables.get(origin)
        if cable is None:
            cable = self._cables[origin] = _Cable(self, origin)
        return cable

    def is_exceeded_by(self, bucket: TokenBucket) -> bool:
        """Return whether a flow alone is more than fits; so all sums stay of the order of the limits."""
        return _rate(bucket.rate_bps) > self._most_rate or bucket.burst_bytes * _UNITS > self._room

    def move(self, bound_ns: int) -> None:
        """Set the bound, and with it the bursts at later servers."""
        longer_ns, self.bound_ns = bound_ns - self.bound_ns, bound_ns
        if longer_ns:
            for cable, rate in self.passed.items():
                cable.burst += rate * longer_ns

    def needed_ns(self, enough_ns: float) -> float:
        """Return at least F(c) in whole nanoseconds; infinite if the rate or the room is exceeded.

        The rates of cables count only if the result would be more than `enough_ns` without them.
        """
        arriving = self._arriving()
        if not arriving:
            return 0.0
        used = burst = 0.0
        for each_rate, each_burst, _ in arriving:
            used += each_rate
            burst += each_burst
        rate, latency_ns = self._rate, self._latency_ns
        if self._above:
            higher = [flows for server in self._above for flows in server._arriving()]
            higher_rate = sum(each_rate for each_rate, _, _ in higher)
            rate -= higher_rate
            if used + higher_rate > self._most_rate:
                return math.inf
            ahead = self._rate * latency_ns + sum(each_burst for _, each_burst, _ in higher)
            latency_ns = ahead / rate
        elif used > self._most_rate:
            return math.inf
        waits_ns, backlog = burst / rate, burst + used * latency_ns
        before_ns = self._before_ns + latency_ns
        if (before_ns + waits_ns) * _MARGIN > enough_ns or backlog > self._room:
            service = RateLatency(rate_bps=_rate_bps(rate), latency_ns=latency_ns)
            limited = [cable.limited(each_burst) for _, each_burst, cable in arriving]
            waits_ns = delay_of_port_ns(limited, service) - latency_ns
            backlog = backlog_of_port_bytes(limited, service) * _UNITS
        return math.inf if backlog > self._room else math.ceil((before_ns + waits_ns) * _MARGIN)

    def _arriving(self) -> list[tuple[int, float, _Cable]]:
        """Return rate and burst by cable, with the burst that the way to the queue adds."""
        return [
            (cable.rate, max(0, cable.burst) + cable.rate * self.spread_ns, cable)
            for cable in self._cables.values()
            if cable.rate or cable.burst
        ]


def _raise(changed: Iterable[_Server], *, is_close: bool = False) -> bool:
    """Raise bounds until F(c) <= c. Return False, and leave them, if limits are in the way.

    They are raised as little as possible if `is_close`, else by much and with less work.
    """
    overshoot = _CLOSE_OVERSHOOT if is_close else _OVERSHOOT
    waiting = deque(dict.fromkeys(each for server in changed for each in server.with_lower))
    queued = set(waiting)
    former: list[tuple[_Server, int]] = []
    while waiting:
        server = waiting.popleft()
        queued.discard(server)
        enough_ns = server.bound_ns if is_close else server.limit_ns
        needed_ns = server.needed_ns(enough_ns)
        if needed_ns <= server.bound_ns:
            continue
        if needed_ns > server.limit_ns or math.isinf(needed_ns) or len(former) == _MOST_RAISES:
            for raised, bound_ns in reversed(former):
                raised.move(bound_ns)
            return False
        former.append((server, server.bound_ns))
        server.move(int(min(server.limit_ns, needed_ns * overshoot)))
        later = dict.fromkeys(each for each in server.dependants if each not in queued)
        waiting.extend(later)
        queued.update(later)
    return True


def _rate(rate_bps: float) -> float:
    """Return a rate in the units of this module."""
    return rate_bps * (_UNITS / BITS_NS_PER_BYTE_S)


def _rate_bps(rate: float) -> float:
    """Return a rate in the units of this module in bit/s."""
    return rate * (BITS_NS_PER_BYTE_S / _UNITS)
