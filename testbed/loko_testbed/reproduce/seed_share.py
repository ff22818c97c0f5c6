"""Judge a claim that depends on chance by the share of seeds at which it holds."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Final

from loko_testbed.reproduce.result import SeedVerdict

_TAIL: Final = 0.025
"""Probability beyond each end of an interval that covers 95 %."""
_HALVINGS: Final = 50


def verdict_of(held: int, seeds: int) -> SeedVerdict:
    """Return the verdict on a claim that holds at `held` of `seeds` seeds."""
    low, high = share_interval(held, seeds)
    return SeedVerdict(seeds=seeds, held=held, low=low, high=high)


def share_interval(held: int, seeds: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share, to four decimals.

    It is that of Clopper and Pearson (Biometrika 26, 1934), which covers the share of all seeds at least so
    often, however few are tried.
    """
    low = 0.0 if held == 0 else _root(lambda share: _at_least(held, seeds, share) - _TAIL)
    high = 1.0 if held == seeds else _root(lambda share: _at_least(held + 1, seeds, share) - 1 + _TAIL)
    return round(low, 4), round(high, 4)


def _at_least(held: int, seeds: int, share: float) -> float:
    """Return the probability that at least `held` of `seeds` independent trials succeed."""
    return sum(comb(seeds, k) * share**k * (1 - share) ** (seeds - k) for k in range(held, seeds + 1))


def _root(rising: Callable[[float], float]) -> float:
    """Return where a rising function of a share is 0, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return low
