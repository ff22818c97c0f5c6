"""The benchmark of the whole replay reports which figures take long."""

from benchmarks.replay import by_figure
from loko_testbed.reproduce.runs import FigureRun


def run_of(figure: str, seconds: float, *others: str) -> FigureRun:
    return FigureRun(
        figure=figure,
        began="2026-11-25T00:00:00Z",
        seconds=seconds,
        together_with=list(others),
        machine="",
        commit="",
    )


def test_figures_that_are_replayed_together_count_once_and_the_dearest_comes_first() -> None:
    runs = [
        run_of("loko/fig3b", 2.0),
        run_of("loko/fig17a", 5.0, "loko/fig17b"),
        run_of("loko/fig17b", 5.0, "loko/fig17a"),
        run_of("loko/attack", 7.5),
    ]
    assert list(by_figure(runs).items()) == [
        ("loko/attack", 7.5),
        ("loko/fig17a, loko/fig17b", 5.0),
        ("loko/fig3b", 2.0),
    ]
