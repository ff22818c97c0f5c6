"""A check of a solver's values against the rows of its program."""

from __future__ import annotations

from collections.abc import Sequence

from loko.solvers import IntegerProgram


def violated_row(program: IntegerProgram, values: Sequence[int]) -> str | None:
    """Return the name of an equation that these values violate; None if they satisfy all."""
    for row, equation in enumerate(program.equations):
        total = sum(
            program.factors[at] * values[program.variables[at]]
            for at in range(program.starts[row], program.starts[row + 1])
        )
        if not program.lows[row] <= total <= program.highs[row]:
            return equation
    return None
