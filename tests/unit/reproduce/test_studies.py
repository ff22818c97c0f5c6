"""Studies: their documents, their pages, and a small run of each in one process."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from no_rendering import no_rendering

from loko.document import InputError
from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types.experiments import experiments, load_experiment, select
from loko_testbed.reproduce.figure_types.study.document import StudyFigure
from loko_testbed.reproduce.result import read_result
from loko_testbed.reproduce.studies.growth import GrowthTask
from loko_testbed.reproduce.studies.pages import main, measurements, page_file, pages, pictured
from loko_testbed.reproduce.studies.study import study_named
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import NoProgress

ROOT = Path(__file__).resolve().parents[3]
RESULTS = measurements(ROOT / "docs" / "measurements")
PAGES = pages(RESULTS)
STUDIES = {name: figure for name, figure in experiments().items() if isinstance(figure, StudyFigure)}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_template_makes_of_the_results(name: str) -> None:
    command = "python -m loko_testbed.reproduce.studies.pages"
    assert (ROOT / page_file(name)).read_text(encoding="utf-8") == PAGES[name], command


@pytest.mark.parametrize("name", pictured(PAGES))
def test_a_picture_is_that_of_the_result(name: str) -> None:
    assert (ROOT / "docs" / "images" / f"{name}.svg").read_bytes() == pictures.svg(
        RESULTS[name], captioned=False
    )


@pytest.mark.parametrize("name", STUDIES)
def test_every_task_of_a_study_can_be_sent_to_another_process(name: str) -> None:
    figure = STUDIES[name]
    for quick in (True, False):
        tasks = figure.study.tasks(figure.size(quick=quick), 1)
        assert len(tasks) == len({str(task) for task in tasks}), "tasks are told apart by their texts"
        assert pickle.loads(pickle.dumps(tasks)) == tasks
        assert pickle.loads(pickle.dumps(figure.study.measure)) is figure.study.measure


@pytest.mark.parametrize("name", RESULTS)
def test_a_study_finds_what_its_claims_are_about(name: str) -> None:
    """A claim on a finding that nothing yields would be called untestable for ever."""
    assert [claim.claim for claim in RESULTS[name].claims if claim.holds is None] == []


def test_whole_paths_and_what_fits(tmp_path: Path) -> None:
    size = {"networks": 2, "runs": 20, "sets": 1}
    figure = STUDIES["studies/wholepaths"].model_copy(update={"quick": size})
    options = Options(mode="virtual", seed=1, out=tmp_path, quick=True)
    with no_rendering():
        (result,) = evaluate([figure], options, NoProgress())
    verdicts = [claim.holds for claim in result.claims]
    assert verdicts.count(True) > 0
    assert False not in verdicts
    found = result.findings
    assert (found["sets"], found["broken_flows"]) == (1, 0)
    assert found["set_packets"] > 4_000
    assert found["fit_0_7_ms_by_path"] > found["fit_0_7_ms_by_target"] > 0


def test_chance_is_found_where_it_decides(tmp_path: Path) -> None:
    size = {"seeds": {2: ["loko/sec4"], 3: ["tssdn/frequencies"]}}
    figure = STUDIES["studies/chance"].model_copy(update={"quick": size})
    options = Options(mode="virtual", seed=1, out=tmp_path, quick=True)
    with no_rendering():
        (result,) = evaluate([figure], options, NoProgress())
    assert result.table is not None
    without, with_chance = result.table.rows
    assert (without[:3], without[-1]) == (["loko/sec4", 2, "equal"], "")
    assert with_chance[:3] == ["tssdn/frequencies", 3, "differ"]
    assert with_chance[-1] == "jitter at 100 Hz with 64 bytes: undecided (at 1 of 3 seeds)"
    found = result.findings
    assert (found["figures"], found["figures_without_chance"], found["turning_claims"]) == (2, 1, 1)


def test_every_claim_that_turns_with_the_seed_is_judged_at_several() -> None:
    table = RESULTS["chance"].table
    assert table is not None
    known = experiments()
    turning = {
        (name, each.rpartition(": ")[0]) for name, *_, text in table.rows for each in str(text).split("; ")
    }
    at_several = {
        (name, claim.claim) for name, figure in known.items() for claim in figure.claims if claim.seeds > 1
    }
    assert {(name, claim) for name, claim in turning if claim} <= at_several


def test_the_page_names_the_figures_in_which_chance_was_not_looked_for() -> None:
    size = STUDIES["studies/chance"].full["seeds"]
    looked_for = {name for names in size.values() for name in names}
    others = [figure.name for figure in select([], experiments()) if figure.name not in looked_for]
    missing = [name for name in others if f"`{name.removeprefix('loko/')}`" not in PAGES["chance"]]
    assert not missing


def test_studies_are_evaluated_only_if_they_are_named() -> None:
    named = [figure for mode in ("virtual", "live") for figure in select([], experiments(), mode)]
    assert not [figure for figure in named if isinstance(figure, StudyFigure)]


def test_a_size_that_the_study_does_not_know_is_refused(tmp_path: Path) -> None:
    text = (ROOT / "labs/studies/experiments/growth.yml").read_text(encoding="utf-8")
    wrong = tmp_path / "growth.yml"
    wrong.write_text(text.replace("quick: {switches:", "quick: {boards:"))
    with pytest.raises(InputError, match=r"growth\.yml:2: unknown key 'boards'"):
        load_experiment(wrong)
    wrong.write_text(text.replace("measured_by: growth", "measured_by: nothing"))
    with pytest.raises(InputError, match=r"no module loko_testbed\.reproduce\.studies\.nothing"):
        load_experiment(wrong)


@pytest.mark.parametrize("module", ["nothing", "pages", "study", "../outcome"])
def test_a_document_names_a_module_that_is_a_study(tmp_path: Path, module: str) -> None:
    wrong = tmp_path / "wrong.yml"
    text = (ROOT / "labs" / "studies" / "experiments" / "growth.yml").read_text(encoding="utf-8")
    wrong.write_text(text.replace("measured_by: growth", f"measured_by: {module}"), encoding="utf-8")
    with pytest.raises(InputError, match=f"study '{module}': ") as refused:
        load_experiment(wrong)
    assert "\n" not in str(refused.value)


def test_a_study_is_a_figure_with_rows_claims_and_a_picture(tmp_path: Path) -> None:
    figure = STUDIES["studies/growth"].model_copy(update={"quick": {"switches": [5]}})
    options = Options(mode="live", seed=1, out=tmp_path, quick=True)
    (result,) = evaluate([figure], options, NoProgress())
    assert result == read_result(tmp_path / "studies/growth.json")
    assert result.findings["ring_5_full_rate_requests_per_second"] > 0
    assert result.table is not None
    assert [row[:3] for row in result.table.rows] == [
        [kind, "5", scheme] for kind in ("ring", "random") for scheme in ("full-rate", "packet-granular")
    ]
    assert {path.suffix for path in (tmp_path / "studies").iterdir()} == {".json", ".parquet", ".svg", ".png"}
    assert (tmp_path / "report.html").read_text(encoding="utf-8").count('id="studies-growth"') == 1


def test_growth_accepts_the_same_flows_in_every_run() -> None:
    task = GrowthTask("random", "full-rate", 7, 1)
    first, again = (study_named("growth").measure(task)[0] for _ in range(2))
    assert (first["accepted"], first["requests"]) == (again["accepted"], again["requests"])
    assert 0 < first["accepted"] <= first["requests"]


def test_a_folder_without_studies_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path)])
    assert capsys.readouterr().err.count("\n") == 1
