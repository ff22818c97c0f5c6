"""An integer program as data: written once, given to any solver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from loko.document import InputError

UNLIMITED: Final = 1 << 40
"""Larger than any sum of a row: no limit."""
OUT_OF_MEMORY: Final = 86
"""Exit status of a solver's process that has run out of memory."""
GAVE_UP: Final = 87
"""Exit status of a solver's process whose solver ended long before its time, without an answer or a proof."""


class IntegerProgram:
    """Maximise a sum over variables from 0 to `tops`, under rows low <= sum <= high. All are integers."""

    def __init__(self) -> None:
        self.tolerance = 0.999
        """How far below the optimum an objective is good enough. Below 1, only the optimum is."""
        self.gains: list[int] = []
        """By variable, what it adds to the objective when it is 1."""
        self.tops: list[int] = []
        """By variable, its largest value."""
        self.equations: list[str] = []
        """By row, the name of the equation that it belongs to."""
        self.starts: list[int] = [0]
        """Where each row begins in the two lists below, and the end of the last row."""
        self.variables: list[int] = []
        self.factors: list[int] = []
        self.lows: list[int] = []
        self.highs: list[int] = []

    def variable(self, gain: int = 0, top: int = 1) -> int:
        """Add a variable, and return its number."""
        self.gains.append(gain)
        self.tops.append(top)
        return len(self.gains) - 1

    def row(
        self,
        equation: str,
        variables: Iterable[int],
        factors: Iterable[int] | None = None,
        *,
        low: int = -UNLIMITED,
        high: int = UNLIMITED,
    ) -> None:
        """Add a row. Without factors, all are 1."""
        before = len(self.variables)
        self.variables += variables
        count = len(self.variables) - before
        assert len(set(self.variables[before:])) == count, "HiGHS aborts on a variable that is twice in a row"
        self.factors += [1] * count if factors is None else factors
        assert len(self.factors) == len(self.variables)
        self.starts.append(len(self.variables))
        self.equations.append(equation)
        self.lows.append(low)
        self.highs.append(high)

    @property
    def trivial_bound(self) -> int:
        """An upper bound of the objective, whatever the rows say."""
        return sum(gain * top for gain, top in zip(self.gains, self.tops, strict=True) if gain > 0)

    def value(self, values: Iterable[int]) -> int:
        """Return the objective at these values."""
        return sum(gain * value for gain, value in zip(self.gains, values, strict=True))


@dataclass(frozen=True, kw_only=True)
class SolverResult:
    """Result of a solver within its time."""

    values: list[int] | None
    """The value of every variable; None if it found none."""
    bound: float
    """No values have a larger objective; minus infinity if the rows contradict each other."""
    is_optimal: bool


class Solve(Protocol):
    """The interface of a solver."""

    def __call__(
        self,
        program: IntegerProgram,
        *,
        time_limit_s: float,
        start: Sequence[int] | None = None,
    ) -> SolverResult:
        """Return the best values, or the best that were found in time.

        `start` are values to begin with.
        """


@dataclass(frozen=True, kw_only=True)
class TimeBudget:
    """The present time and the deadline of a search."""

    now_ns: Callable[[], int]
    end_ns: int

    @property
    def remaining_s(self) -> float:
        """Seconds until the end; 0 after it."""
        return max(0.0, (self.end_ns - self.now_ns()) / 1e9)


def out_of_memory(solver: str, program: IntegerProgram) -> InputError:
    """Return the error for a program that needs too much memory."""
    return InputError(
        f"--solver {solver}: out of memory for {len(program.gains)} variables and"
        f" {len(program.equations)} rows; schedule fewer flows or slots, or leave --solver out"
    )


def gave_up(solver: str, program: IntegerProgram) -> InputError:
    """Return the error for a solver that ended without an answer or a proof, though it had time."""
    return InputError(
        f"--solver {solver}: gave up on {len(program.gains)} variables and {len(program.equations)} rows, as"
        " without memory; schedule fewer flows or slots, or choose another"
    )
