"""Packs a folder of results with the source that made them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from loko.document import InputError
from loko_testbed.reproduce.bundle.archive import Manifest, write_archive
from loko_testbed.reproduce.folder import files_of
from loko_testbed.reproduce.report import write_report
from loko_testbed.reproduce.result import read_results
from loko_testbed.reproduce.runs import RUNS
from loko_testbed.tasks.provenance import checkout, commit, packed_marks, tracked_files

RESULTS: Final = "results"
"""Folder of the results within the archive."""
SOURCE: Final = "source"
"""Folder of the source: every file that git tracks, so locks, profiles and labs as well."""
_CITATION: Final = "CITATION.cff"
_README: Final = """\
# Artifact: Loko, replayed

What an artifact committee asks for, and where it is:

- *Available.* `source/` has all source with its licence, the locks of every package (`requirements.lock`,
  `switch-emulator/Cargo.lock`), the profiles of the switches with the origin of each number
  (`switch-emulator/profiles`), and the papers' claims (`labs`). `CITATION.cff` says how to cite it.
- *Functional.* On a fresh Debian 12: `cd source && make evaluate ARGS='-e mode=virtual -e figures=fig17a'`.
- *Reproduced.* `results/report.html` shows each figure beside what the paper says, and the command that
  repeats it. `source/.venv/bin/loko verify ARCHIVE` compares every file with `MANIFEST.json`, replays some
  figures in virtual time, the quickest of them, and compares the bytes; `loko verify ARCHIVE FIGURE ...`
  replays the named ones, `--all` every one.

The archive is of commit {commit}, and so must be the program that verifies it: the one of `source/`, or of a
checkout of that commit.
"""


def pack(directory: Path, path: Path) -> Manifest:
    """Write the archive of a folder of results. Raises `InputError`, one line.

    The results must come from the source that is packed with them. The same folder gives the same bytes.
    """
    results_files = _results(directory)
    tracked = tracked_files()
    if tracked is None:
        raise InputError(f"{checkout()}: is no git checkout, so it may lack source; bundle from a checkout")
    source: dict[str, Path] = {name: checkout() / name for name in tracked}
    files: dict[str, Path | bytes] = {
        **{f"{SOURCE}/{name}": content for name, content in (source | packed_marks(source)).items()},
        **{
            f"{RESULTS}/{results_file.relative_to(directory).as_posix()}": results_file
            for results_file in results_files
        },
        _CITATION: checkout() / _CITATION,
        "README.md": _README.format(commit=commit()).encode(),
    }
    try:
        return write_archive(path, files, commit=commit())
    except OSError as error:
        raise InputError(f"{error.filename or path}: {error.strerror}; choose another --out") from None


def _results(directory: Path) -> list[Path]:
    """Return the files of every figure, the report, and the record of when they were made."""
    report = write_report(directory)
    files = [report, *(path for path in [directory / RUNS] if path.is_file())]
    for result in read_results(directory):
        made_by = result.provenance.commit
        if made_by != commit():
            raise InputError(
                f"{directory}: {result.name} was made by commit {made_by}, but the source here is {commit()};"
                " replay it, or check that commit out"
            )
        files += files_of(directory, result.name)
    return files
