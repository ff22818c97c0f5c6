"""Every file of an archive, and every field of it, changed as a forger would: verification tells."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

import pytest
import typer
from forged import Change, changed_values, changes, files_in, programs_in, write_forged
from in_process import loko
from session_file import session_file
from small_source import make_small_source, small_source

from loko.document import InputError
from loko.user_error import UserError
from loko_testbed.cli import bundle as cli
from loko_testbed.reproduce import evaluate as evaluation
from loko_testbed.reproduce import plots
from loko_testbed.reproduce.bundle import source, verification
from loko_testbed.reproduce.plots import rendering
from loko_testbed.simulation.options import Options
from loko_testbed.tasks import provenance
from loko_testbed.tasks.progress import NoProgress

FIGURES = ("fig17b", "sec6")
"""A figure of traffic, with packets, and one that is computed, with its outcome in its records."""
SCALE = ("--runs", 1, "--seconds", 0.05, "--points", "admitted", "--sender", "simple", "--jobs", 1)
NOT_COVERED = {"began", "seconds", "seeds_seconds", "together_with", "machine"}
"""Fields of `runs.jsonl` that nothing else tells."""


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Iterator[Path]:
    """A program that runs from the commit of a few files."""
    if provenance.tracked_files() is None:
        pytest.skip("this is no git checkout, from which alone an archive is made")
    with small_source(session_file(tmp_path_factory, "small source", make_small_source)) as path:
        yield path


@pytest.fixture(scope="module")
def short_script() -> Iterator[None]:
    """Reports do without the library that brings their pictures to life: nine tenths of their bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "vega_embed", lambda: "")
        yield


@pytest.fixture(scope="module")
def honest(small, short_script, tmp_path_factory) -> Path:
    """An archive that nobody has changed."""

    def make(folder: Path) -> None:
        for figure in FIGURES:
            scale = SCALE if figure == "fig17b" else SCALE[-2:]
            done = loko("evaluate", figure, *scale, "--out", folder / "results")
            assert done.returncode == 0, done
        done = loko("bundle", folder / "results", "--out", folder / "honest.zip")
        assert done.returncode == 0, done

    return session_file(tmp_path_factory, "honest archive", make) / "honest.zip"


@dataclass(frozen=True)
class Ended:
    """The outcome of a verification."""

    status: int
    lines: list[str]

    @property
    def tells_of_forgery(self) -> bool:
        """Whether it refuses the archive in one line, or says what differs or cannot be compared."""
        if self.status == 2:
            return len(self.lines) == 1 and "\n" not in self.lines[0]
        differing = any(line.startswith("differs: ") for line in self.lines)
        doubtful = any(line.startswith("not comparable: ") for line in self.lines)
        verdict = "not verified: " if differing else "verified in part: nothing differs, but "
        return (
            (differing or doubtful)
            and self.status == (1 if differing else 3)
            and self.lines[-1].startswith(verdict)
        )


def _state(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def _key(files: Mapping[str, bytes], inputs: object) -> str:
    digest = hashlib.sha256(repr(inputs).encode())
    for name, data in sorted(files.items()):
        digest.update(f"{name} {len(data)} ".encode())
        digest.update(data)
    return digest.hexdigest()


class Remembered:
    """A function that changes a folder, and depends on the folder's files and its other inputs alone."""

    def __init__(self, function: Callable[..., object], inputs: Callable[..., object]) -> None:
        self._function, self._inputs = function, inputs
        self._outcomes: dict[str, dict[str, bytes]] = {}

    def __call__(self, *arguments: Any) -> None:
        folder: Path = next(each.out for each in arguments if isinstance(each, Options))
        before = _state(folder)
        key = _key(before, self._inputs(*arguments))
        if key not in self._outcomes:
            self._function(*arguments)
            self._outcomes[key] = _state(folder)
            return
        for name in before.keys() - self._outcomes[key].keys():
            (folder / name).unlink()
        for name, data in self._outcomes[key].items():
            if before.get(name) != data:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)


@pytest.fixture(scope="module")
def replayed_once() -> Iterator[None]:
    """Whatever was replayed or drawn from the same inputs before is not replayed or drawn again."""
    drawn: dict[str, plots.RenderedPictures] = {}
    draw = plots.draw

    def drawn_once(result):
        key = result.model_dump_json()
        if key not in drawn:
            drawn[key] = draw(result)
        return drawn[key]

    replay = Remembered(
        evaluation.replay_undrawn,
        lambda figures, options, _: ([figure.name for figure in figures], options.chosen()),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "draw", drawn_once)
        patch.setattr(verification, "replay_undrawn", replay)
        patch.setattr(source, "committed", functools.cache(source.committed))
        patch.setattr(verification, "publish_again", Remembered(evaluation.publish_again, lambda *_: ()))
        yield


