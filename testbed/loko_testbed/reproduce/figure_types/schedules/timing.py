"""Measures how long one schedule takes to compute: wall-clock time, CPU time, and time in the solver."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from loko.schedule.graph import Graph
from loko.schedule.packing import Paths, pack, solve_time_indexed
from loko.schedule.problem import (
    ScheduleSolution,
    SchedulingProblem,
    SchedulingScheme,
    SlotDemand,
    candidate_paths,
    random_paths,
)
from loko.solvers.program import IntegerProgram, Solve, SolverResult, TimeBudget
from loko_testbed.reproduce.figure_types.schedules.check import refuse_refuted

Find = Callable[[SchedulingProblem, Paths | None, Solve, TimeBudget], ScheduleSolution]
"""A way to find a schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTiming:
    """The times of one computation: listing paths, building programs, and solving."""

    seconds: float
    """Wall-clock time."""
    processor_s: float
    """CPU time of this process, all threads together."""
    solving_s: float
    """Time in the solver. The rest is listing paths, building programs, and search."""
    scheduled: int
    bound: int
    is_optimal: bool

    @property
    def waiting_s(self) -> float:
        """The least time in which no core worked for it: others had the machine, or it stalled."""
        return max(0.0, self.seconds - self.processor_s)


def ours(
    problem: SchedulingProblem, paths: Paths | None, solve: Solve, clock: TimeBudget
) -> ScheduleSolution:
    """Schedule by the method of this project, a `Find`."""
    return pack(problem, paths, solve, clock)


def time_indexed(
    problem: SchedulingProblem, paths: Paths | None, solve: Solve, clock: TimeBudget
) -> ScheduleSolution:
    """Solve the paper's time-indexed program alone, a `Find`."""
    return solve_time_indexed(problem, paths, solve, clock)


def demands(graph: Graph, count: int, *, seed: int) -> tuple[SlotDemand, ...]:
    """Return flows between uniformly drawn hosts. For a smaller count, they are the first of these."""
    chance = random.Random(seed)
    return tuple(SlotDemand(f"f{number}", *chance.sample(graph.hosts, 2)) for number in range(count))


def timed(
    find: Find,
    problem: SchedulingProblem,
    scheme: SchedulingScheme,
    solve: Solve,
    *,
    limit_s: float,
    seed: int,
) -> RunTiming:
    """Compute a schedule once, then check it, which is not timed.

    Raises `InputError` as `pack`, `RunError` if the checker refutes the schedule.
    """
    solver = _Watched(solve)
    processor_ns, begin_ns = time.process_time_ns(), time.monotonic_ns()
    clock = TimeBudget(now_ns=time.monotonic_ns, end_ns=begin_ns + round(1e9 * limit_s))
    paths = allowed_paths(problem, scheme, seed=seed)
    solution = find(problem, paths, solver, clock)
    end_ns, processor_end_ns = time.monotonic_ns(), time.process_time_ns()
    refuse_refuted(problem, scheme, solution, paths)
    return RunTiming(
        seconds=(end_ns - begin_ns) / 1e9,
        processor_s=(processor_end_ns - processor_ns) / 1e9,
        solving_s=solver.taken_ns / 1e9,
        scheduled=len(solution.assignments),
        bound=solution.bound,
        is_optimal=solution.is_optimal,
    )


def allowed_paths(problem: SchedulingProblem, scheme: SchedulingScheme, *, seed: int) -> Paths | None:
    """Return the paths that the scheme allows each flow; None if it allows any."""
    if scheme is SchedulingScheme.UNCONSTRAINED:
        return None
    paths = candidate_paths(problem)
    if scheme is SchedulingScheme.PATH_SETS:
        return paths
    chance = random.Random(seed)
    return random_paths(paths, [chance.random() for _ in problem.demands])


@dataclass(slots=True)
class _Watched:
    """Wraps a solver and sums up the time spent in it."""

    solve: Solve
    taken_ns: int = field(default=0, init=False)

    def __call__(
        self, program: IntegerProgram, *, time_limit_s: float, start: Sequence[int] | None = None
    ) -> SolverResult:
        begin_ns = time.monotonic_ns()
        try:
            return self.solve(program, time_limit_s=time_limit_s, start=start)
        finally:
            self.taken_ns += time.monotonic_ns() - begin_ns
