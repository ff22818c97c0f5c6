"""How much of an expected mix fits a lab as fluid: the optimum over all splits (docs/model.md, section 13).

Bursts grow with the delays of the switches before, and these delays grow with the bursts that those switches
give away, possibly in cycles. For given loads there is a least solution: every other one has larger bursts
and delays everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.admission.optimised.streams import MixStream
from loko.switch_model.allocation import Frontier
from loko.switch_model.calculus import NOTHING, TokenBucket

Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]

STEPS: Final = 16
"""Loads are counted in 1/`STEPS` of a flow in the whole network."""
_LEAST_RATE: Final = 0.01
"""Fraction of the rate that a switch keeps even if nothing is expected there."""
_ROUNDING_BYTES: Final = 1e-7
"""Bursts are rounded up to whole bytes, but not for an excess below this, so all machines agree."""


@dataclass(frozen=True, kw_only=True)
class FluidLoad:
    """Demand of flows at every switch. It is linear in the flows."""

    rate_bps: Vector
    burst_bytes: Vector
    """Bursts before any growth."""
    growth: Vector
    """[k, j]: rate in bytes per ns of flows that reach k after j; times D_j it is their bursts' growth."""
    entries: Vector

    def __add__(self, other: FluidLoad) -> FluidLoad:
        return FluidLoad(
            rate_bps=self.rate_bps + other.rate_bps,
            burst_bytes=self.burst_bytes + other.burst_bytes,
            growth=self.growth + other.growth,
            entries=self.entries + other.entries,
        )

    def times(self, factor: float) -> FluidLoad:
        """Return the load of `factor` times as many flows."""
        return FluidLoad(
            rate_bps=factor * self.rate_bps,
            burst_bytes=factor * self.burst_bytes,
            growth=factor * self.growth,
            entries=factor * self.entries,
        )


class FluidNetwork:
    """The switches of a lab with their frontiers, and what the streams of a mix ask of them."""

    def __init__(
        self,
        frontiers: Mapping[str, Frontier],
        streams: Sequence[MixStream],
        *,
        entries: int,
        control: TokenBucket = NOTHING,
    ) -> None:
        """`control` is reserved at each switch, as by `LokoAdmission`."""
        self.names = tuple(frontiers)
        self.frontiers = tuple(frontiers.values())
        self.streams = tuple(streams)
        self._control = control
        self._entries = entries
        place = {name: number for number, name in enumerate(self.names)}
        paths = [tuple(place[hop.switch] for hop in stream.path) for stream in streams]
        groups = {path: number for number, path in enumerate(dict.fromkeys(paths))}
        self._group = np.array([groups[path] for path in paths], dtype=np.intp)
        self._paths = [np.array(path, dtype=np.intp) for path in groups]
        self._stream_rates = np.array([stream.kind.rate_bps for stream in streams])
        self._stream_bursts = np.array([stream.kind.burst_bytes for stream in streams])
        self._deadlines_ns = np.array([stream.deadline_ns for stream in streams])
        self._pressing = np.flatnonzero(np.isfinite(self._deadlines_ns))
        self.weights = np.array([stream.weight for stream in streams])
        self._max_rate_bps = np.array([each.max_rate_bps for each in self.frontiers])
        self._room_bytes = np.array([each.room_bytes for each in self.frontiers])
        self._latency_ns = np.array([each.latency_ns for each in self.frontiers])
        self._least_bytes = np.array([float(each.frame_bytes) for each in self.frontiers])
        self._empty_ns = np.array([each.empty_delay_ns for each in self.frontiers])
        self._service_bps = np.array([each.service_rate_bps for each in self.frontiers])

    def load(self, flows: Vector) -> FluidLoad:
        """Return the load of these numbers of flows, one number per stream."""
        count = len(self.names)
        rate, burst, entries = np.zeros(count), np.zeros(count), np.zeros(count)
        growth = np.zeros((count, count))
        rates, bursts, many = (
            np.bincount(self._group, weights=asked)
            for asked in (flows * self._stream_rates, flows * self._stream_bursts, flows)
        )
        for group, path in enumerate(self._paths):
            if not many[group]:
                continue
            rate[path] += rates[group]
            burst[path] += bursts[group]
            entries[path] += many[group]
            for after in range(1, len(path)):
                growth[path[after], path[:after]] += rates[group] / 8e9
        return FluidLoad(rate_bps=rate, burst_bytes=burst, growth=growth, entries=entries)

    def delays_ns(self, bursts: Vector) -> Vector:
        """Return D of each switch if the switches give away these bursts."""
        delays: Vector = self._empty_ns + bursts * 8e9 / self._service_bps
        return delays

    def rates_bps(self, bursts: Vector) -> Vector:
        """Return the largest rate of each switch together with its burst."""
        rates: Vector = np.minimum(self._max_rate_bps, (self._room_bytes - bursts) * 8e9 / self._latency_ns)
        return rates

    def spent_bursts(self, loads: Sequence[FluidLoad]) -> Vector:
        """Return the largest bursts beside the rates that loads ask for, so that both are exhausted."""
        rates = np.maximum(self._asked_bps(loads), _LEAST_RATE * self._max_rate_bps)
        bursts: Vector = np.floor(self._room_bytes - rates * self._latency_ns / 8e9 + _ROUNDING_BYTES)
        return bursts

    def least_bursts(self, loads: Sequence[FluidLoad]) -> tuple[Vector, Flags]:
        """Return the least bursts, in whole bytes, that carry each load, and the switches that cannot.

        If some cannot, the bursts are no solution, but a lower bound of it.
        """
        rates = self._asked_bps(loads)
        most = self._room_bytes - rates * self._latency_ns / 8e9 + _ROUNDING_BYTES
        stuck: Flags = rates > self._max_rate_bps * (1 + 1e-12)
        for load in loads:
            stuck |= load.entries > self._entries
        bursts = self._least_bytes
        while True:
            delays_ns, following = self.delays_ns(bursts), bursts
            for load in loads:
                asked = load.burst_bytes + self._control.burst_bytes + load.growth @ delays_ns
                following = np.maximum(following, np.ceil(asked - _ROUNDING_BYTES))
            stuck |= following > most
            if stuck.any() or (following == bursts).all():
                return following, stuck
            bursts = following

    def _asked_bps(self, loads: Sequence[FluidLoad]) -> Vector:
        asked: Vector = np.max([load.rate_bps for load in loads], axis=0) + self._control.rate_bps
        return asked

    def late(self, delays_ns: Vector) -> Flags:
        """Return which streams have a guarantee longer than their deadline."""
        late = np.zeros(len(self.streams), dtype=np.bool_)
        for number in self._pressing.tolist():
            guarantee_ns = delays_ns[self.path(number)].sum()
            late[number] = guarantee_ns > self._deadlines_ns[number]
        return late

    def path(self, stream: int) -> NDArray[np.intp]:
        """Return the switches of a stream, by number."""
        return self._paths[int(self._group[stream])]

    def crossing(self, switches: Flags) -> Flags:
        """Return the streams that cross any of these switches."""
        of_group = np.array([bool(switches[path].any()) for path in self._paths], dtype=np.bool_)
        crossed: Flags = of_group[self._group]
        return crossed


