"""Figures that do not depend on each other are computed once, kept and found again."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from sample_charts import LINES

from loko.document import InputError
from loko_testbed.reproduce.chart import Chart
from loko_testbed.reproduce.figure_types import figure_type_named, figure_type_names
from loko_testbed.reproduce.figure_types.experiments import FORMER_TYPES, experiments, load_experiment
from loko_testbed.reproduce.finding_checks import FindingFigure
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.result import AxisLabel
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import NoProgress

FIGURE = FindingFigure.model_validate(
    {
        "kind": "made-up",
        "figure": "fig0",
        "paper": "loko",
        "title": "t",
        "modes": ["virtual"],
        "notes": [{"fact": "I10", "text": "a note"}],
        "claims": [
            {
                "claim": "c",
                "fact": "fig12b/equation-6-error",
                "paper": "6 %",
                "check": {"kind": "below", "finding": "error_percent"},
            }
        ],
    }
)


class Counting:
    """Computes a figure and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, figure, options, progress):
        self.times += 1
        outcome = Outcome(
            chart=Chart(panels=[LINES]), findings={"error_percent": 4.5}, x=AxisLabel(name="x", unit="")
        )
        return outcome, pa.table({"value": [1, 2, self.times]})


def test_a_figure_is_computed_once(tmp_path: Path) -> None:
    counting = Counting()
    produce, options = OneByOne(counting), Options(mode="virtual", seed=1, out=tmp_path)
    first = produce([FIGURE], options, NoProgress())
    assert produce([FIGURE], options, NoProgress()) == first
    assert counting.times == 1
    assert first[0].findings == {"error_percent": 4.5}
    assert [note.text for note in first[0].notes] == ["a note"]
    assert pq.read_table(tmp_path / "fig0.parquet")["value"].to_pylist() == [1, 2, 1]


@pytest.mark.parametrize("change", [{"seed": 2}, {"quick": True}, {"runs": 3}])
def test_other_parameters_compute_it_anew(tmp_path: Path, change: dict) -> None:
    counting = Counting()
    produce, options = OneByOne(counting), Options(mode="virtual", seed=1, out=tmp_path)
    produce([FIGURE], options, NoProgress())
    produce([FIGURE], replace(options, **change), NoProgress())
    assert counting.times == 2


def test_parameters_of_the_kind_count_and_words_do_not(tmp_path: Path) -> None:
    counting, options = Counting(), Options(mode="virtual", seed=1, out=tmp_path)
    OneByOne(counting, lambda figure, options: {"load": 1.0})([FIGURE], options, NoProgress())
    OneByOne(counting, lambda figure, options: {"load": 0.9})([FIGURE], options, NoProgress())
    assert counting.times == 2
    renamed = FIGURE.model_copy(update={"title": "other words"})
    OneByOne(counting, lambda figure, options: {"load": 0.9})([renamed], options, NoProgress())
    assert counting.times == 2


def test_damaged_rows_are_refused_in_one_line(tmp_path: Path) -> None:
    produce, options = OneByOne(Counting()), Options(mode="virtual", seed=1, out=tmp_path)
    (tmp_path / "fig0.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError, match=r"fig0\.parquet: damaged records"):
        produce([FIGURE], options, NoProgress())


def test_every_kind_of_every_experiment_is_there() -> None:
    assert {"traffic", "table"} <= set(figure_type_names())
    for figure in experiments().values():
        kind = figure_type_named(figure.kind)
        assert isinstance(figure, kind.documents)
        assert set(kind.estimate_s(figure)) <= set(figure.modes)


@pytest.mark.parametrize("former", FORMER_TYPES)
def test_a_former_type_is_refused_with_what_to_write_instead(former: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        load_experiment(written(tmp_path, {"kind": former}))
    told = re.fullmatch(
        rf"{tmp_path}/fig0\.yml:1: kind: '{former}' is called '(\w+)'(?:, with 'shows: ([\w-]+)')?.*",
        str(refused.value),
    )
    assert told is not None, refused.value
    kind, shows = told.groups()
    figure = next(
        figure
        for figure in experiments().values()
        if figure.kind == kind and shows in {None, getattr(figure, "shows", None)}
    )
    document = figure.model_dump(mode="json", exclude_none=True) | {"kind": kind, "figure": "fig0"}
    assert load_experiment(written(tmp_path, document | ({"shows": shows} if shows else {}))).kind == kind


def written(folder: Path, document: dict[str, object]) -> Path:
    path = folder / "fig0.yml"
    path.write_text(yaml.safe_dump(document))
    return path
