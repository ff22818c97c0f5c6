"""A linear program, and an upper bound of its optimum that does not depend on the solver's tolerances."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

import highspy
import numpy as np

_ROUNDING: Final = 1e-9
"""Relative slack for rounding errors of the sum that makes the bound."""


class LinearProgram:
    """Maximise one variable under rows sum <= limit. Every variable has a lower and an upper limit."""

    def __init__(self) -> None:
        self.lows: list[float] = []
        """The lower limit of each variable."""
        self.tops: list[float] = []
        self._starts: list[int] = [0]
        """Where each row begins in the two lists below, and the end of the last row."""
        self._variables: list[int] = []
        self._factors: list[float] = []
        self._limits: list[float] = []

    def variable(self, low: float, top: float) -> int:
        """Add a variable, and return its number."""
        self.lows.append(low)
        self.tops.append(top)
        return len(self.lows) - 1

    def row(self, terms: Iterable[tuple[int, float]], limit: float) -> None:
        """Add a row: the sum of factor times variable is at most `limit`. No variable is twice in a row."""
        for variable, factor in terms:
            self._variables.append(variable)
            self._factors.append(factor)
        self._starts.append(len(self._variables))
        self._limits.append(limit)

    def rows(self) -> Iterator[tuple[list[tuple[int, float]], float]]:
        """Yield the terms and the limit of each row."""
        for number, limit in enumerate(self._limits):
            entries = slice(self._starts[number], self._starts[number + 1])
            yield list(zip(self._variables[entries], self._factors[entries], strict=True)), limit

    def most(self, variable: int) -> float:
        """Return an upper bound of a variable, close to its maximum; infinite if the solver gives up.

        For any prices y >= 0 of the rows A x <= b, c x <= y b + (c - y A) x. The solver only proposes the
        prices, so the bound holds whatever it does.
        """
        limits = np.array(self._limits)
        lows, tops = np.array(self.lows), np.array(self.tops)
        factors, variables = np.array(self._factors), np.array(self._variables, dtype=np.int32)
        gains = np.zeros(len(lows))
        gains[variable] = 1.0
        lp = highspy.HighsLp()
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.num_col_, lp.num_row_ = len(lows), len(limits)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = gains, lows, tops
        lp.row_lower_, lp.row_upper_ = np.full(len(limits), -highspy.kHighsInf), limits
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(self._starts, dtype=np.int32)
        lp.a_matrix_.index_, lp.a_matrix_.value_ = variables, factors
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.passModel(lp)
        solver.run()
        prices = np.maximum(0.0, np.array(solver.getSolution().row_dual))
        if len(prices) != len(limits):
            return math.inf
        rows = np.repeat(np.arange(len(limits)), np.diff(self._starts))
        rest = gains - np.bincount(variables, weights=prices[rows] * factors, minlength=len(gains))
        terms = np.concatenate((prices * limits, np.maximum(rest * lows, rest * tops)))
        return math.fsum(terms) + _ROUNDING * math.fsum(np.abs(terms))