def fill(network: FluidNetwork, wanted: Flags) -> Vector:
    """Return how many flows of each wanted stream fit, raised together by their weights: max-min fair.

    Streams that share an exhausted switch stay where they are; the others are raised further. No splits at
    all fit more of the mix, in the proportions of its weights, than the first of these levels.
    """
    least = np.array([float(each.frame_bytes) for each in network.frontiers])
    free = wanted & ~network.late(network.delays_ns(least))
    flows = np.zeros(len(network.streams))
    while free.any():
        fixed = network.load(np.where(free, 0.0, flows))
        unit = network.load(np.where(free, network.weights, 0.0))
        level, blocked = _raise(network, fixed, unit, free | (flows > 0))
        flows = np.where(free, level / STEPS * network.weights, flows)
        shared = free & network.crossing(_upstream(fixed + unit, blocked))
        if not shared.any():
            break
        free &= ~shared
    return flows


def _raise(network: FluidNetwork, fixed: FluidLoad, unit: FluidLoad, used: Flags) -> tuple[int, Flags]:
    """Return the highest level of the free streams, in `STEPS` of a flow, and the switches that limit it."""

    def blocked_at(level: int) -> Flags:
        load = fixed + unit.times(level / STEPS)
        bursts, stuck = network.least_bursts([load])
        for stream in np.flatnonzero(network.late(network.delays_ns(bursts)) & used).tolist():
            stuck[network.path(stream)] = True
        return stuck

    low, high, blocked = 0, 1, blocked_at(1)
    while not blocked.any():
        low, high = high, 2 * high
        blocked = blocked_at(high)
    while high - low > 1:
        middle = (low + high) // 2
        blocked_here = blocked_at(middle)
        if blocked_here.any():
            high, blocked = middle, blocked_here
        else:
            low = middle
    return low, blocked


def _upstream(load: FluidLoad, switches: Flags) -> Flags:
    """Return these switches and all whose delay makes a burst in them grow, directly or indirectly."""
    reached = switches.copy()
    while True:
        more: Flags = reached | (load.growth[reached] > 0).any(axis=0)
        if (more == reached).all():
            return reached
        reached = more
