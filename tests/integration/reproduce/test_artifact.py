"""Results packed into an archive: reproducible bytes, verified by checksums and by a replay."""

from __future__ import annotations

import json
import math
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from forged import files_in, programs_in, write_forged
from in_process import loko
from no_rendering import rendering_once
from session_file import session_file
from small_source import git, is_checkout, make_small_source, small_source

from loko_testbed.reproduce.bundle import packing, verification
from loko_testbed.reproduce.bundle.archive import MANIFEST, ROOT
from loko_testbed.tasks import provenance
from loko_testbed.tasks.provenance import sha256_of

NAMES = ["fig17a", "table2"]


@pytest.fixture(autouse=True)
def _in_this_process_once(monkeypatch) -> Iterator[None]:
    """Have commands draw in this process, where the renderer is loaded once and equal pictures drawn once."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    with rendering_once():
        yield


def refused(ended: CompletedProcess[str], *parts: str) -> bool:
    """Check that a command ended with status 2 and one line that contains all `parts`."""
    assert ended.returncode == 2, ended
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1, ended.stderr
    for part in parts:
        assert part in ended.stderr
    return True


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    def evaluate(folder: Path) -> None:
        command = [sys.executable, "-c", "from loko_testbed.cli.main import main; main()", "evaluate", *NAMES]
        subprocess.run([*command, "--quick", "--out", folder / "results"], check=True, capture_output=True)

    return session_file(tmp_path_factory, "artifact", evaluate) / "results"


@pytest.fixture(scope="module")
def whole(results: Path, tmp_path_factory) -> Path:
    """The archive as users create it."""
    if not is_checkout():
        pytest.skip("this is no git checkout, from which alone an archive is made")
    made = session_file(
        tmp_path_factory, "archive", lambda folder: packing.pack(results, folder / "results.zip")
    )
    return made / "results.zip"


@pytest.fixture
def small(tmp_path_factory) -> Iterator[Path]:
    """A program that runs from the commit of a few files."""
    if not is_checkout():
        pytest.skip("this is no git checkout, from which alone an archive is made")
    with small_source(session_file(tmp_path_factory, "small source", make_small_source)) as source:
        yield source


@pytest.fixture
def archive(small, tmp_path_factory) -> Path:
    """A small archive with part of the source, fast to read and copy, if the contents do not matter."""

    def make(folder: Path) -> None:
        out = ("--out", folder / "results")
        assert loko("evaluate", *NAMES, "--quick", "--jobs", 1, *out).returncode == 0
        assert loko("bundle", folder / "results", "--out", folder / "results.zip").returncode == 0

    return session_file(tmp_path_factory, "small archive", make) / "results.zip"


def names_in(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as opened:
        return opened.namelist()


def changed(archive: Path, target: Path, change) -> Path:
    """Copy an archive; `change` receives each entry with its data and returns the entries to write."""
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            for entry, data in change(info, old.read(info)):
                new.writestr(entry, data)
    return target


def with_values(archive: Path, target: Path, name: str, change) -> Path:
    """Copy an archive with other values in one JSON file, and the manifest adapted to them."""
    with zipfile.ZipFile(archive) as old:
        values = json.loads(old.read(f"{ROOT}/{name}"))
        manifest = json.loads(old.read(f"{ROOT}/{MANIFEST}"))
    change(values)
    data = json.dumps(values, indent=1).encode()
    draft = target.with_suffix(".json")
    draft.write_bytes(data)
    manifest["files"][name] = {"size": len(data), "sha256": sha256_of(draft)}
    new = {f"{ROOT}/{name}": data, f"{ROOT}/{MANIFEST}": json.dumps(manifest).encode()}
    return changed(archive, target, lambda info, old: [(info, new.get(info.filename, old))])


def test_the_same_folder_gives_the_same_archive(results, whole, tmp_path) -> None:
    for path in results.rglob("*"):
        os.utime(path, (1, 1))
    done = loko("bundle", results, "--out", tmp_path / "again.zip")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.zip").read_bytes() == whole.read_bytes()
    assert sha256_of(whole) in done.stdout


def test_it_has_results_report_source_locks_profiles_citation_and_manifest(results, whole) -> None:
    names = {name.removeprefix(f"{ROOT}/") for name in names_in(whole)}
    for name in (
        *(f"results/fig17a.{suffix}" for suffix in ("json", "parquet", "svg", "png")),
        "results/table2.json",
        "results/report.html",
        "results/runs.jsonl",
        "source/requirements.lock",
        "source/switch-emulator/Cargo.lock",
        "source/switch-emulator/profiles/zodiac-fx.toml",
        "source/labs/papers/loko.yml",
        "source/testbed/loko_testbed/cli/main.py",
        "source/LICENSE",
        "CITATION.cff",
        "README.md",
        MANIFEST,
    ):
        assert name in names, name
    tracked = {f"source/{name}" for name in provenance.tracked_files() or []}
    assert {name for name in names if name.startswith("source/")} == tracked | {
        "source/COMMIT",
        "source/SHA256SUMS",
    }


def test_checksums_are_right_and_all_is_replayed_to_the_same_bytes(whole, monkeypatch) -> None:
    monkeypatch.setattr(verification, "SMALL_PART_S", math.inf)  # whatever they took on a busy machine
    done = loko("verify", whole)
    assert done.returncode == 0, done
    assert f"{len(names_in(whole)) - 1} files are as the manifest says" in done.stdout
    assert "replayed: loko/fig17a: the same bytes" in done.stdout
    assert "replayed: loko/table2: the same bytes" in done.stdout
    assert "differs: " not in done.stdout


@pytest.mark.usefixtures("small")
def test_figures_that_came_one_after_another_are_as_if_they_had_come_together(tmp_path) -> None:
    """A claim of figure 17b compares it with figure 17a, which is not there yet."""
    apart, together = tmp_path / "apart", tmp_path / "together"
    scale = ("--runs", 1, "--seconds", 0.2, "--sender", "simple", "--jobs", 1)
    for command in (
        ("fig17b", "--out", apart),
        ("fig17a", "--out", apart),
        ("fig17a", "fig17b", "--out", together),
    ):
        assert loko("evaluate", *command, *scale).returncode == 0
    names = ("fig17a.json", "fig17b.json", "fig17b.svg", "report.html")
    assert [name for name in names[:3] if (apart / name).read_bytes() != (together / name).read_bytes()] == []
    (compared,) = (
        claim
        for claim in json.loads((apart / "fig17b.json").read_text())["claims"]
        if claim["fact"] == "fig17b/loss-below-fig17a"
    )
    assert "nothing" not in compared["here"]
    assert loko("bundle", apart, "--out", tmp_path / "apart.zip").returncode == 0
    verified = loko("verify", tmp_path / "apart.zip", "--all")
    assert verified.returncode == 0, verified
    assert verified.stdout.endswith("verified: nothing differs; 2 of 2 figures were replayed\n")
    named = loko("verify", tmp_path / "apart.zip", "fig17b")
    assert "replayed: loko/fig17a: the same bytes" in named.stdout
    (apart / "fig17a.json").unlink()
    assert loko("evaluate", "fig17b", "--out", apart, *scale).returncode == 0
    assert loko("bundle", apart, "--out", tmp_path / "alone.zip").returncode == 0
    alone = loko("verify", tmp_path / "alone.zip")
    assert alone.returncode == 0, alone
    reason = "which was not replayed: it is not in the archive"
    assert f"loko/fig17b: depends on loko/fig17a, {reason}\n" in alone.stdout


def test_chosen_figures_alone_are_replayed(archive, monkeypatch) -> None:
    asked = []
    replay = verification.replay_undrawn
    monkeypatch.setattr(
        verification, "replay_undrawn", lambda figures, *rest: asked.extend(figures) or replay(figures, *rest)
    )
    assert "not replayed: loko/table2: it was not chosen" in loko("verify", archive, "fig17a").stdout
    assert [figure.name for figure in asked] == ["loko/fig17a"]
    asked.clear()
    monkeypatch.setattr(verification, "SMALL_PART_S", -1.0)
    assert loko("verify", archive).stdout.count("\nreplayed: ") == 1
    assert loko("verify", archive, "--all").stdout.count("\nreplayed: ") == 2
    asked.clear()
    assert "nothing was replayed" in loko("verify", archive, "--checksums").stdout
    assert asked == []
    assert refused(
        loko("verify", archive, "fig99"), "'loko/fig99': the archive has no virtual result", "loko/fig17a"
    )


def test_a_forged_number_is_found_by_the_replay_and_each_difference_has_a_line(archive, tmp_path) -> None:
    def forge(values):
        values["series"][0]["points"][0]["lost"] = 17
        values["claims"][0]["here"] = "better"

    forged = with_values(archive, tmp_path / "forged.zip", "results/fig17a.json", forge)
    assert loko("verify", forged, "--checksums").returncode == 0
    done = loko("verify", forged, "fig17a")
    assert done.returncode == 1, done
    lines = [line for line in done.stdout.splitlines() if line.startswith("differs: ")]
    assert len(lines) == 2, lines
    assert 'fig17a.json: claims[0].here: "' in lines[0]
    assert '"better" in the archive' in lines[0]
    assert "fig17a.json: series[0].points[0].lost: " in lines[1]
    assert "17 in the archive" in lines[1]


def test_records_that_are_others_are_told(archive, tmp_path) -> None:
    name = "results/fig17a.parquet"
    with zipfile.ZipFile(archive) as opened:
        data = opened.read(f"{ROOT}/{name}") + b"more"
        manifest = json.loads(opened.read(f"{ROOT}/{MANIFEST}"))
    (tmp_path / "records").write_bytes(data)
    manifest["files"][name] = {"size": len(data), "sha256": sha256_of(tmp_path / "records")}
    new = {f"{ROOT}/{name}": data, f"{ROOT}/{MANIFEST}": json.dumps(manifest).encode()}
    other = changed(archive, tmp_path / "other.zip", lambda info, old: [(info, new.get(info.filename, old))])
    done = loko("verify", other, "fig17a")
    assert done.returncode == 1
    assert (
        f"differs: fig17a.parquet: other bytes: {len(data) - 4} here, {len(data)} in the archive"
        in done.stdout
    )


@pytest.mark.parametrize(
    "name", ["results/fig17a.json", "source/testbed/loko_testbed/cli/main.py", "CITATION.cff"]
)
def test_an_edited_file_is_refused(archive, tmp_path, name) -> None:
    def edit(info, data):
        return [(info, data.replace(b"a", b"b", 1) if info.filename == f"{ROOT}/{name}" else data)]

    edited = changed(archive, tmp_path / "edited.zip", edit)
    assert refused(loko("verify", edited), f"{name} is not what the manifest says")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.99, 0.99999])
def test_a_truncated_archive_is_refused(archive, tmp_path, share) -> None:
    data = archive.read_bytes()
    (tmp_path / "part.zip").write_bytes(data[: int(len(data) * share)])
    assert refused(loko("verify", tmp_path / "part.zip"), "part.zip")


def test_a_flipped_bit_anywhere_is_refused_or_changes_nothing_that_is_used(archive, tmp_path) -> None:
    data = archive.read_bytes()
    for place in range(0, len(data), len(data) // 12):
        flipped = bytearray(data)
        flipped[place] ^= 0x10
        (tmp_path / "flipped.zip").write_bytes(flipped)
        ended = loko("verify", tmp_path / "flipped.zip", "--checksums")
        assert ended.returncode == 0 or refused(ended, "flipped.zip")


HOSTILE = [
    "../evil",
    "/tmp/evil",
    f"{ROOT}/../../evil",
    f"{ROOT}/results/../../../evil",
    f"{ROOT}//evil",
    f"{ROOT}/./evil",
    f"{ROOT}\\..\\evil",
    f"{ROOT}/a\\..\\evil",
    f"{ROOT}/C:evil",
    f"{ROOT}/results/evil\x1b[2J",
    f"{ROOT}/folder/",
    f"{ROOT}2/evil",
    ROOT,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_would_leave_the_folder_is_refused_and_nothing_is_written(archive, tmp_path, name) -> None:
    shutil.copy(archive, tmp_path / "hostile.zip")
    info = zipfile.ZipInfo("x")
    info.filename = name
    with zipfile.ZipFile(tmp_path / "hostile.zip", "a") as opened:
        opened.writestr(info, b"evil")
    before = sorted(tmp_path.rglob("*"))
    assert refused(loko("verify", tmp_path / "hostile.zip"), "refused")
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/evil").exists()


def test_links_doubles_strays_and_gaps_are_refused(archive, tmp_path) -> None:
    def trial(*words: str, add=(), leave_out="") -> bool:
        path = changed(
            archive,
            tmp_path / "trial.zip",
            lambda info, data: [] if info.filename == f"{ROOT}/{leave_out}" else [(info, data)],
        )
        with zipfile.ZipFile(path, "a") as opened:
            for info in add:
                opened.writestr(info, b"/etc/passwd")
        return refused(loko("verify", path), *words)

    link = zipfile.ZipInfo(f"{ROOT}/results/link")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    assert trial("is no plain file", add=[link])
    with pytest.warns(UserWarning, match="Duplicate"):
        assert trial("is there twice", add=[zipfile.ZipInfo(f"{ROOT}/README.md")])
    assert trial("results/stray.json is in no manifest", add=[zipfile.ZipInfo(f"{ROOT}/results/stray.json")])
    assert trial("results/fig17a.json is not there", leave_out="results/fig17a.json")
    assert trial(f"has no {MANIFEST}", leave_out=MANIFEST)


def test_a_manifest_of_another_format_is_refused(archive, tmp_path) -> None:
    for text in (b"[]", b"{", b'{"format": "loko-artifact-9", "commit": "x", "files": {}}'):
        path = changed(
            archive,
            tmp_path / "other.zip",
            lambda info, data, text=text: [(info, text if info.filename.endswith(MANIFEST) else data)],
        )
        assert refused(loko("verify", path), MANIFEST)


def test_a_file_that_is_no_archive_and_one_that_is_not_there_are_told(tmp_path) -> None:
    (tmp_path / "text.zip").write_text("no archive")
    assert refused(loko("verify", tmp_path / "text.zip"), "no archive, or a damaged one")
    assert refused(loko("verify", tmp_path / "none.zip"), "no such file")


def test_options_that_name_programs_or_files_are_refused(archive, tmp_path) -> None:
    for number, option in enumerate(
        ({"framework_python": "/bin/evil"}, {"out": "/"}, {"cabling": "x"}, {"new": 1})
    ):
        forged = with_values(
            archive,
            tmp_path / f"{number}.zip",
            "results/fig17a.json",
            lambda values, option=option: values["provenance"]["options"].update(option),
        )
        assert refused(
            loko("verify", forged, "fig17a"), f"chose {next(iter(option))}, so it cannot be replayed"
        )


def test_a_program_of_another_commit_replays_nothing_but_checks_sums_and_source(archive, monkeypatch) -> None:
    monkeypatch.setattr(verification, "commit", lambda: "0123456789ab")
    assert refused(loko("verify", archive), "the archive is of commit", "this program of 0123456789ab")
    done = loko("verify", archive, "--checksums")
    assert done.returncode == 0
    assert done.stdout.endswith("verified in part: checksums and source alone; nothing was replayed\n")


def test_the_source_is_that_of_a_commit_with_or_without_a_repository(archive, small, tmp_path) -> None:
    whole_id = git(small, "rev-parse", "HEAD").strip()
    here = loko("verify", archive, "--checksums")
    assert f"source: is that of commit {whole_id}, which the checkout {small} has" in here.stdout
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path)  # we made this archive, so it is safe
    with small_source(tmp_path / ROOT / "source"):  # has no repository
        there = loko("verify", archive, "table2")
    assert there.returncode == 0, there
    assert f"source: is that of commit {whole_id}, which no checkout here has" in there.stdout


def test_an_archive_that_does_not_know_its_commit_is_not_compared_with_it(archive, tmp_path) -> None:
    files = {name: data for name, data in files_in(archive).items() if not name.startswith("git/")}
    old = write_forged(tmp_path / "old.zip", files, commit=provenance.commit(), programs=programs_in(archive))
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path)  # we made this archive, so it is safe
    with small_source(tmp_path / ROOT / "source"):
        done = loko("verify", old, "--checksums")
    assert done.returncode == 3, done
    assert "not comparable: source: git/commit or git/tree is missing" in done.stdout
    assert "verified in part: nothing differs, but 1 could not be compared" in done.stdout


def test_changes_that_are_in_no_commit_pass_only_beside_the_same_changes(archive, small, tmp_path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(small, changed)
    (changed / "LICENSE").write_text("all rights given away")
    (changed / "Makefile").unlink()
    with small_source(changed):
        assert "+" in provenance.commit()
        out = ("--out", tmp_path / "results")
        assert loko("evaluate", "table2", "--jobs", 1, *out).returncode == 0
        assert loko("bundle", tmp_path / "results", "--out", tmp_path / "changed.zip").returncode == 0
        mine = loko("verify", tmp_path / "changed.zip")
    assert mine.returncode == 0, mine
    assert "; changed since, and so here: source/LICENSE, source/Makefile\n" in mine.stdout
    theirs = loko("verify", tmp_path / "changed.zip", "--checksums")
    assert theirs.returncode == 1, theirs
    assert "differs: source/LICENSE: is not that of commit" in theirs.stdout
    assert "differs: source/Makefile: is not that of commit" in theirs.stdout


def test_what_other_versions_of_the_renderer_drew_is_not_comparable(archive, tmp_path) -> None:
    files, name = files_in(archive), "results/fig17a.json"
    here = f'"vl-convert-python": "{provenance.versions()["vl-convert-python"]}"'.encode()
    files[name] = files[name].replace(here, b'"vl-convert-python": "1.0"')
    files["results/fig17a.png"] += b"more"
    old = write_forged(tmp_path / "old.zip", files, commit=provenance.commit(), programs=programs_in(archive))
    done = loko("verify", old, "table2")
    assert done.returncode == 3, done
    assert "not comparable: fig17a.png: other versions drew it: " in done.stdout
    assert "not comparable: report.html: other versions drew it: " in done.stdout
    assert "differs: " not in done.stdout
    replayed = loko("verify", old, "fig17a")
    assert replayed.returncode == 3, replayed
    assert "not comparable: fig17a.json: provenance.versions.vl-convert-python: " in replayed.stdout


def test_results_of_another_commit_than_the_source_are_not_packed(results, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(packing, "commit", lambda: "0123456789ab")
    ended = loko("bundle", results, "--out", tmp_path / "a.zip")
    assert refused(ended, "was made by commit", "but the source here is 0123456789ab")
    assert not (tmp_path / "a.zip").exists()


def test_without_a_checkout_nothing_is_packed(results, tmp_path, monkeypatch) -> None:
    here = provenance.commit()
    monkeypatch.setattr(packing, "commit", lambda: here)
    monkeypatch.setattr(provenance, "_CHECKOUT", tmp_path)
    assert refused(loko("bundle", results, "--out", tmp_path / "a.zip"), "is no git checkout")


def test_a_folder_without_results_is_told(tmp_path) -> None:
    assert refused(loko("bundle", tmp_path), "holds no results")
    assert refused(loko("bundle", tmp_path / "none"), "no such folder")


def test_unpacked_source_knows_its_commit_and_marks_what_was_changed(whole, tmp_path) -> None:
    with zipfile.ZipFile(whole) as opened:
        opened.extractall(tmp_path)  # we made this archive, so it is safe
    source = tmp_path / ROOT / "source"
    packed = provenance.commit()
    assert provenance.commit_of(source) == packed
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=source, check=True)
    (source / "README.md").write_text("other words")
    assert provenance.commit_of(source) == packed
    (source / "labs/two-switch/lab.yml").write_text("other: lab")
    assert provenance.commit_of(source).startswith(f"{packed}+")
    (source / "COMMIT").unlink()
    assert provenance.commit_of(source) == "unknown"
