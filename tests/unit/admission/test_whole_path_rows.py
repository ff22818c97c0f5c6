"""Every run of whole frames satisfies every row of the program that bounds a path (theorem 4).

A bound that no frame exceeds may still rest on a wrong row. So each variable gets the value that a run gives
it, for every frame of random networks, and each row is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random

from loko.switch_model.calculus import PortServer, TotalFlow
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


def witnesses(seed: int) -> list[Witness]:
    """Return the program of every frame of a random network; none if the network has no bounds."""
    rng = Random(f"rows {seed}")
    _, servers, flows = random_network(rng)
    sizes_bytes = {name: flow.frame_bytes for name, flow in flows.items()}
    steps = {name: flow.steps(servers) for name, flow in flows.items()}
    sent = [(steps[name], flow.bucket) for name, flow in flows.items()]
    network = TotalFlow(servers)
    if (bounds := find_bounds(network, sent)) is None:
        return []
    queues = run(servers, flows, rng)
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
