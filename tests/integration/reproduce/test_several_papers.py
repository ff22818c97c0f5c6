"""Results of several papers in one folder: figures with the same ID do not collide."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from no_rendering import no_rendering

from loko.document import LABS, InputError
from loko_testbed.reproduce import facts
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure import Figure
from loko_testbed.reproduce.figure_types.experiments import experiments, experiments_named, select
from loko_testbed.reproduce.report import write_report
from loko_testbed.reproduce.result import read_results
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.senders import SenderChoice
from loko_testbed.tasks.progress import NoProgress

IDS = ("table2", "fig17a", "fig17b", "sec4")
OTHER = "other"


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The figures of two papers with the same IDs; the second paper is a copy of the first."""
    labs = tmp_path / "labs"
    shutil.copytree(LABS / "papers", labs / "papers")  # all papers, since a folder's results are judged again
    shutil.copy(LABS / "papers/loko.yml", labs / f"papers/{OTHER}.yml")
    monkeypatch.setattr(facts, "LABS", labs)
    facts.facts.cache_clear()
    for path in LABS.glob("*/experiments/*.yml"):
        for paper in ("loko", OTHER) if path.stem in IDS and "paper: loko" in path.read_text() else ():
            copy = labs / f"{path.parents[1].name}-{paper}/experiments/{path.name}"
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text().replace("paper: loko", f"paper: {paper}", 1))
    figures: dict[str, Figure] = experiments(labs)
    yield figures
    facts.facts.cache_clear()


def replay(figures: dict[str, Figure], names: list[str], out: Path):
    out.mkdir(exist_ok=True)
    senders = SenderChoice(sender="simple")  # which sends something even in so short a run
    options = Options(mode="virtual", seed=1, out=out, runs=1, seconds=0.2, quick=True, senders=senders)
    return evaluate(select(names, figures), options, NoProgress())


def files(folder: Path) -> dict[str, bytes]:
    kept = {".json", ".parquet", ".svg"}
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in kept}


@pytest.fixture
def undrawn() -> Iterator[None]:
    """Pictures have nothing but the names of their figures."""
    with no_rendering():
        yield


@pytest.mark.usefixtures("undrawn")
def test_a_figure_of_another_paper_overwrites_none_of_the_same_id(figures, tmp_path: Path) -> None:
    assert sorted(figures) == sorted(f"{paper}/{figure}" for paper in ("loko", OTHER) for figure in IDS)
    out = tmp_path / "out"
    replay(figures, list(IDS), out)
    before = files(out)
    assert {"table2.json", "fig17a.json", "fig17a.parquet", "fig17a.svg", "sec4.parquet"} <= set(before)
    replay(figures, [f"{OTHER}/{figure}" for figure in IDS], out)
    assert files(out) == before
    theirs = files(out / OTHER)
    assert set(theirs) == set(before)
    assert json.loads(theirs["fig17a.json"])["paper"] == OTHER
    assert theirs["fig17a.parquet"] != before["fig17a.parquet"], "another figure draws other traffic"
    assert sorted(result.name for result in read_results(out)) == sorted(figures)


def test_only_what_can_have_a_name_is_read(figures, tmp_path: Path) -> None:
    labs = tmp_path / "labs"
    (labs / "two-switch-other/experiments/sec4.yml").write_text("kind: unknown\n")
    named = experiments_named(["fig17a", f"{OTHER}/fig17b"], labs)
    assert sorted(named) == ["loko/fig17a", f"{OTHER}/fig17b"]
    assert all(named[name] == figures[name] for name in named)
    for names in ([], ["fig17a", "none"], ["fig*"], ["**"]):
        with pytest.raises(InputError, match=r"sec4\.yml:1: kind: 'unknown' is unknown"):
            experiments_named(names, labs)


def test_an_experiment_bears_the_name_of_its_file(figures, tmp_path: Path) -> None:
    path = tmp_path / "labs/two-switch-other/experiments/fig17a.yml"
    path.rename(path.with_stem("mine"))
    with pytest.raises(InputError, match=r"mine\.yml:4: figure: 'fig17a' is not the file's name"):
        experiments(tmp_path / "labs")


@pytest.mark.usefixtures("undrawn")
def test_figures_of_two_papers_are_replayed_at_a_time(figures, tmp_path: Path) -> None:
    together, alone = tmp_path / "together", tmp_path / "alone"
    names = ["fig17a", f"{OTHER}/fig17a", f"{OTHER}/fig17b"]
    results = replay(figures, names, together)
    assert [result.name for result in results] == ["loko/fig17a", "other/fig17a", "other/fig17b"]
    for name in names:
        replay(figures, [name], alone)
    assert files(together / OTHER)["fig17a.parquet"] == files(alone / OTHER)["fig17a.parquet"]
    assert files(together) == files(alone)


def test_the_report_tells_the_papers_apart(figures, tmp_path: Path) -> None:
    replay(figures, ["fig17a", f"{OTHER}/fig17a"], tmp_path)
    page = write_report(tmp_path).read_text()
    identifiers = [part.split('"')[0] for part in page.split(' id="')[1:]]
    assert len(identifiers) == len(set(identifiers))
    assert {"fig17a", "other-fig17a"} <= set(identifiers)
    assert "<h2>Figure 17a. " in page
    assert "<h2>other, Figure 17a. " in page
    assert "loko evaluate other/fig17a " in page


@pytest.mark.usefixtures("undrawn")
def test_a_result_that_lies_where_another_one_belongs_is_told(figures, tmp_path: Path) -> None:
    replay(figures, [f"{OTHER}/table2"], tmp_path)
    shutil.move(tmp_path / OTHER / "table2.json", tmp_path / "table2.json")
    with pytest.raises(InputError, match=r"table2.json: is a result of other/table2: move it to .*"):
        read_results(tmp_path)
