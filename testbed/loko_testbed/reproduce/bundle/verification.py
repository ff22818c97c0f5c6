"""Verifies an archive: makes each of its files again from what it must follow from, and compares the bytes.

The source follows from its commit. Results in virtual time follow from the source and their options: those
that are chosen are replayed. Claims, bands, pictures and the report follow from the results.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import ValidationError

from loko.document import InputError
from loko_testbed.reproduce.bundle.archive import Archive
from loko_testbed.reproduce.bundle.differences import Difference, file_difference
from loko_testbed.reproduce.bundle.packing import CITATION, README, RESULTS, readme
from loko_testbed.reproduce.bundle.source import (
    COMMIT,
    SOURCE,
    TREE,
    compare_source,
    files_of_commit,
    marks_beside,
)
from loko_testbed.reproduce.evaluate import publish_again, replay_undrawn
from loko_testbed.reproduce.figure import Figure
from loko_testbed.reproduce.figure_types.experiments import experiments_named, select
from loko_testbed.reproduce.folder import SUFFIXES, full_name, short_name
from loko_testbed.reproduce.report import REPORT
from loko_testbed.reproduce.result import FigureResult, read_results
from loko_testbed.reproduce.runs import RUNS, content, read_runs
from loko_testbed.simulation.options import LIVE_ONLY, Options, names_of_choices, recorded_options
from loko_testbed.tasks.files import write_atomically
from loko_testbed.tasks.progress import Progress
from loko_testbed.tasks.provenance import commit, versions

SMALL_PART_S: Final = 60.0
"""If nothing is chosen, the quickest figures are replayed, up to this much time when they were made."""
NOT_COVERED: Final = (
    f"{RUNS}: when, for how long, together with which others and on which machine figures were made; nothing"
    " else tells"
)
"""Limits of every verification, for its user."""
RECORDS: Final = ".parquet"
"""Suffix of the file of a figure that follows from nothing but a replay."""
_WRITERS: Final[Mapping[str, str]] = {
    RECORDS: "pyarrow",
    ".svg": "vl-convert-python",
    ".png": "vl-convert-python",
}
"""The package whose version decides the bytes of a figure's file, by its suffix."""
_MOST_PARTS: Final = 2
"""Parts of the path of a result in a folder of results: the paper, if it is not Loko, and the file."""


@dataclass(frozen=True, slots=True)
class NotReplayed:
    """A figure of an archive that is not replayed."""

    figure: str
    """``PAPER/FIGURE``."""
    because: str
    needed_by: tuple[str, ...] = ()
    """Figures that are replayed and that depend on it."""


