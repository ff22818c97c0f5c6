"""Every run of whole frames satisfies every row of the program that bounds a path (theorem 4).

A bound that no frame exceeds may still rest on a wrong row. So each variable gets the value that a run gives
it, for every frame of random networks, and each row is looked at.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count, takewhile
from random import Random

import pytest

from loko.switch_model.calculus import PathStep, PortServer, TotalFlow, whole_path
from loko.switch_model.calculus.whole_path import (
    _FlowGroup,
    _load,
    _PathLoad,
    _PathProgram,
    _QueuePosition,
    _stretches,
)
from loko_testbed.simulation.worst_case.port_frames import (
    FrameFlow,
    ServerVisit,
    find_bounds,
    random_network,
    simulate_visits,
)

Queue = Sequence[ServerVisit]
_OTHER_BYTES = 1542.0
_ROUNDING = 1e-6
"""Of times in microseconds and sizes in kilobytes."""


class Witness(_PathProgram):
    """The program of a path, with the value that one frame of a run gives to each variable."""

    def __init__(
        self,
        load: _PathLoad,
        groups: Mapping[tuple[str, int], _FlowGroup],
        queues: Sequence[Queue],
        sizes_bytes: Mapping[str, int],
    ) -> None:
        """`queues` has the frames of each port up to the observed one; `groups` is by flow and port."""
        super().__init__(load)
        self.values: dict[int, float] = {}
        self._of_flow = groups
        self._queues = queues
        self._sizes_bytes = sizes_bytes
        self._made: list[_QueuePosition] = []
        self._after: list[int] = []
        """The frames in the next queue that its places are."""

    def broken(self) -> int:
        """Return how many rows and limits of variables do not hold."""
        program, _ = self.rows()
        values = [self.values[variable] for variable in range(len(program.lows))]
        limits = zip(program.lows, values, program.tops, strict=True)
        rows = (
            math.fsum(factor * values[at] for at, factor in terms) - limit for terms, limit in program.rows()
        )
        return sum(not low - _ROUNDING <= value <= top + _ROUNDING for low, value, top in limits) + sum(
            above > _ROUNDING for above in rows
        )

    def _observe(self) -> int:
        last = super()._observe()
        for entry, leaves, queue in zip(self._entries, self._exits, self._queues, strict=True):
            self.values[entry] = self._micros(queue[-1].queued_ns)
            self.values[leaves] = self._micros(queue[-1].leaves_ns)
        return last

    def _overtake(self, at: int) -> dict[_FlowGroup, int]:
        overtaking, queue = super()._overtake(at), self._queues[at]
        behind = [passage for passage in queue if passage.arrives_ns > queue[-1].arrives_ns]
        for group, variable in overtaking.items():
            self.values[variable] = self._kilobytes(at, behind, group)
        return overtaking

    def _place(self, at: int) -> _QueuePosition:
        place = super()._place(at)
        self._made.append(place)
        return place

    def _queue(self, at: int, after: Sequence[_QueuePosition]) -> list[_QueuePosition]:
        first, queue = len(self._made), self._queues[at]
        places = super()._queue(at, after)
        frames = [busy_since(queue, len(queue) - 1)]
        if after:
            before_ns = self._ports[at + 1].most_before * 1e3
            left_ns = [self._queues[at + 1][frame].queued_ns - before_ns for frame in self._after]
            images = [
                next(frame for frame, passage in enumerate(queue) if passage.leaves_ns >= at_ns - 1e-6)
                for at_ns in left_ns
            ]
            frames += [*images, busy_since(queue, images[0])]
        made = {id(place): frame for place, frame in zip(self._made[first:], frames, strict=True)}
        for place in places:
            frame = made[id(place)]
            self.values[place.entry] = self._micros(queue[frame].queued_ns)
            for group, variable in place.ahead.items():
                self.values[variable] = self._kilobytes(at, queue[frame:], group)
        self._after = [made[id(place)] for place in places]
        return places

    def _micros(self, at_ns: float) -> float:
        return (at_ns - self._queues[0][-1].arrives_ns) / 1e3

    def _kilobytes(self, at: int, frames: Queue, group: _FlowGroup) -> float:
        return (
            sum(self._sizes_bytes[frame.flow] for frame in frames if self._of_flow[frame.flow, at] == group)
            / 1e3
        )


def busy_since(queue: Queue, frame: int) -> int:
    """Return the frame with which the busy period of another one begins."""
    return max(number for number in range(frame + 1) if queue[number].begins_busy)


def run(
    servers: Mapping[str, PortServer], flows: Mapping[str, FrameFlow], rng: Random
) -> dict[str, list[ServerVisit]]:
    """Return the queue of each server in one run, in which many bursts meet."""
    begins_ns = {name: 0.0 if rng.random() < 0.5 else rng.uniform(0, 150_000.0) for name in flows}
    queues: dict[str, list[ServerVisit]] = {name: [] for name in servers}
    for passage in simulate_visits(servers, flows, begins_ns, rng if rng.random() < 0.7 else None):
        queues[flows[passage.flow].path[passage.place]].append(passage)
    return queues


def in_classes(
    rng: Random, servers: Mapping[str, PortServer], flows: Mapping[str, FrameFlow]
) -> tuple[dict[str, PortServer], dict[str, FrameFlow]]:
    """Return the network with a lower class at each port, which other frames block, and flows in either."""
    ports = {
        name: replace(server, service=replace(server.service, latency_ns=0.0), blocking_bytes=_OTHER_BYTES)
        for name, server in servers.items()
    }
    low = {f"{name} low": replace(server, above=(name,)) for name, server in ports.items()}
    return {**ports, **low}, {
        name: replace(flow, path=tuple(f"{port} low" for port in flow.path)) if rng.random() < 0.5 else flow
        for name, flow in flows.items()
    }


@dataclass
class PriorityPort:
    """A port that sends the frame of the highest class first, and interrupts none."""

    queues: dict[str, deque[int]]
    """By server of a class, the highest first, the visits that wait, by their number."""
    sending: str | None = None
    """The class of the frame on the wire; the empty one for other traffic."""
    is_idle: dict[str, bool] = field(default_factory=dict)
    """By class, whether no frame of it has come since no frame of it or a higher one was there."""

    def here(self, name: str) -> bool:
        """Return whether a frame of a class or a higher one waits or is sent."""
        above = [*takewhile(lambda other: other != name, self.queues), name]
        return self.sending in above or any(self.queues[other] for other in above)


def run_in_classes(
    servers: Mapping[str, PortServer], flows: Mapping[str, FrameFlow], rng: Random
) -> dict[str, list[ServerVisit]]:
    """Return the queue of each class of each port in one run, beside other frames that block ports.

    A busy period of a class begins with its first frame since none of it or of a higher class was there.
    """
    ports = {
        name: PriorityPort({name: deque(), f"{name} low": deque()}, is_idle={name: True, f"{name} low": True})
        for name in servers
        if not servers[name].above
    }
    visits: dict[str, list[ServerVisit]] = {name: [] for name in servers}
    events: list[tuple[float, int, int, str, int, int, float]] = []
    order = count()
    done, comes, queued = 0, 1, 2  # what ends at an instant ends before something begins then

    def push(at_ns: float, kind: int, name: str, number: int, place: int, since_ns: float) -> None:
        heappush(events, (at_ns, kind, next(order), name, number, place, since_ns))

    def send(port: str, now_ns: float) -> None:
        state = ports[port]
        name = next((name for name, waiting in state.queues.items() if waiting), None)
        state.sending = name
        if name is not None:
            visit = visits[name][state.queues[name][0]]
            sent_ns = flows[visit.flow].frame_bytes * 8e9 / servers[port].service.rate_bps
            push(now_ns + sent_ns, done, port, 0, 0, now_ns)

    for name, flow in flows.items():
        begin_ns = 0.0 if rng.random() < 0.5 else rng.uniform(0, 150_000.0)
        frames = round(flow.bucket.burst_bytes / flow.frame_bytes)
        gap_ns = flow.frame_bytes * 8e9 / flow.bucket.rate_bps
        sends_ns = [begin_ns] * frames + [begin_ns + gap_ns * late for late in (1, 2)]
        for number, at_ns in enumerate(sends_ns):
            push(at_ns, comes, name, number, 0, at_ns)
    while events:
        now_ns, kind, _, name, number, place, since_ns = heappop(events)
        if kind == comes:
            server = servers[flows[name].path[place]]
            before_ns = server.before_ns - server.spread_ns * rng.choice((0, 0, 1))
            push(now_ns + before_ns, queued, name, number, place, now_ns)
            continue
        if kind == queued:
            at = flows[name].path[place]
            port, state = at.removesuffix(" low"), ports[at.removesuffix(" low")]
            visits[at].append(ServerVisit(name, number, place, since_ns, now_ns, math.inf, state.is_idle[at]))
            state.is_idle[at] = False
            was_idle = state.sending is None and not any(state.queues.values())
            state.queues[at].append(len(visits[at]) - 1)
            if was_idle and rng.random() < 0.7:
                state.sending = ""
                blocked_ns = _OTHER_BYTES * 8e9 / servers[port].service.rate_bps
                push(now_ns + blocked_ns * rng.choice((1, rng.random())), done, port, 0, 0, now_ns)
            elif was_idle:
                send(port, now_ns)
            continue
        state = ports[name]
        if state.sending:
            left = state.queues[state.sending].popleft()
            visit = visits[state.sending][left] = visits[state.sending][left]._replace(leaves_ns=now_ns)
            if visit.place + 1 < len(flows[visit.flow].path):
                push(now_ns, comes, visit.flow, visit.number, visit.place + 1, now_ns)
        state.sending = None
        for each in state.queues:
            state.is_idle[each] = state.is_idle[each] or not state.here(each)
        send(name, now_ns)
    return visits


def witnesses(seed: int, *, has_classes: bool = False) -> list[Witness]:
    """Return the program of every frame of a random network; none if the network has no bounds."""
    rng = Random(f"rows {seed}")
    _, servers, flows = random_network(rng)
    if has_classes:
        servers, flows = in_classes(rng, servers, flows)
    sizes_bytes = {name: flow.frame_bytes for name, flow in flows.items()}
    steps = {name: flow.steps(servers) for name, flow in flows.items()}
    sent = [(steps[name], flow.bucket) for name, flow in flows.items()]
    network = TotalFlow(servers)
    if (bounds := find_bounds(network, sent)) is None:
        return []
    queues = (run_in_classes if has_classes else run)(servers, flows, rng)
    found = []
    for name, flow in flows.items():
        load = _load(network, steps[name], sent, bounds)
        named = {group[:3]: group for group, _ in load.groups}
        groups = {
            (other, at): named[first, last, origin]
            for other, path in steps.items()
            for first, last, origin, _ in _stretches(flow.path, path, bounds)
            for at in range(first, last + 1)
        }
        for last in (place for place, passage in enumerate(queues[flow.path[0]]) if passage.flow == name):
            frame = queues[flow.path[0]][last][:2]
            ends = [
                next(n for n, passage in enumerate(queues[port]) if passage[:2] == frame)
                for port in flow.path
            ]
            until = [queues[port][: end + 1] for port, end in zip(flow.path, ends, strict=True)]
            found.append(Witness(load, groups, until, sizes_bytes))
    return found


def test_every_run_satisfies_every_row() -> None:
    checked = 0
    for seed in range(300):
        programs = witnesses(seed)
        assert [program for program in programs if program.broken()] == [], f"network {seed}"
        checked += len(programs)
    assert checked > 2_000


def test_every_run_in_two_classes_satisfies_every_row() -> None:
    """Also of the lower class, which gets what the higher one leaves."""
    checked = 0
    for seed in range(300):
        programs = witnesses(seed, has_classes=True)
        assert [program for program in programs if program.broken()] == [], f"network {seed}"
        checked += len(programs)
    assert checked > 1_500


def test_rows_that_forget_the_higher_class_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the test above can fail."""
    real_port = whole_path._port

    def alone(network: TotalFlow, step: PathStep, bounds: Mapping[str, int]) -> whole_path._PathPort:
        spec = network.servers[step.server]
        own = {**network.servers, step.server: replace(spec, above=())}
        return real_port(TotalFlow(own), step, bounds)

    monkeypatch.setattr(whole_path, "_port", alone)
    broken = sum(program.broken() > 0 for seed in range(60) for program in witnesses(seed, has_classes=True))
    assert broken > 10
