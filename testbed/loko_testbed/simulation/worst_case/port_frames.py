"""The longest delays that whole frames reach in a network of ports: found by simulation and search.

What a search finds lies below every valid bound. So it shows how much a bound may be too high, and it refutes
a bound that holds for a fluid alone. The servers are those of `loko.switch_model.calculus`, without the rest
of a switch.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, NamedTuple

from loko.switch_model.calculus import (
    PathStep,
    PortServer,
    RateLatency,
    TokenBucket,
    TotalFlow,
    UnsettledError,
)
from loko.switch_model.calculus.whole_path import whole_path_ns

SHAPES: Final = ("line", "ring", "tree", "anywhere")
_LINE_BPS: Final = 1e9
_MOST_HOPS: Final = 4
_BESIDE_BYTES: Final = 12
"""The gap that follows a frame: it is there without it."""
_MORE_FRAMES: Final = 2
"""Frames that each flow sends at its rate after its burst."""
_SHORT: Final = 0.3
"""How often a time that may vary is the shortest."""
_SAME_START: Final = 200
"""Changes without a longer delay after which the search begins elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFlow:
    """A flow of equal frames. Its first server gets its burst at once, then frames at its rate."""

    path: tuple[str, ...]
    frame_bytes: int
    """With preamble and gap, as the bucket counts."""
    bucket: TokenBucket

    def steps(self, servers: Mapping[str, PortServer]) -> tuple[PathStep, ...]:
        """Return the path as `TotalFlow` takes it."""
        return tuple(PathStep(name, self._least_ns(servers[name])) for name in self.path)

    def _least_ns(self, server: PortServer) -> float:
        sent_ns = (self.frame_bytes - _BESIDE_BYTES) * 8e9 / server.service.rate_bps
        return server.before_ns - server.spread_ns + sent_ns


class ServerVisit(NamedTuple):
    """A frame at one server of its path."""

    flow: str
    number: int
    """Of the frame, among those of its flow."""
    place: int
    """Of the server on the path."""
    arrives_ns: float
    queued_ns: float
    leaves_ns: float
    begins_busy: bool
    """Whether it comes to an idle server."""


def simulate_visits(
    servers: Mapping[str, PortServer],
    flows: Mapping[str, FrameFlow],
    begins_ns: Mapping[str, float],
    rng: Random | None = None,
) -> Iterator[ServerVisit]:
    """Yield what becomes of each frame at each server, in the order in which frames come to queues.

    Every busy period begins with the server's latency, and a frame takes the longest time on its way to the
    queue. With `rng`, either may be as short as it can be.
    """
    events: list[tuple[float, int, str, int, int, bool, float]] = []
    for name, flow in flows.items():
        begin_ns, bucket = begins_ns[name], flow.bucket
        gap_ns = flow.frame_bytes * 8e9 / bucket.rate_bps
        sends = [begin_ns] * int(bucket.burst_bytes / flow.frame_bytes + 1e-9)
        sends += [begin_ns + gap_ns * (number + 1) for number in range(_MORE_FRAMES)]
        events += [
            (at_ns, len(events) + number, name, number, 0, False, at_ns) for number, at_ns in enumerate(sends)
        ]
    heapq.heapify(events)
    count = len(events)
    free_ns: dict[str, float] = {}
    while events:
        now_ns, _, name, number, place, is_queued, since_ns = heapq.heappop(events)
        flow = flows[name]
        port = flow.path[place]
        server = servers[port]
        count += 1
        is_short = rng is not None and rng.random() < _SHORT
        if not is_queued:
            before_ns = server.before_ns - (server.spread_ns if is_short else 0.0)
            heapq.heappush(events, (now_ns + before_ns, count, name, number, place, True, now_ns))
            continue
        start_ns = free_ns.get(port, -math.inf)
        begins_busy = start_ns <= now_ns
        if begins_busy:
            start_ns = now_ns + (0.0 if is_short else server.service.latency_ns)
        free_ns[port] = left_ns = start_ns + flow.frame_bytes * 8e9 / server.service.rate_bps
        yield ServerVisit(name, number, place, since_ns, now_ns, left_ns, begins_busy)
        if place + 1 < len(flow.path):
            heapq.heappush(events, (left_ns, count, name, number, place + 1, False, left_ns))


def longest_delays_ns(
    servers: Mapping[str, PortServer],
    flows: Mapping[str, FrameFlow],
    begins_ns: Mapping[str, float],
    rng: Random | None = None,
) -> dict[str, float]:
    """Return each flow's longest delay, from a frame's arrival at its first server until it left the last.

    The arguments are those of `simulate_visits`.
    """
    since_ns: dict[tuple[str, int], float] = {}
    longest = dict.fromkeys(flows, 0.0)
    for passage in simulate_visits(servers, flows, begins_ns, rng):
        name, frame = passage.flow, (passage.flow, passage.number)
        if passage.place == 0:
            since_ns[frame] = passage.arrives_ns
        if passage.place + 1 == len(flows[name].path):
            longest[name] = max(longest[name], passage.leaves_ns - since_ns[frame])
    return longest


