"""Solvers of integer programs. Any of them can be chosen for the same program.

HiGHS runs in this process. OR-Tools contains its own HiGHS, and the two cannot be in one process. So it runs
in another process, which may also run out of memory on its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from typing import Final

from loko.document import InputError
from loko.extras import missing_package
from loko.solvers.program import (
    GAVE_UP,
    OUT_OF_MEMORY,
    IntegerProgram,
    Solve,
    SolverResult,
    gave_up,
    out_of_memory,
)

__all__ = ["IntegerProgram", "Solve", "Solver", "SolverResult", "solver_named"]

_SPARE_S: Final = 20.0
"""How much longer than its limit a solver's process may take, to start and to end, on a busy machine."""
_ENDED_BY_THE_KERNEL: Final = -9
_NO_MEMORY: Final = ("MemoryError", "bad_alloc", "annot allocate memory")
"""Last messages of a process that ran out of memory: of Python, of C++, of the C library."""


class Solver(StrEnum):
    """The solvers, as `--solver` takes them."""

    HIGHS = "highs"
    CP_SAT = "cp-sat"
    CBC = "cbc"


def solver_named(solver: Solver) -> Solve:
    """Return a solver. Raises `InputError` if it is not installed; so does the solver out of memory."""
    if solver is Solver.HIGHS:
        try:
            from loko.solvers.highs import by_highs  # noqa: PLC0415 - not in a process that has OR-Tools
        except ImportError as error:
            raise InputError(
                f"--solver {solver}: the package 'highspy' cannot be loaded ({error}); install it with"
                " pip install highspy, or choose another"
            ) from None
        return by_highs
    if find_spec("ortools") is None:
        raise InputError(f"--solver {solver}: {missing_package('ortools')}, or choose --solver highs")
    return partial(_elsewhere, solver)


def _elsewhere(
    solver: Solver,
    program: IntegerProgram,
    *,
    time_limit_s: float,
    start: Sequence[int] | None = None,
) -> SolverResult:
    """Solve in a separate process (`loko.solvers.or_tools`). The program's tolerance is not used."""
    question = {"solver": solver, "time_limit_s": time_limit_s, "start": start, "program": vars(program)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "loko.solvers.or_tools"],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            check=False,
            timeout=time_limit_s + _SPARE_S,
        )
    except subprocess.TimeoutExpired:  # not every solver checks its time limit all the time
        return SolverResult(values=None, bound=program.trivial_bound, is_optimal=False)
    if done.returncode in {OUT_OF_MEMORY, _ENDED_BY_THE_KERNEL}:
        raise out_of_memory(solver, program)
    if done.returncode == GAVE_UP:
        raise gave_up(solver, program)
    if done.returncode != 0:
        if any(words in done.stderr for words in _NO_MEMORY):
            raise out_of_memory(solver, program)
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(
            f"--solver {solver}: its process ended with {done.returncode} ({last}); choose another"
        )
    answer = json.loads(done.stdout)
    return SolverResult(**answer | {"bound": min(answer["bound"], float(program.trivial_bound))})
