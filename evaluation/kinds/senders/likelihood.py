"""How likely a sender makes what the paper prints of one figure: pure arithmetic on shares by run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.senders import SenderSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedShares:
    """What the paper prints: shares in per cent, of how long a measurement, with how many decimals."""

    percent: tuple[float, ...]
    seconds: float
    """Of all runs together."""
    decimals: int

    @property
    def rounding_variance(self) -> float:
        """Of a number that was rounded: uniform within half a unit of the last decimal on both sides."""
        return float(10.0 ** (-2 * self.decimals) / 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What one sender gave."""

    senders: SenderSettings
    seconds: float
    """Of each run."""
    counts: NDArray[np.int64]
    """A row for each run: all packets, then how many were lost, late."""

    @property
    def percent(self) -> NDArray[np.float64]:
        """Lost and late packets of all runs together."""
        total = self.counts.sum(axis=0)
        return np.asarray(100 * total[1:] / total[0])

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Of lost and late, from one run to another."""
        return np.cov(100 * self.counts[:, 1:] / self.counts[:, :1], rowvar=False)


def log_likelihood(tried: Tried, printed: PrintedShares) -> float:
    """Logarithm of the density of what is printed, if the hosts sent like this.

    The paper's mean over its runs and ours over ours both spread as runs do, and are taken as normal; the
    paper's numbers are rounded. Nothing else is allowed for: neither the switch nor the clock is varied.
    """
    of_a_second = tried.covariance * tried.seconds
    spread = of_a_second * (1 / printed.seconds + 1 / (tried.seconds * len(tried.counts)))
    spread = spread + np.eye(len(printed.percent)) * printed.rounding_variance
    apart = np.array(printed.percent) - tried.percent
    _, log_determinant = np.linalg.slogdet(2 * np.pi * spread)
    return float(-(apart @ np.linalg.solve(spread, apart)) / 2 - log_determinant / 2)


def deviances(tried: list[Tried], printed: PrintedShares) -> NDArray[np.float64]:
    """Of each sender: by how much its -2 log likelihood is above the smallest."""
    values = np.array([-2 * log_likelihood(one, printed) for one in tried])
    return np.asarray(values - values.min())
