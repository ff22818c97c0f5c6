"""The search for the splits of all switches that accept most of an expected mix (docs/model.md, 13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from loko.admission import Admitted, LokoAdmission
from loko.admission.optimised.filling import Flags, FluidNetwork, Vector, fill
from loko.admission.optimised.streams import MixStream, expected_requests, streams_of
from loko.document import InputError
from loko.lazy_mapping import LazyMapping
from loko.switch_model.allocation import ALLOCATION_RULES, OPTIMISED, AllocationRule, Frontier
from loko.switch_model.calculus import NOTHING, TokenBucket
from loko.switch_model.control_traffic import NO_MESSAGES, ControlTraffic
from loko.switch_model.flow import Flow
from loko.switch_model.mix import Mix
from loko.switch_model.scenario import Scenario, Unknown
from loko.topology.lab import Lab
from loko.topology.lab_allocation import Allocator
from loko.topology.network import Hop

SAMPLES: Final = tuple(range(8))
"""Samples of requests that splits are compared with."""
_FITTING: Final = (8, 9)
"""Other samples, which splits are fitted to."""
_FINALISTS: Final = 5
"""How many candidates are compared with all of `SAMPLES`."""
_PARTS: Final = (1.0, 0.95, 0.88, 0.75, 0.55)
"""Fractions to try of the load that fits as fluid: whole flows may fit better with less."""
_SPARE: Final = (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Fractions of the spare buffer to give to the burst; the rest goes to the rate."""
_MOST_DEADLINES: Final = 4
_MOST_ROUNDS: Final = 6
_MOST_REQUESTS: Final = 600

Splits = Mapping[str, AllocationRule]
"""The allocation rule of each switch."""
_Rules = tuple[AllocationRule, ...]
"""Allocations in the lab's order of switches."""


@dataclass(frozen=True, order=True, kw_only=True)
class SplitScore:
    """How good splits are: larger is better."""

    value: float
    """Value of the flows accepted in all samples together."""
    strictness_ns: float
    """The negative sum of all switches' delays, which decides between equal values."""


class SplitEvaluator:
    """Evaluates splits: requests an expected mix from Loko's admission control under each of them."""

    def __init__(
        self,
        lab: Lab,
        scenario: Scenario,
        mix: Mix,
        *,
        traffic: ControlTraffic | None = NO_MESSAGES,
        control: TokenBucket = NOTHING,
    ) -> None:
        """Raises `InputError` if the mix does not fit the lab or the scenario."""
        self.lab = lab
        self.streams = streams_of(lab, mix)
        entries = [switch.profile.table.entries.value for switch in lab.switches.values()]
        self.entries = min(entries) if isinstance(scenario.entries, Unknown) else scenario.entries
        self.allocator = Allocator(lab, scenario, traffic)
        self._control = control
        self._paths = {(stream.source, stream.destination): stream.path for stream in self.streams}
        self._latest: tuple[_Rules, LokoAdmission] | None = None
        self._count = mix.requests or min(self.entries * len(lab.switches), _MOST_REQUESTS)
        self._values = np.array([stream.kind.value for stream in self.streams])
        self._known: dict[tuple[int, _Rules], Vector] = {}
        self._samples: LazyMapping[int, list[tuple[Flow, int]]] = LazyMapping(
            lambda sample: expected_requests(self.streams, self._count, sample)
        )

    def score(self, splits: Splits, samples: Sequence[int] = SAMPLES) -> SplitScore:
        """Return how much is accepted under these splits."""
        value = sum(float(self._values @ self.accepted(splits, sample)) for sample in samples)
        delays_ns = _delays_ns(self._admission(self._rules(splits)))
        return SplitScore(value=value, strictness_ns=-sum(delays_ns.values()))

    def accepted(self, splits: Splits, sample: int) -> Vector:
        """Return how many flows of each stream in a sample are accepted."""
        key = sample, self._rules(splits)
        if key not in self._known:
            self._known[key] = self._requested(self._admission(key[1]), self._samples[sample])
        return self._known[key]

    def _requested(self, admission: LokoAdmission, sample: Sequence[tuple[Flow, int]]) -> Vector:
        delays_ns = _delays_ns(admission)
        in_time = [
            stream.kind.deadline_ms is None
            or sum(delays_ns[hop.switch] for hop in stream.path) <= stream.deadline_ns
            for stream in self.streams
        ]
        flows = np.zeros(len(self.streams))
        for flow, number in sample:
            # A stream takes the shortest path, as any request without a path does.
            if in_time[number] and isinstance(admission.request(flow), Admitted):
                flows[number] += 1
        admission.release_all()
        return flows

    def _rules(self, splits: Splits) -> _Rules:
        return tuple(splits[name] for name in self.lab.switches)

    def _admission(self, rules: _Rules) -> LokoAdmission:
        """Return an empty admission control under these rules. The latest is kept, for the next sample."""
        if self._latest is None or self._latest[0] != rules:
            splits = dict(zip(self.lab.switches, rules, strict=True))
            allocations = self.allocator.allocations(splits)
            admission = LokoAdmission(self.lab, allocations, self._control, between=self._between)
            self._latest = rules, admission
        return self._latest[1]

    def _between(self, source: str, destination: str) -> tuple[Hop, ...]:
        return self._paths[source, destination]


