"""The report: how to repeat a figure, when and where it was made, its files, and which claims fail."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from live_harness import needs_namespaces
from markupsafe import escape
from no_rendering import rendering_once
from session_file import session_file
from typer.testing import CliRunner

from loko.document import InputError
from loko_testbed.cli import main as cli
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.report import render, write_report
from loko_testbed.reproduce.report_sources import in_papers_order
from loko_testbed.reproduce.result import ClaimResult, read_results
from loko_testbed.reproduce.runs import RUNS, read_runs
from loko_testbed.simulation.options import Options, _not_default, arguments_of, names_of_choices, unflatten

NAMES = ["fig17a", "table2", "sec4"]
CHOSEN = ["--quick", "--points=admitted", "--offered-load=0.7", "--capacity-factor=0.95", "--seed=7"]


def loko(*words):
    return CliRunner().invoke(cli.app, [*map(str, words)])


@pytest.fixture(scope="module", autouse=True)
def _drawn_once() -> Iterator[None]:
    with rendering_once():
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Results that are this worker's own."""

    def evaluate(out: Path) -> None:
        assert loko("evaluate", *NAMES, "--quick", "--out", out / "results").exit_code == 0

    made = session_file(tmp_path_factory, "results of a report", evaluate)
    return shutil.copytree(made / "results", tmp_path_factory.mktemp("report") / "results")


