"""Packs a folder of results with the source that made them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from loko.document import InputError
from loko_testbed.reproduce.bundle.archive import Manifest, write_archive
from loko_testbed.reproduce.bundle.source import SOURCE, files_of_commit
from loko_testbed.reproduce.folder import files_of
from loko_testbed.reproduce.report import write_report
from loko_testbed.reproduce.result import FigureResult, read_results
from loko_testbed.reproduce.runs import RUNS, content, read_runs
from loko_testbed.tasks.provenance import checkout, commit, packed_marks, tracked_files

RESULTS: Final = "results"
"""Folder of the results within the archive."""
CITATION: Final = "CITATION.cff"
"""How to cite the source: a copy of the file in it."""
README: Final = "README.md"
_README: Final = """\
# Artifact: Loko, replayed

What an artifact committee asks for, and where it is:

- *Available.* `source/` has all source with its licence, the locks of every package (`requirements.lock`,
  `switch-emulator/Cargo.lock`), the profiles of the switches with the origin of each number
  (`switch-emulator/profiles`), and the papers' claims (`labs`). `CITATION.cff` says how to cite it.
  `source/ARTIFACT.md` lists the main claims, with a command for each.
- *Functional.* On a fresh Debian 12: `cd source && make evaluate ARGS='-e mode=virtual -e figures=fig17a'`.
- *Reproduced.* `results/report.html` shows each figure beside what the paper says, and the command that
  repeats it. `loko verify ARCHIVE` compares every file with `MANIFEST.json`, and the source with its commit;
  it replays some figures in virtual time, the quickest of them, makes claims, pictures and report again, and
  compares the bytes; `loko verify ARCHIVE FIGURE ...` replays the named ones, `--all` every one.

The archive is of commit {commit}, and so must be the program that verifies it: that of a checkout of that
commit, or `source/.venv/bin/loko`, which is only as trustworthy as the archive. `git/commit` and `git/tree`
are that commit and its files as git keeps them.
"""


def readme(named: str) -> bytes:
    """Return the README of an archive of this commit."""
    return _README.format(commit=named).encode()


def pack(directory: Path, path: Path) -> Manifest:
    """Write the archive of a folder of results. Raises `InputError`, one line.

    The results must come from the source that is packed with them. The same folder gives the same bytes.
    """
    results = _results(directory)
    tracked = tracked_files()
    if tracked is None:
        raise InputError(f"{checkout()}: is no git checkout, so it may lack source; bundle from a checkout")
    source: dict[str, Path] = {name: checkout() / name for name in tracked}
    files: dict[str, Path | bytes] = {
        **{f"{SOURCE}/{name}": file for name, file in (source | packed_marks(source)).items()},
        **{f"{RESULTS}/{name}": file for name, file in results.items()},
        **files_of_commit(),
        CITATION: checkout() / CITATION,
        README: readme(commit()),
    }
    try:
        return write_archive(path, files, commit=commit())
    except OSError as error:
        raise InputError(f"{error.filename or path}: {error.strerror}; choose another --out") from None


def _results(directory: Path) -> dict[str, Path | bytes]:
    """Return the files of every figure, the report, and the record of when they were made."""
    report = write_report(directory)
    results = read_results(directory)
    for result in results:
        _refuse_other_commit(result, directory)
    files = [report, *(path for result in results for path in files_of(directory, result.name))]
    names = {result.name for result in results}
    runs = [run for figure, run in read_runs(directory).items() if figure in names]
    when = {RUNS: content(runs)} if runs else {}
    return when | {path.relative_to(directory).as_posix(): path for path in files}


def _refuse_other_commit(result: FigureResult, directory: Path) -> None:
    made_by = result.provenance.commit
    if made_by != commit():
        raise InputError(
            f"{directory}: {result.name} was made by commit {made_by}, but the source here is {commit()};"
            " replay it, or check that commit out"
        )
