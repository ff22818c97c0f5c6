"""Least squares: the numbers of a profile from observations that are sums of them.

Every time that a bench observes is a sum of parameters, each so many times: an entry's cost once for each
entry, a byte's once for each byte. Solving for all at once uses every sample for every parameter, and shows
which of them the observations do not tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

_RANK_TOLERANCE: Final = 1e-9
_ABSENT: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Observation:
    """A measured time as a sum of parameters."""

    terms: Mapping[str, float]
    """How often each parameter is in it."""
    value_ps: float
    error_ps: float = 1.0
    """Standard error; observations weigh by it."""
    procedure: str = ""
    """What measured it."""
    samples: int = 1


@dataclass(frozen=True, slots=True)
class Estimate:
    """A parameter as found."""

    value_ps: float
    error_ps: float
    """Standard error, from the scatter of the samples."""
    procedures: tuple[str, ...] = ()
    """What the observations come from that it occurs in."""
    samples: int = 0
    """How many samples these have together."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What the observations tell."""

    estimates: Mapping[str, Estimate]
    unidentified: tuple[str, ...]
    """Parameters that occur, but only in sums that do not tell them apart."""
    worst_residual_ps: float
    """Largest difference between an observation and the sum of its estimates."""


def solve(observations: Sequence[Observation]) -> Solution:
    """The parameters that explain the observations best.

    A parameter that they do not identify is left out of the estimates and named instead.
    """
    names = sorted({name for one in observations for name in one.terms})
    place = {name: column for column, name in enumerate(names)}
    design = np.zeros((len(observations), len(names)))
    values = np.array([one.value_ps for one in observations])
    weights = np.array([1.0 / max(one.error_ps, _ABSENT) for one in observations])
    for row, one in enumerate(observations):
        for name, times in one.terms.items():
            design[row, place[name]] = times
    scale = np.maximum(np.abs(design).max(axis=0), 1.0)
    weighted = design / scale * weights[:, None]
    left, singular, right = np.linalg.svd(weighted, full_matrices=False)
    kept = singular > _RANK_TOLERANCE * singular.max()
    found = (right[kept].T / singular[kept]) @ (left[:, kept].T @ (values * weights)) / scale
    variance = ((right[kept].T / singular[kept]) ** 2).sum(axis=1) / scale**2
    lost = (right[~kept] ** 2).sum(axis=0) > _ABSENT
    residuals = values - design @ found
    return Solution(
        {
            name: Estimate(
                float(found[column]), float(np.sqrt(variance[column])), *_origin(name, observations)
            )
            for name, column in place.items()
            if not lost[column]
        },
        tuple(name for name, column in place.items() if lost[column]),
        float(np.abs(residuals).max(initial=0.0)),
    )


def _origin(name: str, observations: Sequence[Observation]) -> tuple[tuple[str, ...], int]:
    """What measured a parameter, and with how many samples."""
    those = [one for one in observations if name in one.terms]
    return tuple(sorted({one.procedure for one in those})), sum(one.samples for one in those)
