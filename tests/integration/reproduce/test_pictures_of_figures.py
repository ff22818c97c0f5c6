"""Small replays of figures with crowded pictures: texts stand apart, legends are complete, scales equal."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from no_rendering import no_rendering
from picture_texts import beyond_the_edges, colours_of, overlapping
from pydantic import JsonValue
from session_file import session_file

from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.chart import FindingPlace, HeatPanel, TimelinePanel
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types.experiments import experiments, select
from loko_testbed.reproduce.plots.theme import PAPER
from loko_testbed.reproduce.reasons import with_values
from loko_testbed.reproduce.result import FigureResult, read_results
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import NoProgress

FIGURES = [
    "loko/fig12a",
    "loko/fig14a",
    "loko/fig14b",
    "loko/table2",
    "predictability/fig14b",
    "predictability/fig2e",
    "predictability/fig3",
    "predictability/fig8",
    "slicing/fig2b",
    "slicing/fig3",
    "tssdn/table2",
]
SMALLER: dict[str, dict[str, JsonValue]] = {"predictability/fig8": {"measures.most_entries": 1_000}}
"""Replacements in a document whose replay takes seconds, by the path to each."""
MARKED = {
    "loko/fig14a",
    "loko/fig14b",
    "loko/table2",
    "predictability/fig14b",
    "predictability/fig8",
    "slicing/fig2b",
    "tssdn/table2",
}
"""Those of which the paper prints a number that has a place in the picture."""


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FigureResult]:
    def replay(out: Path) -> None:
        figures = {figure.name: figure for figure in select(FIGURES, experiments())}
        figures |= {name: with_values(figures[name], values) for name, values in SMALLER.items()}
        options = Options(mode="virtual", seed=1, out=out, quick=True)
        with no_rendering():
            evaluate(list(figures.values()), options, NoProgress())

    out = session_file(tmp_path_factory, "small replays", replay)
    return {result.name: result for result in read_results(out)}


@pytest.fixture(scope="module")
def picture(replayed: dict[str, FigureResult]) -> Callable[[str, bool], bytes]:
    """Return the SVG of a figure with or without title and claims, each drawn once."""
    return cache(lambda name, captioned: pictures.svg(replayed[name], captioned=captioned))


@pytest.mark.parametrize("captioned", [True, False])
@pytest.mark.parametrize("name", FIGURES)
def test_the_texts_of_a_figure_stand_apart(
    picture: Callable[[str, bool], bytes], name: str, captioned: bool
) -> None:
    drawn = picture(name, captioned)
    assert not overlapping(drawn)
    assert not beyond_the_edges(drawn)


def test_the_legend_of_a_figure_has_every_colour_of_its_marks(picture: Callable[[str, bool], bytes]) -> None:
    for name in (
        "predictability/fig8",
        "predictability/fig3",
        "slicing/fig2b",
        "slicing/fig3",
        "loko/fig12a",
    ):
        drawn = picture(name, False)
        assert colours_of(drawn, legend=False) <= colours_of(drawn, legend=True), name


def test_figures_14a_and_14b_have_the_same_scales(replayed: dict[str, FigureResult]) -> None:
    first, second = (replayed[f"loko/fig14{part}"].chart for part in "ab")
    assert first is not None
    assert second is not None
    scales = [
        [(panel.value.low, panel.value.high) for panel in chart.panels if isinstance(panel, HeatPanel)]
        for chart in (first, second)
    ]
    assert scales[0] == scales[1]
    assert len(scales[0]) == 3
    assert None not in [end for scale in scales[0] for end in scale]


@pytest.mark.parametrize("name", FIGURES)
def test_the_papers_numbers_are_in_the_picture(picture: Callable[[str, bool], bytes], name: str) -> None:
    drawn = picture(name, False).decode()
    assert (PAPER in drawn and "paper" in drawn) == (name in MARKED)


def test_every_place_of_a_finding_has_that_finding(replayed: dict[str, FigureResult]) -> None:
    for result in replayed.values():
        panels = [] if result.chart is None else result.chart.panels
        places: list[FindingPlace] = [
            place for panel in panels if not isinstance(panel, TimelinePanel) for place in panel.findings
        ]
        printed = {mark.finding for mark in result.printed}
        assert {place.finding for place in places} & printed <= result.findings.keys()


def test_a_timeline_ends_with_the_last_packet(replayed: dict[str, FigureResult]) -> None:
    result = replayed["slicing/fig3"]
    assert result.chart is not None
    (panel,) = result.chart.panels
    assert isinstance(panel, TimelinePanel)
    assert [len(row.bars) for row in panel.rows] == [20, 20, 20]
    for row in panel.rows:
        assert max(bar.end for bar in row.bars) == pytest.approx(max(instant.at for instant in row.instants))
