"""A traffic mix on a lab: which flows are expected between which hosts, how often, in which order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from loko.document import InputError
from loko.switch_model.flow import Flow
from loko.switch_model.mix import FlowKind, Mix
from loko.topology.lab import Lab
from loko.topology.network import Hop, ShortestPaths

_FIRST_PORT: Final = 1024
_MOST_PAIRS: Final = 250_000
_WORD: Final = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True)
class MixStream:
    """The requests of one kind between two hosts."""

    kind: FlowKind
    source: str
    destination: str
    path: tuple[Hop, ...]
    """The shortest path."""
    weight: float
    """Fraction of all requests."""

    @property
    def deadline_ns(self) -> float:
        """The longest guarantee with which a flow is worth something."""
        return math.inf if self.kind.deadline_ms is None else self.kind.deadline_ms * 1e6

    def worth(self, guarantee_ns: float) -> float:
        """Return what a flow with this guarantee is worth."""
        return self.kind.value if guarantee_ns <= self.deadline_ns else 0.0


def streams_of(lab: Lab, mix: Mix) -> tuple[MixStream, ...]:
    """Return every stream of a mix, in an order that does not depend on the mix's; weights add up to 1.

    Raises `InputError` for hosts or path lengths that the lab does not have.
    """
    total = math.fsum(kind.weight for kind in mix.kinds)
    paths = _Paths(lab)
    streams = [
        MixStream(
            kind=kind,
            source=source,
            destination=destination,
            path=paths.between(source, destination),
            weight=kind.weight / total * part,
        )
        for kind in mix.kinds
        for source, destination, part in _ends(paths, kind)
    ]
    return tuple(sorted(streams, key=_order))


def expected_requests(streams: Sequence[MixStream], count: int, sample: int = 0) -> list[tuple[Flow, int]]:
    """Draw independent requests by the weights of the streams, each with the index of its stream.

    `sample` selects one of many samples; each is the same on every machine.
    """
    reached = list(accumulate(stream.weight for stream in streams))
    requests = []
    for number in range(count):
        place = _draw(sample * _WORD // 1_000_003 + number) * reached[-1]
        chosen = _first_above(reached, place)
        stream = streams[chosen]
        flow = Flow(
            id=f"{sample}-{number}",
            source=stream.source,
            destination=stream.destination,
            udp_source=_FIRST_PORT + number,
            udp_destination=_FIRST_PORT + number,
            rate_bps=stream.kind.rate_bps,
            burst_bytes=stream.kind.burst_bytes,
            frame_bytes=stream.kind.frame_bytes,
        )
        requests.append((flow, chosen))
    return requests


def _order(stream: MixStream) -> tuple[str, str, str, float]:
    values = stream.kind.model_copy(update={"name": ""}).model_dump_json()
    return values, stream.source, stream.destination, stream.weight


def _first_above(reached: Sequence[float], place: float) -> int:
    low, high = 0, len(reached) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached[middle] > place else (middle + 1, high)
    return low


def _draw(number: int) -> float:
    """Return a pseudo-random number in [0, 1): splitmix64 (Steele, Lea, Flood 2014) of a counter."""
    word = (number + 1) * 0x9E3779B97F4A7C15 & _WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _WORD
    return ((word ^ word >> 31) >> 11) / (1 << 53)


class _Paths:
    """The shortest paths of a lab."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._shortest = ShortestPaths(lab)

    def between(self, source: str, destination: str) -> tuple[Hop, ...]:
        """Return the shortest path between two hosts. Raises `InputError` if there is none."""
        try:
            return self._shortest.between(source, destination)
        except InputError as error:
            raise InputError(f"mix: {error}") from None

    @cached_property
    def by_length(self) -> dict[int, list[tuple[str, str]]]:
        """All pairs of hosts by the links between their switches. Raises `InputError` for too many."""
        hosts = len(self._lab.hosts)
        if hosts * (hosts - 1) > _MOST_PAIRS:
            raise InputError(
                f"mix: flows between any of {hosts} hosts are more streams than the {_MOST_PAIRS} that can be"
                " weighed; say with `between` which hosts they go between"
            )
        pairs: dict[int, list[tuple[str, str]]] = {}
        for source in self._lab.hosts:
            for destination in self._lab.hosts:
                if source != destination:
                    hops = len(self.between(source, destination)) - 1
                    pairs.setdefault(hops, []).append((source, destination))
        return pairs


def _ends(paths: _Paths, kind: FlowKind) -> Iterator[tuple[str, str, float]]:
    """Yield source, destination and fraction of the kind's requests."""
    if kind.between is not None:
        total = math.fsum(between.weight for between in kind.between)
        for between in kind.between:
            yield between.source, between.destination, between.weight / total
        return
    by_length = paths.by_length
    if kind.path_lengths is None:
        every = [pair for pairs in by_length.values() for pair in pairs]
        yield from ((source, destination, 1 / len(every)) for source, destination in every)
        return
    total = math.fsum(length.weight for length in kind.path_lengths)
    for length in kind.path_lengths:
        pairs = by_length.get(length.hops)
        if not pairs:
            known = ", ".join(map(str, sorted(by_length)))
            raise InputError(f"mix: no two hosts are {length.hops} hops apart (there are: {known})")
        for source, destination in pairs:
            yield source, destination, length.weight / total / len(pairs)