def verified(archive: Path, *figures: str, everything: bool = True) -> Ended:
    """Verify an archive as the command does."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            cli.verify(archive, list(figures), everything=everything, jobs=1)
            status = 0
        except typer.Exit as ended:
            status = ended.exit_code
        except UserError as refused:
            return Ended(2, [str(refused)])
    return Ended(status, said.getvalue().splitlines())


def _leads_on(name: str) -> bool:
    """Return whether other files of an archive are judged by this one, or it may be refused as a whole."""
    return name.startswith("git/") or name.endswith((".json", ".jsonl"))


def _beside_source(name: str) -> bool:
    """Return whether a file follows from others, all of them honest while only such files are changed."""
    return not name.startswith("source/") or name.removeprefix("source/") in provenance.MARKS


def _rounds(files: Mapping[str, bytes]) -> Iterator[list[Change]]:
    """Yield the first change of every file, then the second of those that have more, and so on."""
    each = [list(those) for _, those in groupby(changes(files), key=lambda change: change.file)]
    for those in zip_longest(*each):
        yield [change for change in those if change is not None]


class Forger:
    """Changes files of an archive and verifies what this makes of it."""

    def __init__(self, honest: Path, folder: Path) -> None:
        self.files, self.programs = files_in(honest), programs_in(honest)
        self._target, self._commit = folder / "forged.zip", provenance.commit()

    def ended(self, changed: Mapping[str, bytes | None], programs: frozenset[str] | None = None) -> Ended:
        left = {name: data for name, data in (self.files | dict(changed)).items() if data is not None}
        with_programs = self.programs if programs is None else programs
        return verified(write_forged(self._target, left, commit=self._commit, programs=with_programs))


@pytest.fixture
def forger(honest, tmp_path, replayed_once) -> Forger:
    forger = Forger(honest, tmp_path)
    untouched = forger.ended({})
    assert untouched.status == 0, untouched
    assert untouched.lines[-1] == "verified: nothing differs; 2 of 2 figures were replayed"
    return forger


@pytest.mark.parametrize("suffix", ["fig17b.json", "sec6.json", ""])
def test_whatever_is_changed_in_files_that_others_are_judged_by_is_told(forger, suffix) -> None:
    mine = {
        name: data
        for name, data in forger.files.items()
        if _leads_on(name) and (name.endswith(suffix) if suffix else not name.endswith(".json"))
    }
    unnoticed = [
        change[:2]
        for change in changes(mine)
        if not forger.ended({change.file: change.data}).tells_of_forgery
    ]
    assert unnoticed == []


@pytest.mark.parametrize("beside_source", [False, True], ids=["source", "beside-source"])
def test_whatever_is_changed_elsewhere_is_told_of_each_file_at_once(forger, beside_source) -> None:
    """Nothing is judged by these files, so that a change of one cannot hide that of another."""
    mine = {
        name: data
        for name, data in forger.files.items()
        if not _leads_on(name) and _beside_source(name) == beside_source
    }
    for changed in _rounds(mine):
        done = forger.ended({change.file: change.data for change in changed})
        told = {line.removeprefix("differs: ").partition(": ")[0] for line in done.lines}
        assert done.tells_of_forgery, changed
        assert [change[:2] for change in changed if change.file.removeprefix("results/") not in told] == []


def test_a_program_of_the_source_that_is_none_is_told_and_a_file_that_became_one(forger) -> None:
    for name in forger.files:
        if name.startswith("source/"):
            done = forger.ended({}, forger.programs ^ {name})
            assert done.lines[-1].startswith("not verified: "), name


@pytest.mark.usefixtures("replayed_once")
def test_files_that_no_archive_has_are_named(honest, tmp_path) -> None:
    files, commit = files_in(honest), provenance.commit()
    for name in (
        "EXTRA.md",
        "git/more",
        "source/evil.py",
        "results/.tasks/loko.fig17b/kept.json",
        "results/evil.html",
        "results/fig99.svg",
        "results/loko/fig17b/deep.json",
    ):
        done = verified(
            write_forged(
                tmp_path / "x.zip", {**files, name: b"{}"}, commit=commit, programs=programs_in(honest)
            )
        )
        assert done.status == 1, done
        assert [line for line in done.lines if line.startswith("differs: ") and name in line], done


@pytest.mark.usefixtures("replayed_once")
def test_bands_that_no_figure_predicts_are_found(honest, tmp_path) -> None:
    def invent(values: dict[str, Any]) -> None:
        values["bands"] = [
            {
                "figure": figure,
                "finding": "loss_percent",
                "x": [1.0],
                "least": [0.0],
                "most": [9.0],
                "covers": "",
            }
            for figure in ("loko/fig17b", "loko/sec6")
        ]

    done = verified(consistent(honest, tmp_path, "fig17b", invent), "fig17b", everything=False)
    assert done.status == 1, done
    assert "differs: fig17b.json: bands: [" in "\n".join(done.lines)


@pytest.mark.usefixtures("replayed_once")
def test_a_forger_who_draws_all_again_is_found_by_the_replay_and_else_named(honest, tmp_path) -> None:
    def lose_nothing(values: dict[str, Any]) -> None:
        for series in values["series"]:
            series["points"][0]["packets"] += 7

    forged = consistent(honest, tmp_path, "fig17b", lose_nothing)
    done = verified(forged, "fig17b", everything=False)
    assert done.status == 1, done
    assert [
        line for line in done.lines if line.startswith("differs: fig17b.json: series[0].points[0].packets")
    ]
    for derived in ("fig17b.svg", "fig17b.png", "report.html"):
        assert [line for line in done.lines if line.startswith(f"differs: {derived}: other bytes")], derived
    elsewhere = verified(forged, "sec6", everything=False)
    assert elsewhere.status == 0, elsewhere
    assert "not replayed: loko/fig17b: it was not chosen (name it, or --all)" in elsewhere.lines
    assert elsewhere.lines[-1] == "verified in part: nothing differs; 1 of 2 figures were replayed"


@pytest.mark.usefixtures("replayed_once")
def test_claims_pictures_and_report_must_follow_from_results_that_are_not_replayed(honest, tmp_path) -> None:
    files, commit = files_in(honest), provenance.commit()
    result = json.loads(files["results/fig17b.json"])
    result["claims"][0]["holds"] = None
    result["guarantee_ms"] = 1.0
    for name, data in (
        ("results/fig17b.json", json.dumps(result, indent=1).encode() + b"\n"),
        ("results/fig17b.png", files["results/sec6.png"]),
        ("results/fig17b.svg", files["results/sec6.svg"]),
        ("results/report.html", files["results/report.html"].replace(b"holds", b"does not hold", 1)),
    ):
        forged = write_forged(
            tmp_path / "x.zip", files | {name: data}, commit=commit, programs=programs_in(honest)
        )
        done = verified(forged, "sec6", everything=False)
        assert done.status == 1, (name, done)
        assert [line for line in done.lines if line.startswith(f"differs: {name.removeprefix('results/')}")]


@pytest.mark.usefixtures("replayed_once")
def test_only_when_and_where_results_were_made_is_not_covered(honest, tmp_path) -> None:
    (first, *rest) = files_in(honest)["results/runs.jsonl"].decode().splitlines()
    passing = set()
    for what, values in changed_values(json.loads(first)):
        lines = "".join(f"{line}\n" for line in (json.dumps(values, separators=(",", ":")), *rest))
        try:
            forged = consistent(honest, tmp_path, "runs", lambda _: None, runs=lines)
        except InputError:
            continue
        done = verified(forged)
        if done.status == 0:
            passing.add(what.partition(":")[0].partition(" ")[0].partition(".")[0])
            (said,) = (line for line in done.lines if line.startswith("not covered: "))
            assert said == f"not covered: {verification.NOT_COVERED}"
            assert "runs.jsonl: when, for how long, together with which others and on which machine" in said
    assert passing == NOT_COVERED


def consistent(
    archive: Path, folder: Path, figure: str, change: Callable[[dict[str, Any]], None], runs: str = ""
) -> Path:
    """Write an archive of which one result is changed, and whatever follows from it is made again."""
    files, drafts = files_in(archive), folder / "drafts"
    shutil.rmtree(drafts, ignore_errors=True)
    drafts.mkdir()
    for name in files:
        if name.startswith("results/"):
            (drafts / name.removeprefix("results/")).write_bytes(files[name])
    path = drafts / f"{figure}.json"
    if path.exists():
        values = json.loads(path.read_bytes())
        change(values)
        path.write_text(json.dumps(values))
    if runs:
        (drafts / "runs.jsonl").write_text(runs)
    evaluation.publish_again(Options(mode="virtual", seed=1, out=drafts), NoProgress())
    files |= {f"results/{path.name}": path.read_bytes() for path in drafts.iterdir()}
    return write_forged(
        folder / "forged.zip", files, commit=provenance.commit(), programs=programs_in(archive)
    )
