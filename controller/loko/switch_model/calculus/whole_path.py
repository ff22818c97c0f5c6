"""A bound for a whole path of ports, below the sum of their bounds (docs/port-queues.md, theorem 4).

The sum of the bounds of ports counts a burst at each of them. But frames that have waited together leave a
port one by one, and cannot wait for each other again. A linear program finds the longest delay on the path
that first in, first out, the ports' service, and what may come to the path allow. Its idea is that of
A. Bouillard, "Trade-off between accuracy and tractability of network calculus in FIFO networks" (Performance
Evaluation 153, 2022). That paper bounds a fluid; this program bounds whole frames, so it needs no correction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from loko.solvers.linear import LinearProgram
from loko.switch_model.calculus.token_buckets import TokenBucket
from loko.switch_model.calculus.total_flow import PathStep, TotalFlow

_NS: Final = 1e-3
_BYTE: Final = 1e-3
"""The program counts in microseconds and kilobytes: so its numbers are of similar sizes."""
_BPS: Final = _BYTE / 8e9 / _NS


def whole_path_ns(
    network: TotalFlow,
    path: Sequence[PathStep],
    flows: Iterable[tuple[Sequence[PathStep], TokenBucket]],
    bounds: Mapping[str, int],
) -> int:
    """Return a bound on the time from a frame's arrival at the first server until it has left the last one.

    `flows` are all flows of the network, also the frame's own; `bounds` are a vector d with F(d) <= d for
    them. The result is never above the sum of the path's bounds. It holds as long as no other flow sends.
    """
    together_ns = sum(bounds[step.server] for step in path)
    if len(path) == 1:
        return together_ns
    found = _most_ns(_load(network, path, flows, bounds))
    return math.ceil(found) if found < together_ns else together_ns


class _FlowGroup(NamedTuple):
    """Flows that pass the same stretch of the path and come to it by the same cable."""

    first: int
    last: int
    origin: str
    """The server before the stretch; empty for a source of its own."""
    line_rate: float
    """Of its cable, in the units of the program; infinite if nothing is known of it."""


class _ArrivalLine(NamedTuple):
    """The arrival curve burst + rate t, in the units of the program."""

    rate: float
    burst: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _PathPort:
    """A server of the path, in the units of the program."""

    rate: float
    latency: float
    most_before: float
    """The most that a frame takes from its arrival until it is in the queue."""
    spread: float
    waits: float
    """The most that it takes from there until it has left."""
    least: float
    """The least time of the observed frame from its arrival until it has left."""
    line_rate: float
    """Of its cable to the next server."""


class _PathLoad(NamedTuple):
    """All that the bound of a path depends on."""

    frame: float
    """The largest frame that a cable brings."""
    ports: tuple[_PathPort, ...]
    groups: tuple[tuple[_FlowGroup, _ArrivalLine], ...]


class _QueuePosition(NamedTuple):
    """A frame in a queue, not behind the observed one: variables of the program."""

    entry: int
    """When it comes to the queue."""
    ahead: Mapping[_FlowGroup, int]
    """By group, the bytes from this frame to the observed one, both included."""


class _PathProgram:
    """The linear program for one path. Its rows are numbered as in theorem 4."""

    def __init__(self, load: _PathLoad) -> None:
        self._frame, self._ports, groups = load
        self._groups = dict(groups)
        self._through = [
            [group for group in self._groups if group.first <= at <= group.last]
            for at in range(len(self._ports))
        ]
        self._together = math.fsum(port.most_before + port.waits for port in self._ports)
        self._earliest = -self._together - sum(self._busy(at) for at in range(len(self._ports)))

    def most_ns(self) -> float:
        """Return the bound, in fractions of nanoseconds; infinite if there is none."""
        if math.isinf(self._earliest):
            return math.inf
        program, last = self.rows()
        return program.most(last) / _NS

    def rows(self) -> tuple[LinearProgram, int]:
        """Return the program, and the variable that it maximises: when the observed frame has left."""
        self._program = LinearProgram()
        last = self._observe()
        places: list[_QueuePosition] = []
        for at in reversed(range(len(self._ports))):
            places = self._queue(at, places)
        return self._program, last

    def _observe(self) -> int:
        """Add when the observed frame comes to each queue and leaves it; return when it leaves the last."""
        program = self._program
        self._entries = [program.variable(0.0, self._together) for _ in self._ports]
        self._exits = [program.variable(0.0, self._together) for _ in self._ports]
        self._overtaking: list[dict[_FlowGroup, int]] = []
        before: list[tuple[int, float]] = []  # it arrives at the first server at 0
        for at, (port, entry, leaves) in enumerate(zip(self._ports, self._entries, self._exits, strict=True)):
            arrival = [(variable, -1.0) for variable, _ in before]
            departure = [(variable, 1.0) for variable, _ in before]
            program.row([(entry, 1.0), *arrival], port.most_before)
            program.row([(entry, -1.0), *departure], port.spread - port.most_before)
            program.row([(leaves, -1.0), *departure], -port.least)
            program.row([(leaves, 1.0), (entry, -1.0)], port.waits)
            program.row([(leaves, -1.0), (entry, 1.0)], 0.0)
            before = [(leaves, 1.0)]
            self._overtaking.append(self._overtake(at))
        return self._exits[-1]

    def _overtake(self, at: int) -> dict[_FlowGroup, int]:
        """Add what may overtake the observed frame between the server before and the queue (row 3)."""
        port = self._ports[at]
        if at == 0 or port.spread == 0:
            return {}
        most = self._ports[at - 1].line_rate * port.spread
        if math.isinf(most):
            most = self._most_bytes()
        overtaking = {
            group: self._program.variable(0.0, most) for group in self._through[at] if group.first < at
        }
        self._program.row([(variable, 1.0) for variable in overtaking.values()], most)
        return overtaking

    def _queue(self, at: int, after: Sequence[_QueuePosition]) -> list[_QueuePosition]:
        """Add the places in one queue that those in the next one lead to; return them, the frontmost first.

        Two busy periods count: that of the observed frame, and that of the image of the frontmost place in
        the next queue. No place is before the begin of the latter.
        """
        port, begin = self._ports[at], self._place(at)
        self._served(port, begin, [(self._exits[at], port.rate)], 0.0)
        images = [self._image(at, place) for place in after]
        if not images:
            places = [begin]
        else:
            front = self._place(at)
            left = [(after[0].entry, port.rate), *((behind, 1.0) for behind in images[0].ahead.values())]
            self._served(port, front, left, port.rate * self._ports[at + 1].most_before + self._frame)
            places = [front, *images, begin]
        for place in places[1:]:
            self._in_order(places[0], place)
        self._limit_arrivals(at, places)
        return places

    def _served(
        self, port: _PathPort, begin: _QueuePosition, left: list[tuple[int, float]], more: float
    ) -> None:
        """Limit when a frame leaves, by what comes from the begin of its busy period on (row 4)."""
        come = [(begin.entry, -port.rate), *((variable, -1.0) for variable in begin.ahead.values())]
        self._program.row([*left, *come], port.rate * port.latency + more)

    def _place(self, at: int) -> _QueuePosition:
        most = self._most_bytes()
        place = _QueuePosition(
            self._program.variable(self._earliest, self._together),
            {group: self._program.variable(0.0, most) for group in self._through[at]},
        )
        self._program.row([(place.entry, 1.0), (self._entries[at], -1.0)], 0.0)
        return place

    def _image(self, at: int, place: _QueuePosition) -> _QueuePosition:
        """Add the first frame that leaves a server when frames of a place in the next queue may (row 2)."""
        image, after = self._place(at), self._ports[at + 1]
        limit = after.most_before + self._ports[at].waits
        self._program.row([(place.entry, 1.0), (image.entry, -1.0)], limit)
        overtaking = self._overtaking[at + 1]
        for group, variable in image.ahead.items():
            if group.last > at:
                terms = [(place.ahead[group], 1.0), (variable, -1.0)]
                if group in overtaking:
                    terms.append((overtaking[group], -1.0))
                self._program.row(terms, 0.0)
        return image

    def _in_order(self, one: _QueuePosition, other: _QueuePosition) -> None:
        self._program.row([(one.entry, 1.0), (other.entry, -1.0)], 0.0)
        for group, variable in other.ahead.items():
            self._program.row([(variable, 1.0), (one.ahead[group], -1.0)], 0.0)

    def _limit_arrivals(self, at: int, places: Sequence[_QueuePosition]) -> None:
        """Limit what comes from a place to the observed frame, and from the front to a place (row 1)."""
        spread, front = self._ports[at].spread, places[0]
        for curve, groups in self._curves(at):
            limit = curve.burst + curve.rate * spread
            for place in places:
                terms = [(place.ahead[group], 1.0) for group in groups]
                since = [(self._entries[at], -curve.rate), (place.entry, curve.rate)]
                self._program.row([*terms, *since], limit)
            for place in places[1:]:
                terms = [(front.ahead[group], 1.0) for group in groups]
                terms += [(place.ahead[group], -1.0) for group in groups]
                since = [(place.entry, -curve.rate), (front.entry, curve.rate)]
                self._program.row([*terms, *since], limit)

    def _curves(self, at: int) -> Iterator[tuple[_ArrivalLine, list[_FlowGroup]]]:
        """Yield the arrival curves at a queue, each with the groups that it limits together."""
        cables: dict[tuple[str, float], list[_FlowGroup]] = {}
        for group in self._through[at]:
            if group.first == at:
                yield self._groups[group], [group]
                cables.setdefault((group.origin, group.line_rate), []).append(group)
            else:
                cables.setdefault(("", self._ports[at - 1].line_rate), []).append(group)
        for (_, rate), groups in cables.items():
            if math.isfinite(rate):
                yield _ArrivalLine(rate, self._frame), groups

    def _busy(self, at: int) -> float:
        """Return the longest time from the begin of a busy period until a frame of it comes to the queue."""
        port = self._ports[at]
        lines = [self._groups[group] for group in self._through[at]]
        left = port.rate - math.fsum(line.rate for line in lines)
        burst = math.fsum(line.burst + line.rate * self._together for line in lines)
        return (port.rate * port.latency + burst) / left if left > 0 else math.inf

    def _most_bytes(self) -> float:
        """Return the most bytes of all flows that any window of the program can hold."""
        since = self._together - self._earliest
        return math.fsum(line.burst + line.rate * since for line in self._groups.values())


@lru_cache(maxsize=4096)
def _most_ns(load: _PathLoad) -> float:
    """Return the bound of a path: of many admission decisions, few change what comes to it."""
    return _PathProgram(load).most_ns()


def _load(
    network: TotalFlow,
    path: Sequence[PathStep],
    flows: Iterable[tuple[Sequence[PathStep], TokenBucket]],
    bounds: Mapping[str, int],
) -> _PathLoad:
    names = [step.server for step in path]
    return _PathLoad(
        frame=max(network.servers[name].frame_bytes for name in names) * _BYTE,
        ports=tuple(_port(network, step, bounds) for step in path),
        groups=tuple(_groups(network, names, flows, bounds)),
    )


def _port(network: TotalFlow, step: PathStep, bounds: Mapping[str, int]) -> _PathPort:
    server, service = network.servers[step.server], network.service(step.server, bounds)
    return _PathPort(
        rate=service.rate_bps * _BPS,
        latency=service.latency_ns * _NS,
        most_before=server.before_ns * _NS,
        spread=server.spread_ns * _NS,
        waits=(bounds[step.server] - server.before_ns) * _NS,
        least=step.least_ns * _NS,
        line_rate=server.line_rate_bps * _BPS,
    )


def _groups(
    network: TotalFlow,
    names: Sequence[str],
    flows: Iterable[tuple[Sequence[PathStep], TokenBucket]],
    bounds: Mapping[str, int],
) -> Iterator[tuple[_FlowGroup, _ArrivalLine]]:
    """Yield the arrival curve of each group where it comes to the path, grown by the jitter until there."""
    lines: dict[_FlowGroup, list[_ArrivalLine]] = {}
    for steps, bucket in flows:
        for first, last, origin, jitter_ns in _stretches(names, steps, bounds):
            line_bps = network.servers[origin].line_rate_bps if origin else math.inf
            grown = bucket.delayed(max(0.0, jitter_ns))
            line = _ArrivalLine(grown.rate_bps * _BPS, grown.burst_bytes * _BYTE)
            lines.setdefault(_FlowGroup(first, last, origin, line_bps * _BPS), []).append(line)
    # Exact sums in a fixed order: so the bound does not depend on the order of the flows.
    for group in sorted(lines):
        rates, bursts = zip(*lines[group], strict=True)
        yield group, _ArrivalLine(math.fsum(rates), math.fsum(bursts))


def _stretches(
    names: Sequence[str], steps: Sequence[PathStep], bounds: Mapping[str, int]
) -> Iterator[tuple[int, int, str, float]]:
    """Yield each stretch of the path that a flow passes: its ends, the server before it, the jitter there."""
    at = 0
    while at < len(steps):
        if steps[at].server not in names:
            at += 1
            continue
        first = last = names.index(steps[at].server)
        begin = at
        at += 1
        while at < len(steps) and last + 1 < len(names) and steps[at].server == names[last + 1]:
            at, last = at + 1, last + 1
        jitter_ns = math.fsum(bounds[step.server] - step.least_ns for step in steps[:begin])
        yield first, last, steps[begin - 1].server if begin else "", jitter_ns
