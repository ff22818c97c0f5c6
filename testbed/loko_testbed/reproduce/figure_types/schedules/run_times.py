"""Figures 4d to 4f: how long schedules take to be computed on this machine (section 5.2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from loko.schedule.problem import SchedulingProblem, SchedulingScheme
from loko.solvers import Solver, solver_named
from loko_testbed.reproduce.analysis import linearity
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel
from loko_testbed.reproduce.figure_types.schedules.document import RunTimes
from loko_testbed.reproduce.figure_types.schedules.scenario import network
from loko_testbed.reproduce.figure_types.schedules.timing import (
    Find,
    RunTiming,
    allowed_paths,
    demands,
    ours,
    time_indexed,
    timed,
)
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, NoteResult, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

WAYS: Final[Mapping[str, Find]] = {"ours": ours, "time_indexed": time_indexed}
_IN_WORDS: Final = {"ours": "this project's method", "time_indexed": "the paper's program, HiGHS"}
_MUCH_WAITING: Final = 0.1
"""A computation that waited for more than this share of its time is named in a note."""
_LEAST_WAITING_S: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimePoint:
    """A problem of the figure under one scheme."""

    x: int
    """The varied quantity: flows, slots, or links."""
    scheme: SchedulingScheme
    problem: SchedulingProblem
    seed: int

    @property
    def word(self) -> str:
        """The scheme's name within names of findings: ur, pr or fr."""
        return self.scheme.value.removeprefix("s-")

    @property
    def links(self) -> int:
        """The number of cables, which the paper calls links."""
        return len(self.problem.graph.links) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timings:
    point: RunTimePoint
    way: str
    runs: Sequence[RunTiming]

    @property
    def name(self) -> str:
        return f"{self.way}_{self.point.word}"

    @property
    def is_done(self) -> bool:
        """Whether every run ended by itself, with a proven optimum."""
        return all(timing.is_optimal for timing in self.runs)

    @property
    def flow_ms(self) -> list[float]:
        """The time per flow in each run, as the paper gives it."""
        return [1e3 * timing.seconds / len(self.point.problem.demands) for timing in self.runs]

    @property
    def median_ms(self) -> float:
        return float(np.median(self.flow_ms))