def search(
    servers: Mapping[str, PortServer],
    flows: Mapping[str, FrameFlow],
    worth: Callable[[Mapping[str, float]], float],
    *,
    runs: int,
    seed: int,
) -> float:
    """Return the largest worth of delays by flow that a search over the begins of bursts finds.

    The search shifts the bursts of one to three flows at a time, and begins elsewhere when that stops
    helping. The same arguments give the same result.
    """
    rng = Random(seed)
    names = list(flows)
    frame_ns = max(flow.frame_bytes * 8e9 / servers[flow.path[0]].service.rate_bps for flow in flows.values())
    span_ns = 5 * frame_ns * max(len(flow.path) for flow in flows.values())
    steps_ns = (1.0, frame_ns / 2, frame_ns, 2 * frame_ns, 5 * frame_ns)
    is_spread = any(server.spread_ns for server in servers.values())

    def tried(begins_ns: Mapping[str, float]) -> float:
        return worth(longest_delays_ns(servers, flows, begins_ns, rng if is_spread else None))

    best, failed = 0.0, _SAME_START
    begins_ns: dict[str, float] = {}
    reached = 0.0
    for _ in range(runs):
        if failed >= _SAME_START:
            begins_ns = {name: rng.uniform(0, span_ns) for name in names}
            reached, failed = tried(begins_ns), 0
        else:
            other = dict(begins_ns)
            for name in rng.sample(names, min(len(names), rng.choice((1, 1, 2, 3)))):
                if rng.random() < 0.5:
                    other[name] += rng.choice((-1, 1)) * rng.choice(steps_ns)
                else:
                    other[name] = rng.uniform(0, span_ns)
            found = tried(other)
            failed = 0 if found > reached + 1e-6 else failed + 1
            if found >= reached:
                begins_ns, reached = other, found
        best = max(best, reached)
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePathTrial:
    """A random network of ports, and how its bounds of whole paths compare."""

    seed: int
    shape: str
    worst: float
    """The longest delay that a search found, divided by its bound: at most 1 if bounds hold."""
    of_sum: float
    """The smallest ratio of a path's bound to the sum of its ports' bounds."""


def whole_path_trial(seed: int, *, runs: int) -> WholePathTrial | None:
    """Search a random network for frames that are later than the bounds of their whole paths.

    Servers have rates, latencies, and pipelines of fixed or varying times, the same everywhere or of their
    own; flows have up to two sizes of frames. None if the network has no bounds. The same arguments give the
    same result.
    """
    rng = Random(f"whole paths {seed}")
    shape, servers, flows = random_network(rng)
    paths = {name: flow.steps(servers) for name, flow in flows.items()}
    sent = [(paths[name], flow.bucket) for name, flow in flows.items()]
    network = TotalFlow(servers)
    if (bounds := find_bounds(network, sent)) is None:
        return None
    whole_ns = {name: whole_path_ns(network, path, sent, bounds) for name, path in paths.items()}
    worst = search(
        servers,
        flows,
        lambda longest: max(longest[name] / whole_ns[name] for name in flows),
        runs=runs,
        seed=seed,
    )
    of_sum = min(whole_ns[name] / sum(bounds[step.server] for step in path) for name, path in paths.items())
    return WholePathTrial(seed=seed, shape=shape, worst=worst, of_sum=of_sum)


def find_bounds(
    network: TotalFlow, sent: Iterable[tuple[Sequence[PathStep], TokenBucket]]
) -> Mapping[str, int] | None:
    """Add flows to a network and return the bounds of its servers in ns; None if it has none."""
    for path, bucket in sent:
        network.add(path, bucket)
    try:
        return network.settle(network.servers)
    except UnsettledError:
        return None


def random_network(rng: Random) -> tuple[str, dict[str, PortServer], dict[str, FrameFlow]]:
    """Draw a shape, servers by name, and flows by name."""
    shape = rng.choice(SHAPES)
    names = [f"s{number}" for number in range(rng.randint(2, 6))]
    server = _server(rng)
    is_uniform = rng.random() < 0.5
    servers = {name: server if is_uniform else _server(rng) for name in names}
    sizes = rng.choice(((1542,), (84, 1542), (330, 1542)))
    flows = {}
    for number in range(rng.randint(2, 7)):
        frame_bytes = rng.choice(sizes)
        flows[f"f{number}"] = FrameFlow(
            path=tuple(_path(rng, shape, names)),
            frame_bytes=frame_bytes,
            bucket=TokenBucket(
                rate_bps=rng.choice((1e6, 5e7, 1.5e8)), burst_bytes=frame_bytes * rng.randint(1, 4)
            ),
        )
    sized = {
        name: replace(
            server,
            frame_bytes=float(
                max((flow.frame_bytes for flow in flows.values() if name in flow.path), default=0)
            ),
        )
        for name, server in servers.items()
    }
    return shape, sized, flows


def _server(rng: Random) -> PortServer:
    rate_bps = rng.choice((_LINE_BPS, _LINE_BPS, 4e8))
    spread_ns = rng.choice((0.0, 0.0, 500.0, 12_000.0, 40_000.0))
    return PortServer(
        service=RateLatency(rate_bps=rate_bps, latency_ns=rng.choice((0.0, 2_000.0, 12_336.0))),
        line_rate_bps=rate_bps,
        before_ns=spread_ns + rng.choice((0.0, 3_000.0)),
        spread_ns=spread_ns,
    )


def _path(rng: Random, shape: str, names: Sequence[str]) -> list[str]:
    """Draw a path: along a line or a ring, to the root of a tree, or from anywhere to anywhere."""
    begin, hops = rng.randrange(len(names)), rng.randint(1, min(len(names), _MOST_HOPS))
    if shape == "line":
        return [*names[begin : begin + hops]]
    if shape == "ring":
        return [names[(begin + hop) % len(names)] for hop in range(hops)]
    if shape == "tree":
        path = [begin]
        while path[-1] > 0:
            path.append((path[-1] - 1) // 2)
        return [names[place] for place in path]
    return rng.sample(names, hops)
