"""Solvers: the same optimum from each for one program; errors if one is missing or out of memory."""

from __future__ import annotations

import math
import sys
from importlib.util import find_spec
from unittest.mock import MagicMock

import pytest
from integer_programs import violated_row

from loko import solvers
from loko.document import InputError
from loko.solvers import IntegerProgram, Solver, or_tools, solver_named
from loko.solvers.program import GAVE_UP, OUT_OF_MEMORY

needs_or_tools = pytest.mark.skipif(find_spec("ortools") is None, reason="needs the extra `solvers`")
EACH = [
    pytest.param(solver, marks=() if solver is Solver.HIGHS else needs_or_tools, id=solver)
    for solver in Solver
]


def knapsack() -> IntegerProgram:
    """Gains 6, 5, 4 and weights 5, 4, 3 with a limit of 7: the optimum is the second and the third."""
    program = IntegerProgram()
    variables = [program.variable(gain) for gain in (6, 5, 4)]
    program.row("weight", variables, (5, 4, 3), high=7)
    return program


@pytest.mark.parametrize("solver", EACH)
def test_each_solver_finds_the_optimum(solver) -> None:
    program = knapsack()
    answer = solver_named(solver)(program, time_limit_s=60, start=[1, 0, 0])
    assert answer.values == [0, 1, 1]
    assert answer.is_optimal
    assert 9 <= answer.bound < 10
    assert program.value(answer.values) == 9
    assert violated_row(program, answer.values) is None
    assert violated_row(program, [1, 1, 0]) == "weight"


@pytest.mark.parametrize("solver", EACH)
def test_each_solver_says_when_rows_contradict(solver) -> None:
    program = knapsack()
    program.row("more than there is", range(3), low=4)
    answer = solver_named(solver)(program, time_limit_s=60)
    assert answer.values is None
    assert answer.bound == -math.inf


def test_a_solver_that_does_not_end_in_time_has_found_nothing(monkeypatch) -> None:
    def late(command, **options):
        raise solvers.subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(solvers, "find_spec", lambda _: object())
    monkeypatch.setattr(solvers.subprocess, "run", late)
    answer = solver_named(Solver.CBC)(knapsack(), time_limit_s=1)
    assert answer.values is None
    assert answer.bound == 15
    assert not answer.is_optimal


def test_a_missing_solver_is_told(monkeypatch) -> None:
    monkeypatch.setattr(solvers, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"--solver cp-sat: .*missing.*pip install"):
        solver_named(Solver.CP_SAT)


@pytest.mark.parametrize(
    ("status", "last"),
    [
        (OUT_OF_MEMORY, ""),
        (-9, ""),
        (-6, "terminate called\n  what():  std::bad_alloc"),
        (127, "cannot allocate memory for thread-local data: ABORT"),
        (1, "Traceback\nMemoryError"),
    ],
)
def test_a_solver_without_memory_is_told(monkeypatch, status, last) -> None:
    class Done:
        returncode = status
        stderr = last

    monkeypatch.setattr(solvers, "find_spec", lambda _: object())
    monkeypatch.setattr(solvers.subprocess, "run", lambda *_, **__: Done)
    with pytest.raises(InputError, match="--solver cbc: out of memory for 3 variables and 1 rows"):
        solver_named(Solver.CBC)(knapsack(), time_limit_s=1)


@pytest.mark.parametrize(("took_ms", "status"), [(10, GAVE_UP), (990, None)])
def test_a_bound_that_nobody_has_proven_is_not_believed(monkeypatch, took_ms, status) -> None:
    """Without memory for its threads, CP-SAT ends without an answer, and its wrapper reports a bound of 0."""
    solver = MagicMock()
    solver.Solve.return_value = solver.NOT_SOLVED
    solver.wall_time.return_value = took_ms
    solver.Objective().BestBound.return_value = 0.0
    wrapper = MagicMock()
    wrapper.Solver.CreateSolver.return_value = solver
    monkeypatch.setattr(or_tools, "import_module", lambda _: wrapper)
    if status is None:
        answer = or_tools._answer("CP_SAT", vars(knapsack()), 1.0, None)
        assert answer == {"values": None, "bound": math.inf, "is_optimal": False}
    else:
        with pytest.raises(SystemExit) as ended:
            or_tools._answer("CP_SAT", vars(knapsack()), 1.0, None)
        assert ended.value.code == status


def test_a_solver_that_gave_up_is_told(monkeypatch) -> None:
    class Done:
        returncode = GAVE_UP
        stderr = ""

    monkeypatch.setattr(solvers, "find_spec", lambda _: object())
    monkeypatch.setattr(solvers.subprocess, "run", lambda *_, **__: Done)
    with pytest.raises(InputError, match="--solver cp-sat: gave up on 3 variables and 1 rows"):
        solver_named(Solver.CP_SAT)(knapsack(), time_limit_s=1)


def test_highs_that_cannot_be_loaded_is_told(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "loko.solvers.highs", None)
    with pytest.raises(InputError, match=r"--solver highs: .*'highspy' cannot be loaded.*pip install"):
        solver_named(Solver.HIGHS)
