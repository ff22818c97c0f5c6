"""Figures of run times: what is measured and reported, and that nothing is claimed without measurement."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from loko_testbed.cli import main as cli
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types import figure_type_named
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.run_times.document import RunTimesFigure
from loko_testbed.reproduce.figure_types.run_times.timing import Find, ours, time_indexed, timed
from loko_testbed.reproduce.result import FigureResult
from loko_testbed.simulation.options import NoProgress, Options

pytest.importorskip("networkx")

from benchmarks import schedule
from loko.schedule.packing import Paths
from loko.schedule.problem import ScheduleSolution, SchedulingProblem
from loko.solvers import Solver, solver_named
from loko.solvers.program import Solve, TimeBudget
from loko_testbed.reproduce.figure_types.run_times import compute as run_times
from loko_testbed.reproduce.figure_types.run_times.compute import points_of

NAMES = ("tssdn/fig4d", "tssdn/fig4e", "tssdn/fig4f")


def figure(name: str = "tssdn/fig4d", **changes: Any) -> RunTimesFigure:
    """Return a figure of the paper with some values changed."""
    document = experiments()[name]
    assert isinstance(document, RunTimesFigure)
    return RunTimesFigure.model_validate({**document.model_dump(mode="json"), **changes})


def small(**changes: Any) -> RunTimesFigure:
    """Return a figure with three numbers of flows that take milliseconds."""
    return figure(flows=[2, 4, 8], schemes=["s-pr", "s-fr"], runs=2, **changes)


def options(out: Path, *, quick: bool = False) -> Options:
    return Options(mode="live", seed=1, out=out, quick=quick)


def measured(document: RunTimesFigure, chosen: Options) -> FigureResult:
    (result,) = evaluate([document], chosen, NoProgress())
    return result


def test_sizes_are_the_papers() -> None:
    by_flows, by_slots, by_links = (points_of(figure(name), seed=1) for name in NAMES)
    assert {point.links for point in by_flows} == {38}
    assert (by_flows[0].x, by_flows[-1].x) == (20, 110)
    assert {len(point.problem.demands) for point in by_slots} == {300}
    assert (by_slots[0].x, by_slots[-1].x) == (5, 50)
    assert [point.x for point in by_links[::2]] == [30, 84, 170, 256]


def test_a_run_takes_time_and_finds_what_the_other_way_finds() -> None:
    (point, *_) = points_of(small(), seed=1)
    solve = solver_named(Solver.HIGHS)
    our_run, time_indexed_run = (
        timed(find, point.problem, point.scheme, solve, limit_s=20, seed=1) for find in (ours, time_indexed)
    )
    assert our_run.is_optimal
    assert time_indexed_run.is_optimal
    assert our_run.scheduled == time_indexed_run.scheduled == 2
    assert 0 < time_indexed_run.solving_s < time_indexed_run.seconds
    assert our_run.solving_s == 0, "every flow has a slot at once: no solver is asked"


def test_a_result_has_the_times_of_every_scheme_and_way(tmp_path: Path) -> None:
    result = measured(small(), options(tmp_path))
    series = [f"{way}_{scheme}" for way in ("ours", "time_indexed") for scheme in ("pr", "fr")]
    for name in series:
        times = [result.findings[f"{name}_{flows}_ms"] for flows in (2, 4, 8)]
        assert min(times) > 0
        assert result.findings[f"{name}_slowest_ms"] == max(times)
        assert result.findings[f"{name}_growth"] == times[-1] / times[0]
    rows = pq.read_table(tmp_path / "tssdn" / "fig4d.parquet").to_pylist()
    assert len(rows) == 3 * len(series) * 2
    assert {row["flows"] for row in rows} == {2, 4, 8}
    assert result.provenance.machine, "times are of a machine, which is named"


def test_a_part_says_nothing_of_the_whole(tmp_path: Path) -> None:
    result = measured(small(), options(tmp_path, quick=True))
    assert "time_indexed_pr_4_ms" in result.findings
    assert not {name for name in result.findings if name.endswith(("growth", "linearity", "slowest_ms"))}
    assert {claim.holds for claim in result.claims} == {None}


def test_what_was_stopped_has_no_run_time_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(
        problem: SchedulingProblem, paths: Paths | None, solve: Solve, clock: TimeBudget
    ) -> ScheduleSolution:
        return ScheduleSolution(assignments={}, bound=len(problem.demands), why="the clock")

    ways: dict[str, Find] = {"ours": ours, "time_indexed": stopped}
    monkeypatch.setattr(run_times, "WAYS", ways)
    result = measured(small(), options(tmp_path))
    assert "ours_pr_8_ms" in result.findings
    assert not [name for name in result.findings if name.startswith("time_indexed")]
    assert "the paper's program, HiGHS, S-PR, 8 flows" in " ".join(note.text for note in result.notes)


def test_a_run_that_waits_for_the_machine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "loko_testbed.reproduce.figure_types.run_times.timing.time.process_time_ns", lambda: 0
    )
    monkeypatch.setattr(run_times, "_LEAST_WAITING_S", 0.0)
    result = measured(small(), options(tmp_path))
    assert result.findings["most_waiting_percent"] == 100
    assert "waited for a processor" in " ".join(note.text for note in result.notes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"modes": ["virtual"]}, "times are of this machine"),
        ({"slots": [5, 6]}, "flows vary, so give one of slots"),
        ({"flows": [2]}, "quick has 2 points"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        figure(**changes)


@pytest.mark.parametrize(
    ("name", "status", "told"),
    [
        ("tssdn/fig4f", 0, "tssdn/fig4f:"),
        ("tssdn/fig4a", 2, "--mode live: live runs make network namespaces, which needs root"),
    ],
)
def test_run_times_need_no_root_and_others_do(
    name: str,
    status: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    words = ["loko", "evaluate", name, "--mode", "live", "--quick", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        cli.main()
    captured = capsys.readouterr()
    assert end.value.code == status
    assert told in captured.out + captured.err


def test_the_benchmark_measures_the_points_of_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "experiments_named", lambda _names: dict.fromkeys(NAMES, small()))
    told: list[str] = []
    points = list(schedule.growth(told.append))
    assert len(points) == 3 * len(points_of(small(), seed=1))
    mine, paper, row = points[0]
    assert (mine.way, paper.way) == ("ours", "highs time-indexed")
    assert mine.scheduled == paper.scheduled == 2
    assert row[0] == "fig4d, S/PR, 2 flows, 5 slots, 38 cables"
    assert figure_type_named("run_times").estimate_s(small()).keys() == {"live"}
