"""Figures 9 to 12 of step 1: their documents, and small runs with the emulated board."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from loko.document import LABS, InputError
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure_types.bench.document import ProcessingTimesFigure
from loko_testbed.reproduce.figure_types.experiments import experiments, load_experiment, select
from loko_testbed.simulation.options import Options

FIGURES = experiments()
EXPERIMENTS = LABS / "bench" / "experiments"


class Counting:
    """Counts the steps that a replay has to do."""

    def __init__(self) -> None:
        self.steps = 0

    def begin(self, steps: int, kept: int, unit: str = "runs") -> None:
        self.steps += steps - kept

    def advance(self, doing: str, steps: float = 1) -> None: ...

    def writing(self, figure: str) -> None: ...


def replay(names: list[str], out: Path) -> tuple[list, int]:
    counting = Counting()
    options = Options(mode="virtual", seed=1, out=out, quick=True)
    return evaluate(select(names, FIGURES), options, counting), counting.steps


@pytest.mark.parametrize(
    ("name", "count"),
    [("fig9a", 12096), ("fig9b", 12096), ("fig10a", 4), ("fig10b", 6), ("fig10c", 8)],
)
def test_combinations_at_the_paper_s_scale(name: str, count: int) -> None:
    figure = FIGURES[f"loko/{name}"]
    assert isinstance(figure, ProcessingTimesFigure)
    tables = list(figure.of.tables())
    assert len(tables) * len(figure.of.frame_bytes) == count
    assert figure.samples == fact("loko", "dp.samples").value
    places = {figure.place(table, size) for table in tables for size in figure.of.frame_bytes}
    assert len(places) == {"fig9a": 9, "fig9b": 7, "fig10a": 4, "fig10b": 6, "fig10c": 8}[name]


def test_quick_keeps_to_the_figure_s_part_of_table_1() -> None:
    figure = FIGURES["loko/fig9a"]
    assert isinstance(figure, ProcessingTimesFigure)
    part = figure.chosen_part(quick=True)
    assert part.entries == [1, 65, 128]
    assert set(part.priorities) == {"increasing", "decreasing"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"of": {"entries": [2]}}, "entries: 2 is not in Table 1"),
        ({"of": {"match": ["vlan"]}}, "match"),
        ({"device": {"virtual": "zodiac-fx"}}, "device: names none for mode live"),
        ({"over": "colour"}, "over"),
        ({"samples": 0}, "samples"),
        ({"shows": "colour"}, "shows: 'colour' is unknown (known: echo-over-time, messages"),
        ({"shows": None}, "shows: is missing (known: echo-over-time, messages"),
        ({"shows": ["overload"]}, "shows: must be text"),
        ({"kind": "processing_time"}, "'processing_time' is called 'bench', with 'shows: processing-times'"),
    ],
)
def test_a_wrong_document_is_refused_in_one_line(tmp_path: Path, change: dict, message: str) -> None:
    data = yaml.safe_load((EXPERIMENTS / "fig10a.yml").read_text())
    path = tmp_path / "fig.yml"
    path.write_text(yaml.safe_dump({**data, **change}))
    with pytest.raises(InputError) as error:
        load_experiment(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_processing_times_are_measured_once_for_all_figures(tmp_path: Path) -> None:
    results, steps = replay(["fig10b", "fig10c"], tmp_path)
    assert steps == 6 + 8
    match, action = results
    assert match.findings["p_fx_port_us"] < match.findings["p_fx_all_us"]
    assert action.findings["line_rate_places"] == 3
    rows = pq.read_table(tmp_path / "fig10b.parquet")
    assert rows.num_rows == 6 * 20
    assert rows["match"].to_pylist().count("port") == 20
    written = json.loads((tmp_path / "fig10b.json").read_text())
    assert not any(line["joined"] for line in written["chart"]["panels"][0]["lines"])
    assert [panel["kind"] for panel in written["chart"]["panels"]] == ["boxes"]
    assert (tmp_path / "fig10b.svg").stat().st_size > 0
    again, steps = replay(["fig10b", "fig10c"], tmp_path)
    assert steps == 0
    assert again == results


def test_equation_6_is_compared_case_by_case(tmp_path: Path) -> None:
    (result,), _ = replay(["fig12b"], tmp_path)
    assert result.table is not None
    rows = [dict(zip(result.table.columns, row, strict=True)) for row in result.table.rows]
    assert len(rows) == result.findings["cases"] == 24
    for row in rows:
        error = 100 * (row["equation_6_mbps"] / row["measured_mbps"] - 1)
        assert row["equation_6_error_percent"] == pytest.approx(error, abs=0.001)
    worst = max(abs(row["equation_6_error_percent"]) for row in rows)
    assert result.findings["equation_6_error_max_percent"] == pytest.approx(worst, abs=0.001)
    assert pq.read_table(tmp_path / "fig12b.parquet").num_rows == 24
    for panel in result.chart.panels:
        assert [len(cloud.y) for cloud in panel.clouds] == [24, 24]
        assert (panel.y.low, panel.y.high) == (None, None)  # so that no point lies beyond the axis


def test_the_sweep_goes_beyond_the_maximum(tmp_path: Path) -> None:
    (result,), _ = replay(["fig12a"], tmp_path)
    (panel,) = result.chart.panels
    for curve, entries in zip(panel.curves, (17, 33), strict=True):
        maximum = result.findings[f"maximum_{entries}_entries_mbps"]
        assert curve.x[0] < maximum < curve.x[-1]
        assert max(curve.y) <= maximum * 1.01
        assert curve.y[-1] < max(curve.y)
