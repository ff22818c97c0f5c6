"""How long each figure took: recorded beside the results, and printed at the end of a replay."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from loko_testbed.cli.evaluate import _print_times
from loko_testbed.reproduce.evaluate import _noted
from loko_testbed.reproduce.figure_types.experiments import experiments_named
from loko_testbed.reproduce.folder import figure_file
from loko_testbed.reproduce.runs import FigureRun, read_runs

S = 10**9


def test_figures_that_are_replayed_together_have_their_own_times(tmp_path: Path) -> None:
    known = experiments_named(["fig17a", "fig17b", "fig18a"])
    figures = [known[f"loko/{name}"] for name in ("fig17a", "fig17b", "fig18a")]
    figure_file(tmp_path, "fig18a", ".parquet").touch()  # complete already
    with _noted(figures[2:], tmp_path):
        pass
    earlier = read_runs(tmp_path)["loko/fig18a"]
    with _noted(figures, tmp_path):
        begun_ns = time.time_ns()
        for name, end_s in (("fig17b", 2), ("fig17a", 5)):
            path = figure_file(tmp_path, name, ".parquet")
            path.touch()
            os.utime(path, ns=(0, begun_ns + end_s * S))
    runs = read_runs(tmp_path)
    assert runs["loko/fig17b"].seconds == pytest.approx(2, abs=0.5)
    assert runs["loko/fig17a"].seconds == 3
    assert runs["loko/fig17a"].together_with == ["loko/fig17b"]
    assert runs["loko/fig18a"] == earlier


def test_the_longest_figure_is_printed_first(capsys: pytest.CaptureFixture[str]) -> None:
    times = {"loko/fig17a": (3.0, 0.0), "tssdn/fig4b": (1.0, 9.5), "loko/table2": (0.1, 0.0)}
    made = [
        FigureRun(figure=name, began="", seconds=own, seeds_seconds=seeds, machine="", commit="")
        for name, (own, seeds) in times.items()
    ]
    _print_times(made, 20.0)
    printed = capsys.readouterr()
    lines = [line.split(maxsplit=1) for line in (printed.out + printed.err).splitlines()[1:]]
    assert lines == [
        ["1.0", "tssdn/fig4b, and 9.5 at further seeds"],
        ["3.0", "fig17a"],
        ["0.1", "table2"],
        ["6.4", "pictures, report and all else"],
        ["20.0", "in all"],
    ]
    assert sum(float(number) for number in re.findall(r"\d+\.\d", " ".join(map(" ".join, lines[:-1])))) == (
        pytest.approx(20)
    )
    _print_times([], 1.0)
    assert capsys.readouterr().out == ""
