"""Verifies an archive: every checksum, then a replay of figures in virtual time, compared byte by byte."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pydantic import ValidationError

from loko.document import InputError
from loko_testbed.reproduce.bundle.archive import Archive
from loko_testbed.reproduce.bundle.packing import RESULTS
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types.experiments import experiments_named, select
from loko_testbed.reproduce.folder import full_name, short_name
from loko_testbed.reproduce.result import FigureResult, read_results
from loko_testbed.reproduce.runs import RUNS, read_runs
from loko_testbed.simulation.options import LIVE_ONLY, Options, names_of_choices, recorded_options
from loko_testbed.tasks.progress import Progress
from loko_testbed.tasks.provenance import commit, sha256_of

SMALL_PART_S: Final = 60.0
"""If nothing is chosen, the quickest figures are replayed, up to this much time when they were made."""
COMPARED: Final = (".json", ".parquet", ".svg")
"""The files that virtual time reproduces byte by byte: result, records, picture."""


class Bundle:
    """An archive whose checksums are right, and its results in a folder."""

    def __init__(self, archive: Archive, folder: Path) -> None:
        """Check everything, and extract the results into an empty folder. Raises `InputError`, one line."""
        archive.check()
        self._files = archive.manifest.files
        self._folder = folder
        for name in self._files:
            path = PurePosixPath(name)
            if path.parts[0] == RESULTS and (path.suffix == ".json" or path.name == RUNS):
                archive.extract(name, folder.joinpath(*path.parts[1:]))
        self.results = {result.name: result for result in read_results(folder)}
        self._runs = read_runs(folder)
        self.commit = archive.manifest.commit
        for result in self.results.values():
            if result.provenance.commit != self.commit:
                made_by = result.provenance.commit
                raise InputError(f"{result.name}: is of commit {made_by}, the source of {self.commit}")

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._files)

    def chosen(self, names: Sequence[str], *, everything: bool) -> list[FigureResult]:
        """Return the figures to replay: those named, or all, or a small part. Raises `InputError`."""
        virtual = {name: result for name, result in self.results.items() if result.mode == "virtual"}
        for name in map(full_name, names):
            if name not in virtual:
                there = ", ".join(virtual)
                raise InputError(f"figure '{name}': the archive has no virtual result of it (of: {there})")
        if names:
            return [virtual[name] for name in dict.fromkeys(map(full_name, names))]
        quickest = sorted(virtual.values(), key=lambda result: (self._took_s(result), result.name))
        picked: list[FigureResult] = []
        total_s = 0.0
        for result in quickest:
            total_s += self._took_s(result)
            if everything or not picked or total_s <= SMALL_PART_S:
                picked.append(result)
        return picked

    def _took_s(self, result: FigureResult) -> float:
        run = self._runs.get(result.name)
        return SMALL_PART_S if run is None else run.seconds

    def replay(self, chosen: Sequence[FigureResult], *, jobs: int, progress: Progress) -> None:
        """Replay figures beside the archive's other results. Raises `InputError` or `RunError`, one line."""
        if self.commit != commit():
            raise InputError(
                f"the archive is of commit {self.commit}, this program of {commit()}: take the archive's own"
                " source, check that commit out, or replay nothing (--checksums)"
            )
        known = experiments_named([name.name for name in chosen])
        alike: dict[str, list[FigureResult]] = {}
        for result in chosen:
            alike.setdefault(json.dumps(result.provenance.options, sort_keys=True), []).append(result)
        for results in alike.values():
            figures = select([result.name for result in results], known)
            for result in results:  # so that only what comes out here is compared
                (self._folder / f"{short_name(result.name)}.json").unlink()
            evaluate(figures, _options(results[0], self._folder, jobs), progress)

    def differences(self, result: FigureResult) -> Iterator[str]:
        """Yield a line for each thing that differs from the archive."""
        for suffix in COMPARED:
            name = f"{short_name(result.name)}{suffix}"
            path, listed = self._folder / name, self._files.get(f"{RESULTS}/{name}")
            if listed is None and not path.is_file():
                continue
            if listed is None or not path.is_file():
                yield f"{name}: {'is not in the archive' if listed is None else 'did not come out here'}"
            elif sha256_of(path) == listed.sha256:
                continue
            elif suffix == ".json":
                here = json.loads(path.read_bytes())
                lines = list(_unlike(result.model_dump(mode="json"), here | _defaults(result, here), ""))
                yield from (f"{name}: {line}" for line in lines or ["other bytes, but the same values"])
            else:
                yield f"{name}: other bytes: {path.stat().st_size} here, {listed.size} in the archive"


def _options(result: FigureResult, out: Path, jobs: int) -> Options:
    """Return the options of a replay in virtual time, as the result states them. Raises `InputError`.

    Options that name programs or files of a machine are not for virtual time, and are refused.
    """
    given = result.provenance.options
    refused = set(given) - (names_of_choices() - LIVE_ONLY)
    if refused or not given:
        reason = f"chose {', '.join(sorted(refused))}" if refused else "does not tell its options"
        raise InputError(f"{result.name}: {reason}, so it cannot be replayed in virtual time")
    try:
        return recorded_options({**given, "mode": "virtual"}, out=out, jobs=jobs)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{result.name}: provenance.options.{where}: {first['msg']}") from None


def _defaults(result: FigureResult, here: dict[str, Any]) -> dict[str, Any]:
    """Return the empty values that a result leaves out of its JSON."""
    empty = type(result).model_validate(here).model_dump(mode="json")
    return {name: value for name, value in empty.items() if name not in here}


def _unlike(there: Any, here: Any, where: str) -> Iterator[str]:
    """Yield where two JSON values differ: ``provenance.versions.numpy: 2.1 here, 2.0 in the archive``."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in sorted(there.keys() | here.keys()):
            yield from _unlike(there.get(name), here.get(name), f"{where}.{name}" if where else name)
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for place, (theirs, other) in enumerate(zip(there, here, strict=True)):
            yield from _unlike(theirs, other, f"{where}[{place}]")
    elif there != here:
        yield f"{where}: {_short(here)} here, {_short(there)} in the archive"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