def _delays_ns(admission: LokoAdmission) -> dict[str, float]:
    return {name: allocation.delay_ns for name, allocation in admission.allocations.items()}


def optimised_splits(
    lab: Lab,
    scenario: Scenario,
    mix: Mix,
    *,
    traffic: ControlTraffic | None = NO_MESSAGES,
    control: TokenBucket = NOTHING,
) -> dict[str, AllocationRule]:
    """Return the split of every switch that accepts most of the mix, or what is worth most.

    It accepts at least as much as either fixed scheme, and does not depend on the order of the mix's kinds.
    `traffic` and `control` are reserved as in `Allocator` and `LokoAdmission`. Raises `InputError` if nothing
    of the mix fits, or for hosts that the lab does not have.
    """
    judge = SplitEvaluator(lab, scenario, mix, traffic=traffic, control=control)
    frontiers = judge.allocator.frontiers()
    network = FluidNetwork(frontiers, judge.streams, entries=judge.entries, control=control)
    fixed: list[Splits] = [dict.fromkeys(lab.switches, scheme) for scheme in ALLOCATION_RULES.values()]
    best = max([*fixed, *_promising(judge, _fluid(network))], key=judge.score)
    for _ in range(_MOST_ROUNDS):
        # Fit to other samples than the judging ones, so that no split wins by fitting just these.
        whole = _carrying(network, [judge.accepted(best, sample) for sample in _FITTING])
        before, best = best, max([best, *_promising(judge, whole)], key=judge.score)
        if best is before:
            break
    if judge.score(best).value <= 0:
        raise InputError(
            "mix: no flow of it fits, whatever the splits are; ask for less, or for smaller tables"
        )
    return {name: _named(scheme, frontiers[name]) for name, scheme in best.items()}


def _promising(judge: SplitEvaluator, candidates: Iterable[Splits]) -> list[Splits]:
    """Return the best candidates by two of the samples."""
    return sorted(candidates, key=lambda splits: judge.score(splits, SAMPLES[:2]), reverse=True)[:_FINALISTS]


def _fluid(network: FluidNetwork) -> Iterator[Splits]:
    """Yield splits near the fluid optimum: of all streams, and without those with the tightest deadlines."""
    for wanted in _subsets(network.streams):
        flows = fill(network, wanted)
        if flows.any():
            for part in _PARTS:
                yield from _carrying(network, [part * flows])


def _subsets(streams: Sequence[MixStream]) -> Iterator[Flags]:
    tightness = np.array([stream.deadline_ns / len(stream.path) for stream in streams])
    yield np.ones(len(streams), dtype=np.bool_)
    levels = np.unique(tightness[np.isfinite(tightness)])
    for limit in levels[:_MOST_DEADLINES]:
        yield tightness > limit


def _carrying(network: FluidNetwork, sets: Sequence[Vector]) -> Iterator[Splits]:
    """Yield splits that carry each of these sets of flows: from the least to the largest possible bursts."""
    loads = [network.load(flows) for flows in sets]
    least, stuck = network.least_bursts(loads)
    if stuck.any():
        return
    spent = np.maximum(network.spent_bursts(loads), least)
    for spare in _SPARE:
        bursts = np.floor(least + spare * (spent - least))
        yield {
            name: _split(limits, float(burst))
            for name, limits, burst in zip(network.names, network.frontiers, bursts, strict=True)
        }


def _split(limits: Frontier, burst_bytes: float) -> AllocationRule:
    """Return the split with this burst and all the rate that it leaves."""
    fraction = min(1.0, limits.rate_bps(burst_bytes) / limits.max_rate_bps)
    return AllocationRule(name=OPTIMISED, rate_fraction=fraction, most_burst_bytes=burst_bytes)


def _named(scheme: AllocationRule, limits: Frontier) -> AllocationRule:
    """Return the rule under this allocation's name, even if a fixed one is the best."""
    burst_bytes = min(scheme.most_burst_bytes, limits.burst_bytes(scheme.rate_fraction * limits.max_rate_bps))
    return AllocationRule(name=OPTIMISED, rate_fraction=scheme.rate_fraction, most_burst_bytes=burst_bytes)