def points_of(figure: RunTimes, *, seed: int, most: int | None = None) -> list[RunTimePoint]:
    """Return every x with every scheme, or only the first `most` values of x. Raises `InputError`."""
    points = []
    for size in figure.networks[: most if figure.varied == "links" else None]:
        graph = network(size.topology, hosts=size.hosts, switches=size.switches)
        for flows in figure.flows[: most if figure.varied == "flows" else None]:
            for slots in figure.slots[: most if figure.varied == "slots" else None]:
                problem = SchedulingProblem(graph, demands(graph, flows, seed=seed), slots)
                x = {"flows": flows, "slots": slots, "links": len(graph.links) // 2}[figure.varied]
                points += [
                    RunTimePoint(x=x, scheme=scheme, problem=problem, seed=seed) for scheme in figure.schemes
                ]
    return points


def compute(figure: RunTimes, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Compute every schedule `runs` times, one after the other, in rounds over all. Raises `InputError`."""
    points = points_of(figure, seed=options.seed, most=figure.quick.points if options.quick else None)
    runs = options.runs or (figure.quick.runs if options.quick else figure.runs)
    progress.begin(len(points) * runs, 0, "schedules")
    solve = solver_named(Solver.HIGHS)
    for find in WAYS.values():  # what is loaded once takes no part
        timed(find, _smallest(points[0]), points[0].scheme, solve, limit_s=figure.limit_s, seed=options.seed)
    runs_of: dict[tuple[int, str], list[RunTiming]] = {}
    for _ in range(runs):
        for place, point in enumerate(points):
            for way, find in WAYS.items():
                timing = timed(
                    find, point.problem, point.scheme, solve, limit_s=figure.limit_s, seed=point.seed
                )
                runs_of.setdefault((place, way), []).append(timing)
            progress.advance(f"{figure.figure}: {point.scheme}, {point.x} {figure.varied}")
    every = [_Timings(point=points[place], way=way, runs=own) for (place, way), own in runs_of.items()]
    outcome = Outcome(
        chart=_chart(figure, every),
        table=_table(figure, every),
        findings=_findings(figure, every, is_whole=not options.quick),
        x=AxisLabel(name=figure.varied, unit=""),
        notes=_notes(figure, every),
        runs=runs,
    )
    return outcome, _rows(every)


def _smallest(point: RunTimePoint) -> SchedulingProblem:
    return replace(point.problem, demands=point.problem.demands[:1])


def _findings(figure: RunTimes, every: Sequence[_Timings], *, is_whole: bool) -> dict[str, float]:
    """Return findings, mostly medians; none of points with a stopped run, which has no run time."""
    findings = {"most_waiting_percent": 100 * max(_waiting(timings) for timings in every)}
    for timings in every:
        if timings.is_done:
            solving = [run.solving_s / run.seconds for run in timings.runs]
            findings[f"{timings.name}_{timings.point.x}_ms"] = timings.median_ms
            findings[f"{timings.name}_{timings.point.x}_flows"] = min(run.scheduled for run in timings.runs)
            findings[f"{timings.name}_{timings.point.x}_solving_percent"] = 100 * float(np.median(solving))
    for name, own in _series(every).items():
        if not is_whole or not all(timings.is_done for timings in own):
            continue
        times = [timings.median_ms for timings in own]
        findings[f"{name}_slowest_ms"] = max(times)
        if len(own) > 2:  # two points are always on a line
            findings[f"{name}_growth"] = times[-1] / times[0]
            findings[f"{name}_linearity"] = linearity([timings.point.x for timings in own], times)[1]
            if figure.varied == "links" and own[0].point.scheme is SchedulingScheme.PATH_SETS:
                paths = [_paths_of_a_flow(timings.point) for timings in own]
                findings[f"{name}_linearity_by_paths"] = linearity(paths, times)[1]
    return findings


def _paths_of_a_flow(point: RunTimePoint) -> float:
    """Return the path diversity: the mean number of paths that a flow may take."""
    paths = allowed_paths(point.problem, point.scheme, seed=point.seed)
    assert paths is not None, "any path is no number of paths"
    return float(np.mean([len(own) for own in paths]))


def _series(every: Sequence[_Timings]) -> dict[str, list[_Timings]]:
    series: dict[str, list[_Timings]] = {}
    for timings in every:
        series.setdefault(timings.name, []).append(timings)
    return series


def _waiting(timings: _Timings) -> float:
    """Return the largest share of a run's time in which no core worked for it."""
    return max(
        run.waiting_s / run.seconds if run.waiting_s > _LEAST_WAITING_S else 0.0 for run in timings.runs
    )


def _timing_text(figure: RunTimes, timings: _Timings) -> str:
    point = timings.point
    return f"{_IN_WORDS[timings.way]}, {point.scheme.value.upper()}, {point.x} {figure.varied}"


def _notes(figure: RunTimes, every: Sequence[_Timings]) -> list[NoteResult]:
    """Return which computations were stopped, and which waited for the machine."""
    stopped = [_timing_text(figure, timings) for timings in every if not timings.is_done]
    waited = [
        f"{_timing_text(figure, timings)} ({100 * _waiting(timings):.0f} %)"
        for timings in every
        if _waiting(timings) > _MUCH_WAITING
    ]
    notes = []
    if stopped:
        notes.append(
            f"Without a proven optimum after {figure.limit_s:g} s, so no run time: {'; '.join(stopped)}."
        )
    if waited:
        notes.append(
            "A run waited for a processor for over a tenth of its time, as the machine was busy or stalled:"
            f" {'; '.join(waited)}."
        )
    return [NoteResult(where="this machine", text=text) for text in notes]


def _chart(figure: RunTimes, every: Sequence[_Timings]) -> Chart:
    curves = [
        ChartCurve(
            label=f"{own[0].point.scheme.value.upper().replace('-', '/')}, {_IN_WORDS[own[0].way]}",
            x=[timings.point.x for timings in own],
            y=[timings.median_ms if timings.is_done else None for timings in own],
            low=[min(timings.flow_ms) for timings in own],
            high=[max(timings.flow_ms) for timings in own],
            dashed=own[0].way == "ours",
        )
        for own in _series(every).values()
    ]
    panel = LinePanel(
        x=ChartAxis(label=figure.varied, low=0),
        y=ChartAxis(label="run time for a flow [ms]", log=True),
        curves=curves,
    )
    return Chart(panels=[panel], caption="medians on this machine; bars: fastest and slowest run")


def _table(figure: RunTimes, every: Sequence[_Timings]) -> TableResult:
    columns = [
        figure.varied,
        "scheme",
        "way",
        "ms a flow",
        "fastest",
        "slowest",
        "in the solver [%]",
        "flows",
    ]
    rows: list[list[str | float]] = []
    for timings in every:
        solving = 100 * float(np.median([run.solving_s / run.seconds for run in timings.runs]))
        times = [round(value, 3) for value in (timings.median_ms, min(timings.flow_ms), max(timings.flow_ms))]
        last = timings.runs[-1]
        state = "optimal" if timings.is_done else f"stopped; at most {last.bound}"
        rows.append(
            [
                str(timings.point.x),
                timings.point.scheme.value.upper().replace("-", "/"),
                _IN_WORDS[timings.way],
                *times,
                round(solving, 1),
                f"{last.scheduled}, {state}",
            ]
        )
    return TableResult(columns=columns, rows=rows)


def _rows(every: Sequence[_Timings]) -> pa.Table:
    """Return a row for each run."""
    return pa.Table.from_pylist(
        [
            {
                "way": timings.way,
                "scheme": timings.point.scheme.value,
                "flows": len(timings.point.problem.demands),
                "slots": timings.point.problem.slots,
                "links": timings.point.links,
                "run": number,
                "seconds": run.seconds,
                "processor_s": run.processor_s,
                "solving_s": run.solving_s,
                "scheduled": run.scheduled,
                "bound": run.bound,
                "is_optimal": run.is_optimal,
            }
            for timings in every
            for number, run in enumerate(timings.runs)
        ]
    )


_S_PER_SCHEDULE: Final = {
    SchedulingScheme.UNCONSTRAINED: 6.0,
    SchedulingScheme.PATH_SETS: 0.5,
    SchedulingScheme.FIXED: 0.7,
}
"""Seconds of the paper's program, mean over a figure's points, on an x86-64 VM; our method adds little."""


def estimate_s(figure: RunTimes) -> dict[str, float]:
    """Estimate the time in seconds by mode."""
    sizes = len(figure.networks) * len(figure.flows) * len(figure.slots)
    return {"live": figure.runs * sizes * sum(_S_PER_SCHEDULE[scheme] for scheme in figure.schemes)}
