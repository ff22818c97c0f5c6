"""The likelihood of what the paper prints, given how hosts send."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loko_testbed.simulation.senders import SenderSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedShares:
    """Shares in per cent that the paper prints, with the length of its measurement and their decimals."""

    percent: tuple[float, ...]
    seconds: float
    """Total length of all runs."""
    decimals: int

    @property
    def rounding_variance(self) -> float:
        """Variance due to rounding, which is uniform within half a unit of the last decimal."""
        return float(10.0 ** (-2 * self.decimals) / 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCount:
    """A number of packets that the paper prints, with the length of its measurement."""

    packets: float
    seconds: float
    """Total length of all runs."""
    rounded_to: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderTrial:
    """The result of one sender."""

    senders: SenderSettings
    seconds: float
    """Length of each run."""
    counts: NDArray[np.int64]
    """One row per run: numbers of all packets, lost packets, late packets."""

    @property
    def percent(self) -> NDArray[np.float64]:
        """Lost and late packets in per cent, over all runs."""
        total = self.counts.sum(axis=0)
        return np.asarray(100 * total[1:] / total[0])

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance of the lost and late shares between runs."""
        return np.cov(100 * self.counts[:, 1:] / self.counts[:, :1], rowvar=False)


def log_likelihood(tried: SenderTrial, printed: PrintedShares) -> float:
    """Return the logarithm of the density of the printed numbers, if hosts sent like this.

    The paper's mean over its runs and ours over our runs are taken as normal, with the variance of runs; the
    paper's numbers are rounded. Other uncertainties, such as the switch or the clock, are not modelled.
    """
    of_a_second = tried.covariance * tried.seconds
    spread = of_a_second * (1 / printed.seconds + 1 / (tried.seconds * len(tried.counts)))
    spread = spread + np.eye(len(printed.percent)) * printed.rounding_variance
    apart = np.array(printed.percent) - tried.percent
    _, log_determinant = np.linalg.slogdet(2 * np.pi * spread)
    return float(-(apart @ np.linalg.solve(spread, apart)) / 2 - log_determinant / 2)


def count_log_likelihood(counts: NDArray[np.int64], seconds: float, printed: PrintedCount) -> float:
    """Return the logarithm of the density of a printed number of packets.

    `counts` has the packets of each run of this length. The assumptions are those of `log_likelihood`.
    """
    runs = printed.seconds / seconds
    variance = counts.var(ddof=1) * runs * (1 + runs / len(counts)) + printed.rounded_to**2 / 12
    apart = printed.packets - counts.mean() * runs
    return float(-(apart**2) / variance / 2 - np.log(2 * np.pi * variance) / 2)


def deviances(log_likelihoods: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much each -2 log likelihood exceeds the smallest."""
    values = -2 * log_likelihoods
    return np.asarray(values - values.min())
