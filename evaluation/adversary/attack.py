"""An attack on an admitted set: by the adversary, by bursts at random instants, by the paper's generator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from evaluation.adversary.admitted_set import AdmittedSet
from evaluation.adversary.carriage import CarriageResult, bursts, carried, judged
from evaluation.adversary.search import SearchResult, adversary, random_search

LOADS: Final = (0.9, 4.0)
"""Loads of the paper's generator: that of its experiments, and more than the buckets pass."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """What each way of sending found, with the same number of patterns or in the same time."""

    flows: int
    """Number of flows in the set."""
    guarantee_ms: float
    """The largest guarantee of the set."""
    adversary: SearchResult
    scattered: SearchResult
    """Bursts at independent random instants."""
    bursts: tuple[CarriageResult, ...]
    """The paper's generator at each of `LOADS`."""

    @property
    def lost(self) -> int:
        """Packets lost in the worst way of sending."""
        return max(self.adversary.damage.lost, self.scattered.damage.lost, *(run.lost for run in self.bursts))

    @property
    def worst(self) -> float:
        """The longest delay over its guarantee, in any way of sending."""
        return max(
            self.adversary.history[-1][1],
            self.scattered.history[-1][1],
            *(run.worst for run in self.bursts),
        )


def attack(case: AdmittedSet, *, generations: int, seconds: float, seed: int) -> Attack:
    """Attack an admitted set in every way. The same arguments give the same result."""
    return Attack(
        flows=len(case.admitted),
        guarantee_ms=max(admitted.guarantee_ns for admitted in case.admitted) / 1e6,
        adversary=adversary(case, generations=generations, seed=seed),
        scattered=random_search(case, generations=generations, seed=seed),
        bursts=tuple(_bursts(case, load, seconds, seed) for load in LOADS),
    )


def _bursts(case: AdmittedSet, load: float, seconds: float, seed: int) -> CarriageResult:
    traffic = bursts(case, load=load)
    return judged(case, carried(case, traffic, seed=seed, duration_ns=round(seconds * 1e9)))