def test_what_was_not_replayed_and_how_to(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    rows = re.findall(r"<td><code>(loko evaluate [^<]*)</code></td>", page)
    commands = {name: command for command in rows for name in [command.split()[2]]}
    assert len(commands) == len(rows) == len(experiments()) - len(NAMES)
    assert not commands.keys() & set(NAMES)
    assert commands["tssdn/fig4d"] == "loko evaluate tssdn/fig4d --mode live"
    assert commands["fig17b"] == "loko evaluate fig17b"
    assert "millions of packets, for over an hour" in page


def options_of(command: str, monkeypatch, tmp_path) -> Options:
    """Return the options that a command line passes to the replay."""
    asked: list[Options] = []

    def replay(chosen, options, progress):
        asked.append(options)
        return []

    monkeypatch.setattr("loko_testbed.reproduce.evaluate.evaluate", replay)
    loko_word, *words = shlex.split(command)
    assert loko_word == "loko"
    done = loko(*words, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    return asked[0]


def alike(options: Options, other: Options) -> bool:
    return replace(options, out=Path(), jobs=1) == replace(other, out=Path(), jobs=1)


LIVE = pytest.param(
    ["--mode", "live", "--backend", "ovs", "--builder", "containerlab", "--runs", "3", "--seconds", "0.25"],
    marks=needs_namespaces,
)


@pytest.mark.parametrize("words", [[], CHOSEN, ["--runs", "2", "--seconds", "0.123456"], LIVE])
def test_the_command_of_the_report_asks_for_the_same(words, monkeypatch, tmp_path: Path) -> None:
    first = options_of(shlex.join(["loko", "evaluate", "fig17a", *words]), monkeypatch, tmp_path)
    again = shlex.join(["loko", "evaluate", "loko/fig17a", *arguments_of(first.chosen())])
    assert alike(options_of(again, monkeypatch, tmp_path), first)
    for word in words:
        assert word.replace("=", " ") in again


def test_every_choice_is_an_option_of_the_command(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    told = loko("evaluate", "--help").output
    assert "mode" in names_of_choices()
    for name in names_of_choices():
        assert f"--{name.replace('_', '-')} " in told, name


@dataclass(frozen=True)
class Part:
    """A group of related options."""

    depth: int | None = None
    width: float | None = None


@dataclass(frozen=True)
class Nested:
    """Like `Options`, but with such a group."""

    mode: str
    out: Path = Path()
    height: float = 1.0
    part: Part = Part()


def test_choices_that_belong_together_are_told_and_taken_one_by_one() -> None:
    chosen = _not_default(Nested(mode="m", out=Path("elsewhere"), height=0.1, part=Part(width=1 / 3)))
    assert chosen == {"height": 0.1, "width": 1 / 3}
    assert arguments_of(chosen) == ["--height", "0.1", "--width", repr(1 / 3)]
    assert unflatten(chosen, Nested) == {"height": 0.1, "part": {"width": 1 / 3}}
    assert names_of_choices(Nested) == {"mode", "height", "depth", "width"}


def test_the_command_of_a_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert loko("evaluate", "fig17a", *CHOSEN, "--out", first).exit_code == 0
    [result] = read_results(first)
    assert result.command in re.sub("&#34;|&#39;", "'", (first / "report.html").read_text())
    _, *words = shlex.split(result.command)
    assert loko(*words, "--out", second).exit_code == 0
    for name in ("fig17a.json", "fig17a.parquet", "fig17a.svg"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_each_files_link_leads_to_it_and_its_checksum_is_right(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    files = re.findall(r'<a href="([^"#]+)">([^<]+)</a></dt><dd>[^<]* <code>([0-9a-f]{64})</code>', page)
    linked = {unquote(link) for link, _, _ in files}
    assert linked == {path.name for path in folder.iterdir()} - {"report.html", RUNS}
    for link, told, checksum in files:
        assert hashlib.sha256((folder / unquote(link)).read_bytes()).hexdigest() == checksum, told


def test_start_duration_and_machine_are_told_of_virtual_runs_too_but_not_in_the_json(
    folder: Path,
) -> None:
    runs = read_runs(folder)
    assert sorted(runs) == ["loko/fig17a", "loko/sec4", "loko/table2"]
    page = (folder / "report.html").read_text()
    for run in runs.values():
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", run.began)
        assert run.seconds >= 0
        assert run.machine in page
        assert run.began.replace("T", " ").replace("Z", " UTC") in page
    for path in folder.glob("*.json"):
        assert runs["loko/fig17a"].machine not in path.read_text()


def test_what_was_not_replayed_again_keeps_its_start(folder: Path) -> None:
    lines = {json.loads(line)["figure"]: line for line in (folder / RUNS).read_text().splitlines()}
    marked = [line.replace('"began":"2', '"began":"1') for line in lines.values()]
    (folder / RUNS).write_text("\n".join(marked) + "\n")
    assert loko("evaluate", "fig17a", "sec4", "--quick", "--out", folder).exit_code == 0
    assert {run.began[0] for run in read_runs(folder).values()} == {"1"}
    assert loko("evaluate", "fig17a", "--quick", "--seed", "2", "--out", folder).exit_code == 0
    assert read_runs(folder)["loko/fig17a"].began[0] == "2"
    assert read_runs(folder)["loko/sec4"].began[0] == "1"


def test_a_folder_without_runs_has_a_report_and_a_damaged_one_is_told(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / RUNS).write_text("{")
    with pytest.raises(InputError, match=r"runs\.jsonl: damaged; delete it"):
        write_report(tmp_path)
    (tmp_path / RUNS).unlink()
    assert "<dt>began</dt>" not in write_report(tmp_path).read_text()


def test_what_does_not_hold_is_listed_with_its_reason_and_nothing_else_is(folder: Path) -> None:
    results = read_results(folder)
    broken = ClaimResult(claim="it is so", paper="1", here="2", holds=False, where="1", because="a reason")
    without = broken.model_copy(update={"claim": "it is not", "because": ""})
    kept = broken.model_copy(update={"claim": "it holds", "holds": True})
    made = [result.model_copy(update={"claims": [kept]}) for result in results]
    part = _part(render(made), "does-not-hold")
    assert "None of the claims that were judged" in part
    made[0] = made[0].model_copy(update={"claims": [kept, broken, without]})
    part = _part(render(made), "does-not-hold")
    assert "it is so" in part
    assert "a reason" in part
    assert "not known" in part
    assert "it holds" not in part


def test_what_was_assumed_is_listed_with_the_figures_that_rest_on_it(folder: Path) -> None:
    results = {result_read.figure: result_read for result_read in read_results(folder)}
    values = results["fig17a"].provenance.assumptions
    part = _part(render(list(results.values())), "assumed")
    for name, value in values.items():
        assert f"<td>{name.replace('_', ' ')}</td>" in part
        assert f"{value:g}</td>" in part
    of_values, points = part.split("<h3>")
    assert of_values.count('href="#fig17a"') == len(values)
    assert 'href="#table2"' not in of_values
    for name, result in results.items():
        assert points.count(f'href="#{name}"') == len(result.notes)


def test_the_navigation_has_every_figure_in_the_papers_order(folder: Path) -> None:
    page = render(read_results(folder))
    part = page[page.index("<nav") : page.index("</nav>")]
    parts = ["evidence", "found", "does-not-hold", "assumed", "overview", "sentences", "not-replayed"]
    assert re.findall(r'href="#([\w-]+)"', part) == [*parts, "sec4", "table2", "fig17a"]
    for anchor in re.findall(r'href="#([\w-]+)"', part):
        assert f'id="{anchor}"' in page


def test_the_papers_order_is_a_list_of_figures_that_there_are() -> None:
    names = [name for name in experiments() if name.startswith("loko/")]
    ordered = sorted(names, key=lambda name: in_papers_order(*name.split("/")))
    assert [name.removeprefix("loko/") for name in ordered[:5]] == [
        "rates",
        "fig3a",
        "fig3b",
        "fig3c",
        "fig3d",
    ]
    assert ordered.index("loko/table2") < ordered.index("loko/fig17a")
    assert ordered.index("loko/fig20a") < ordered.index("loko/attack")


def test_changes_that_are_in_no_commit_are_marked(folder: Path) -> None:
    [result, *_] = read_results(folder)
    provenance = result.provenance
    clean, dirty = (
        result.model_copy(update={"provenance": provenance.model_copy(update={"commit": commit})})
        for commit in ("1a2b3c4d5e6f", "1a2b3c4d5e6f+12345678")
    )
    assert "changes that are in no commit" not in render([clean])
    assert "1a2b3c4d5e6f+12345678 (with changes that are in no commit)" in render([dirty])


def _part(page: str, anchor: str) -> str:
    begin = page.index(f'<section id="{anchor}">')
    return page[begin : page.index("</section>", begin)]


def test_the_page_begins_with_the_matrix_then_at_most_five_findings(folder: Path) -> None:
    page = render(read_results(folder))
    places = [page.index(f'<section id="{anchor}">') for anchor in ("evidence", "found", "sec4", "fig17a")]
    assert places == sorted(places)
    matrix, found = _part(page, "evidence"), _part(page, "found")
    assert [re.sub("<.*?>", "", cell) for cell in re.findall(r'<th scope="col">.*?</th>', matrix)] == [
        "arithmetic",
        "profile",
        "invariant",
        "ordinal",
        "quantitative",
    ]
    assert 1 <= found.count("<strong>") <= 5


def test_each_verdict_leads_to_sentence_data_and_command(folder: Path) -> None:
    page = write_report(folder).read_text()
    ids = set(re.findall(r'id="([^"]+)"', page))
    verdicts = re.findall(r'<span class="links">(.*?)</span>', page, flags=re.DOTALL)
    assert len(verdicts) == sum(len(result.claims) for result in read_results(folder))
    for links in verdicts:
        sentence, *files, command = re.findall(r'href="([^"]+)"', links)
        assert unquote(sentence.removeprefix("#")) in ids
        assert command.removeprefix("#") in ids
        assert f"{command.removeprefix('#').removesuffix('-command')}.json" in files
        assert all((folder / path).is_file() for path in files)


def test_a_figure_without_a_number_has_its_title_as_its_name(folder: Path) -> None:
    [result, *_] = read_results(folder)
    attack = result.model_copy(update={"figure": "attack", "title": "Ours, not the paper's: what hurts"})
    page = render([result, attack])
    assert '<a href="#attack">Ours, what hurts</a>' in page
    assert ">attack<" not in page


def test_what_was_left_open_is_told_once_and_only_its_beginning_at_the_figure(folder: Path) -> None:
    page = render(read_results(folder))
    for result in read_results(folder):
        for note in result.notes:
            assert page.count(str(escape(note.text))) == (1 if len(note.text) > 70 else 2)


def test_the_largest_miss_is_named(folder: Path) -> None:
    [result, *_] = read_results(folder)
    miss = ClaimResult(
        claim="loss", paper="5", here="8", holds=False, where="1", kind="predicted", deviation=0.6
    )
    small = miss.model_copy(update={"claim": "delay", "deviation": 0.1, "fact": "f"})
    found = unescape(_part(render([result.model_copy(update={"claims": [small, miss]})]), "found"))
    assert "2 of 2 predictions fail" in found
    assert "by 60 %: 'loss' is 8 here, 5 in the paper" in found
