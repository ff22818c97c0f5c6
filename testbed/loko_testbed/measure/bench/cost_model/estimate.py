"""Least squares: finds the numbers of a profile from observations that are sums of them.

Every time that a bench observes is a sum of parameters, each some number of times: an entry's cost once per
entry, a byte's once per byte. Solving for all at once uses every sample for every parameter, and shows which
parameters the observations do not tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

_RANK_TOLERANCE: Final = 1e-9
_ABSENT: Final = 1e-6


@dataclass(frozen=True, slots=True)
class CostObservation:
    """A measured time as a sum of parameters."""

    terms: Mapping[str, float]
    """How often each parameter occurs in it."""
    value_ps: float
    error_ps: float = 1.0
    """Standard error, by which observations are weighted."""
    procedure: str = ""
    """The procedure that measured it."""
    samples: int = 1


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated parameter."""

    value_ps: float
    error_ps: float
    """Standard error, from the scatter of the samples."""
    procedures: tuple[str, ...] = ()
    """Procedures whose observations it occurs in."""
    samples: int = 0
    """Total number of samples of these observations."""


@dataclass(frozen=True, slots=True)
class FitResult:
    """The result of the least squares."""

    estimates: Mapping[str, Estimate]
    unidentified: tuple[str, ...]
    """Parameters that occur only in sums which do not tell them apart."""
    worst_residual_ps: float
    """Largest difference between an observation and the sum of its estimates."""


def solve(observations: Sequence[CostObservation]) -> FitResult:
    """Find the parameters that explain the observations best.

    Parameters that the observations do not identify have no estimate; they are named instead.
    """
    names = sorted({name for observation in observations for name in observation.terms})
    place = {name: column for column, name in enumerate(names)}
    design = np.zeros((len(observations), len(names)))
    values = np.array([observation.value_ps for observation in observations])
    weights = np.array([1.0 / max(observation.error_ps, _ABSENT) for observation in observations])
    for row, observation in enumerate(observations):
        for name, times in observation.terms.items():
            design[row, place[name]] = times
    scale = np.maximum(np.abs(design).max(axis=0), 1.0)
    weighted = design / scale * weights[:, None]
    left, singular, right = np.linalg.svd(weighted, full_matrices=False)
    kept = singular > _RANK_TOLERANCE * singular.max()
    solution = (right[kept].T / singular[kept]) @ (left[:, kept].T @ (values * weights)) / scale
    variance = ((right[kept].T / singular[kept]) ** 2).sum(axis=1) / scale**2
    lost = (right[~kept] ** 2).sum(axis=0) > _ABSENT
    residuals = values - design @ solution
    return FitResult(
        {
            name: Estimate(
                float(solution[column]), float(np.sqrt(variance[column])), *_origin(name, observations)
            )
            for name, column in place.items()
            if not lost[column]
        },
        tuple(name for name, column in place.items() if lost[column]),
        float(np.abs(residuals).max(initial=0.0)),
    )


def _origin(name: str, observations: Sequence[CostObservation]) -> tuple[tuple[str, ...], int]:
    """Return the procedures that measured a parameter, and their number of samples."""
    those = [observation for observation in observations if name in observation.terms]
    return tuple(sorted({observation.procedure for observation in those})), sum(
        observation.samples for observation in those
    )