class Bundle:
    """An archive whose checksums are right: its results, and those that are made again beside them."""

    def __init__(self, archive: Archive, folder: Path) -> None:
        """Check all that needs no replay, and extract the results into an empty folder.

        Raises `InputError`, one line, if a checksum is wrong or the results are not fit to be read.
        """
        archive.check()
        self.commit = archive.manifest.commit
        self.files = frozenset(archive.manifest.files)
        self.source = compare_source(archive)
        self._there, self._here = folder / "there", folder / "here"
        for path in (self._there, self._here):
            path.mkdir()
        for name in filter(_is_result, self.files):
            self._extract(archive, name)
        self.results = {result.name: result for result in read_results(self._there)}
        for name in self.files & self._expected_results():
            self._extract(archive, name)
        self._runs = read_runs(self._there)
        self._options = {name: self._options_of(result) for name, result in self.results.items()}
        self.differences = list(self._unlike_without_replay(archive))
        self.unlike_figures: set[str] = set()
        """Figures of which a file differs, or could not be compared, once they are made again."""

    def _extract(self, archive: Archive, name: str) -> None:
        archive.extract(name, self._there.joinpath(*PurePosixPath(name).parts[1:]))

    def _expected_results(self) -> set[str]:
        """Return all files that these results may have in an archive."""
        figures = {f"{short_name(name)}{suffix}" for name in self.results for suffix in SUFFIXES}
        return {f"{RESULTS}/{name}" for name in {*figures, REPORT, RUNS}}

    def _options_of(self, result: FigureResult) -> Options:
        """Return the options of a result as it states them. Raises `InputError` if they are not its own."""
        given = result.provenance.options
        if result.provenance.commit != self.commit:
            made_by = result.provenance.commit
            raise InputError(f"{result.name}: is of commit {made_by}, the source of {self.commit}")
        if not given:
            raise InputError(f"{result.name}: does not tell its options, so it cannot be replayed")
        possible = names_of_choices() - (LIVE_ONLY if result.mode == "virtual" else set())
        if refused := given.keys() - possible:
            raise InputError(
                f"{result.name}: chose {', '.join(sorted(refused))}, so it cannot be replayed in mode"
                f" {result.mode}"
            )
        if (given.get("mode"), given.get("seed")) != (result.mode, result.seed):
            raise InputError(f"{result.name}: its mode and seed are not those of its options")
        try:
            return recorded_options(given, out=self._here, jobs=1)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InputError(f"{result.name}: provenance.options.{where}: {first['msg']}") from None

    def _unlike_without_replay(self, archive: Archive) -> Iterator[Difference]:
        """Yield what differs in all files but results, and which files no archive has."""
        if self.source.refused:
            yield Difference(f"source: {self.source.refused}")
        elif not self.source.commit:
            yield Difference(
                f"source: {COMMIT} or {TREE} is missing, and the checkout here lacks commit {self.commit}",
                comparable=False,
            )
        for name in self.source.differing:
            yield Difference(f"{name}: is not that of commit {self.source.commit}")
        expected = marks_beside(archive)
        if self.commit == commit():
            expected[README] = readme(self.commit)
            expected |= {name: data for name, data in files_of_commit().items() if name not in self.files}
        if f"{SOURCE}/{CITATION}" in self.files:
            expected[CITATION] = archive.read(f"{SOURCE}/{CITATION}")
        for name, data in sorted(expected.items()):
            if name not in self.files:
                yield Difference(f"{name}: is not in the archive")
            elif archive.read(name) != data or archive.is_executable(name):
                yield Difference(f"{name}: does not follow from the rest of the archive")
        known = {README, CITATION, COMMIT, TREE, *self._expected_results()}
        for name in sorted(self.files - known):
            if not name.startswith(f"{SOURCE}/"):
                yield Difference(f"{name}: no archive has such a file")
        yield from self._unlike_runs()

    def _unlike_runs(self) -> Iterator[Difference]:
        path = self._there / RUNS
        if path.is_file() and path.read_bytes() != content(self._runs.values()):
            yield Difference(f"{RUNS}: is not written as this program writes it")
        for figure, run in self._runs.items():
            if figure not in self.results:
                yield Difference(f"{RUNS}: names {figure}, which is not in the archive")
            elif run.commit != self.commit:
                yield Difference(f"{RUNS}: {figure} is of commit {run.commit}, the source of {self.commit}")

    def chosen(self, names: Sequence[str], *, everything: bool) -> list[FigureResult]:
        """Return the figures to replay: those named, or all, or a small part, and those they depend on.

        Raises `InputError`.
        """
        virtual = self._virtual
        for name in map(full_name, names):
            if name not in virtual:
                there = ", ".join(virtual)
                raise InputError(f"figure '{name}': the archive has no virtual result of it (of: {there})")
        if names:
            return [virtual[name] for name in self._with_dependencies(map(full_name, names))]
        quickest = sorted(virtual.values(), key=lambda result: (self._took_s(result.name), result.name))
        picked: dict[str, FigureResult] = {}
        for result in quickest:
            more = [*picked, *(name for name in self._with_dependencies([result.name]) if name not in picked)]
            if everything or not picked or sum(map(self._took_s, more)) <= SMALL_PART_S:
                picked = {name: virtual[name] for name in more}
        return list(picked.values())

    @cached_property
    def _virtual(self) -> dict[str, FigureResult]:
        return {name: result for name, result in self.results.items() if result.mode == "virtual"}

    def _with_dependencies(self, names: Iterable[str]) -> list[str]:
        """Return figures, then those in virtual time on which they depend, directly or through others."""
        needed = list(dict.fromkeys(names))
        for name in needed:
            more = self.dependencies(name)
            needed += [other for other in more if other in self._virtual and other not in needed]
        return needed

    def dependencies(self, name: str) -> list[str]:
        """Return the figures on which a figure's verdicts and picture depend, in the archive or not."""
        figure = self._documents.get(name)
        compared = {claim.check.compared_with for claim in figure.claims} if figure else set()
        banded = {
            other.name for other in self.results.values() if any(band.figure == name for band in other.bands)
        }
        return sorted((compared | banded) - {name, ""})

    @cached_property
    def _documents(self) -> Mapping[str, Figure]:
        return experiments_named(list(self.results)) if self.results else {}

    def _took_s(self, name: str) -> float:
        run = self._runs.get(name)
        return SMALL_PART_S if run is None else run.seconds

    def not_replayed(self, chosen: Collection[FigureResult]) -> list[NotReplayed]:
        """Return the figures that are not replayed if these are, and those that these depend on in vain."""
        replayed = {result.name for result in chosen}
        needed: dict[str, list[str]] = {}
        for name in sorted(replayed):
            for other in self.dependencies(name):
                needed.setdefault(other, []).append(name)
        left_out = [name for name in self.results if name not in replayed]
        absent = [name for name in sorted(needed) if name not in self.results]
        return [
            NotReplayed(name, self._why_not(name), tuple(needed.get(name, ())))
            for name in (*left_out, *absent)
        ]

    def _why_not(self, name: str) -> str:
        if name not in self.results:
            return "it is not in the archive"
        if self.results[name].mode != "virtual":
            return f"real time is never the same twice (mode {self.results[name].mode})"
        return "it was not chosen (name it, or --all)"

    def make_again(self, chosen: Sequence[FigureResult], *, jobs: int, progress: Progress) -> None:
        """Replay these figures, then make all that follows from the results, and note what differs.

        Raises `InputError` or `RunError`, one line.
        """
        if self.commit != commit():
            raise InputError(
                f"the archive is of commit {self.commit}, this program of {commit()}: take a checkout of that"
                " commit, or the archive's own source, or replay nothing (--checksums)"
            )
        replayed = {result.name for result in chosen}
        for name, result in self.results.items():
            for suffix in (".json", RECORDS) if name not in replayed else ():
                self._take_over(f"{short_name(result.name)}{suffix}")
        known = experiments_named([result.name for result in chosen])
        alike: dict[str, list[FigureResult]] = {}
        for result in chosen:
            alike.setdefault(json.dumps(result.provenance.options, sort_keys=True), []).append(result)
        for results in alike.values():
            figures = select([result.name for result in results], known)
            replay_undrawn(figures, replace(self._options[results[0].name], jobs=jobs), progress)
        (self._here / RUNS).unlink(missing_ok=True)
        if self._runs:
            write_atomically(self._here / RUNS, content(self._runs.values()))
        if self.results:
            publish_again(Options(mode="virtual", seed=0, out=self._here, jobs=jobs), progress)
        self.differences += self._unlike_results(replayed)

    def _take_over(self, name: str) -> None:
        """Copy a file of the archive's results to those that are made again, if there is one."""
        if (self._there / name).is_file():
            (self._here / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(self._there / name, self._here / name)

    def _unlike_results(self, replayed: Collection[str]) -> Iterator[Difference]:
        """Yield what differs in the results' files, apart from records that were not made again."""
        explained = False
        for name, result in self.results.items():
            for suffix in SUFFIXES:
                if suffix == RECORDS and name not in replayed:
                    continue
                package = _WRITERS.get(suffix, "")
                other = result.provenance.versions.get(package) != versions().get(package)
                for difference in self._unlike_file(f"{short_name(name)}{suffix}", versions=other):
                    self.unlike_figures.add(name)
                    explained = explained or not difference.comparable
                    yield difference
        yield from self._unlike_file(REPORT, versions=explained)

    def _unlike_file(self, name: str, *, versions: bool) -> Iterator[Difference]:
        return file_difference(name, self._there / name, self._here / name, versions=versions)


def _is_result(name: str) -> bool:
    """Return whether a file of an archive may be a result, or tells when the results were made."""
    path = PurePosixPath(name)
    folder, *parts = path.parts
    return folder == RESULTS and len(parts) <= _MOST_PARTS and (path.suffix == ".json" or parts == [RUNS])
