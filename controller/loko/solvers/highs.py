"""HiGHS, in this process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import highspy
import numpy as np

from loko.solvers.program import UNLIMITED, IntegerProgram, SolverResult, gave_up, out_of_memory

_WITH_BOUND: Final = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit)
"""After these, HiGHS's bound is proven; after an error it is a number that means nothing."""


def by_highs(
    program: IntegerProgram,
    *,
    time_limit_s: float,
    start: Sequence[int] | None = None,
) -> SolverResult:
    """See `Solve`. Raises `InputError` if HiGHS runs out of memory."""
    count = len(program.gains)
    if count == 0:
        return SolverResult(values=[], bound=0.0, is_optimal=True)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (
        ("output_flag", False),
        ("time_limit", float(time_limit_s)),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", program.tolerance),
        ("threads", 1),
    ):
        solver.setOptionValue(option, value)
    try:
        solver.passModel(_as_lp(program))
        if start is not None:
            solution = highspy.HighsSolution()
            solution.col_value = [float(value) for value in start]
            solver.setSolution(solution)
        solver.run()
    except MemoryError:
        raise out_of_memory("highs", program) from None
    status, info = solver.getModelStatus(), solver.getInfo()
    if status == highspy.HighsModelStatus.kMemoryLimit:
        raise out_of_memory("highs", program)
    if status == highspy.HighsModelStatus.kInfeasible:
        return SolverResult(values=None, bound=-math.inf, is_optimal=False)
    if status not in _WITH_BOUND:
        raise gave_up("highs", program)
    is_found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    bound = info.mip_dual_bound
    return SolverResult(
        values=[round(value) for value in solver.getSolution().col_value] if is_found else None,
        bound=bound if math.isfinite(bound) else float(program.trivial_bound),
        is_optimal=status == highspy.HighsModelStatus.kOptimal,
    )


def _as_lp(program: IntegerProgram) -> highspy.HighsLp:
    lp = highspy.HighsLp()
    count = len(program.gains)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.num_col_, lp.num_row_ = count, len(program.equations)
    lp.col_cost_ = np.array(program.gains, dtype=float)
    lp.col_lower_, lp.col_upper_ = np.zeros(count), np.array(program.tops, dtype=float)
    lows, highs = np.array(program.lows, dtype=float), np.array(program.highs, dtype=float)
    lp.row_lower_ = np.where(lows <= -UNLIMITED, -highspy.kHighsInf, lows)
    lp.row_upper_ = np.where(highs >= UNLIMITED, highspy.kHighsInf, highs)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(program.starts, dtype=np.int32)
    lp.a_matrix_.index_ = np.array(program.variables, dtype=np.int32)
    lp.a_matrix_.value_ = np.array(program.factors, dtype=float)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * count
    return lp
