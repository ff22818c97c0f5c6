"""CP-SAT and CBC of OR-Tools, as a program: a question on standard input, the answer on standard output."""

from __future__ import annotations

import json
import math
import sys
from importlib import import_module
from typing import Any, Final

from loko.solvers.program import GAVE_UP, OUT_OF_MEMORY, UNLIMITED

_WORKERS: Final = 2
_CP_SAT: Final = "CP_SAT"

Question = dict[str, Any]


def _answer(name: str, program: Question, time_limit_s: float, start: list[int] | None) -> dict[str, Any]:
    """Solve by OR-Tools' common wrapper: its own module for CP-SAT takes seconds to import."""
    linear_solver: Any = import_module("ortools.linear_solver.pywraplp")  # it has no types
    solver = linear_solver.Solver.CreateSolver(name)
    if name == _CP_SAT:
        solver.SetSolverSpecificParametersAsString(f"num_workers:{_WORKERS}")
    variables = [solver.IntVar(0, top, "") for top in program["tops"]]
    infinity = solver.infinity()
    starts = program["starts"]
    for row, (low, high) in enumerate(zip(program["lows"], program["highs"], strict=True)):
        constraint = solver.Constraint(
            -infinity if low <= -UNLIMITED else low, infinity if high >= UNLIMITED else high
        )
        for at in range(starts[row], starts[row + 1]):
            constraint.SetCoefficient(variables[program["variables"][at]], program["factors"][at])
    objective = solver.Objective()
    for variable, gain in zip(variables, program["gains"], strict=True):
        objective.SetCoefficient(variable, gain)
    objective.SetMaximization()
    if start is not None:
        solver.SetHint(variables, start)
    solver.SetTimeLimit(round(1000 * time_limit_s))
    parameters = linear_solver.MPSolverParameters()
    parameters.SetDoubleParam(parameters.RELATIVE_MIP_GAP, 0.0)
    status = solver.Solve(parameters)
    if status == solver.INFEASIBLE:
        return {"values": None, "bound": -math.inf, "is_optimal": False}
    if status in (solver.OPTIMAL, solver.FEASIBLE):
        return {
            "values": [round(variable.solution_value()) for variable in variables],
            "bound": objective.BestBound(),
            "is_optimal": status == solver.OPTIMAL,
        }
    if solver.wall_time() < 1000 * time_limit_s / 2:
        sys.exit(GAVE_UP)
    # The wrapper's bound is 0 then, which nobody has proven.
    return {"values": None, "bound": math.inf, "is_optimal": False}


def main() -> None:
    """Answer one question."""
    question = json.load(sys.stdin)
    name = {"cp-sat": _CP_SAT, "cbc": "CBC"}[question["solver"]]
    try:
        answer = _answer(name, question["program"], question["time_limit_s"], question["start"])
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
