"""An attack on an admitted set: worst-case search, bursts at random instants, the paper's generator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.delivery import (
    DeliveryResult,
    judge_delivery,
    random_burst_senders,
    transmit,
)
from loko_testbed.simulation.worst_case.search import SearchResult, random_search, search_worst_case

LOADS: Final = (0.9, 4.0)
"""Loads of the paper's generator: that of its experiments, and more than the buckets pass."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """Results of each way of sending, with the same number of patterns or in the same time."""

    flows: int
    """Number of flows in the set."""
    guarantee_ms: float
    """The largest guarantee of the set."""
    worst_case: SearchResult
    scattered: SearchResult
    """Bursts at independent random instants."""
    bursts: tuple[DeliveryResult, ...]
    """The paper's generator at each of `LOADS`."""

    @property
    def lost(self) -> int:
        """Packets lost in the worst way of sending."""
        return max(
            self.worst_case.damage.lost, self.scattered.damage.lost, *(run.lost for run in self.bursts)
        )

    @property
    def worst(self) -> float:
        """The longest delay over its guarantee, in any way of sending."""
        return max(
            self.worst_case.history[-1][1],
            self.scattered.history[-1][1],
            *(run.worst for run in self.bursts),
        )


def attack(case: AdmittedSet, *, generations: int, seconds: float, seed: int) -> Attack:
    """Attack an admitted set in every way. The same arguments give the same result."""
    return Attack(
        flows=len(case.admitted),
        guarantee_ms=max(admitted.guarantee_ns for admitted in case.admitted) / 1e6,
        worst_case=search_worst_case(case, generations=generations, seed=seed),
        scattered=random_search(case, generations=generations, seed=seed),
        bursts=tuple(_bursts(case, load, seconds, seed) for load in LOADS),
    )


def _bursts(case: AdmittedSet, load: float, seconds: float, seed: int) -> DeliveryResult:
    traffic = random_burst_senders(case, load=load)
    return judge_delivery(case, transmit(case, traffic, seed=seed, duration_ns=round(seconds * 1e9)))
