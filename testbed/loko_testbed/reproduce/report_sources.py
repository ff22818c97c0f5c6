"""The origin of results for the report: files, time and machine, assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loko_testbed.reproduce.facts import Fact, facts, order, papers
from loko_testbed.reproduce.folder import LOKO, files_of
from loko_testbed.reproduce.result import FigureResult, in_order
from loko_testbed.reproduce.runs import FigureRun, read_runs
from loko_testbed.tasks.provenance import sha256_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file of a figure."""

    path: str
    """Relative to the folder of results."""
    size: int
    """In bytes."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSource:
    """Where a figure's result comes from."""

    run: FigureRun | None = None
    """None if the folder does not record it."""
    files: tuple[SourceFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A value that a paper does not print, so that it had to be assumed."""

    name: str
    value: float
    figures: tuple[str, ...]
    """``PAPER/FIGURE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPoint:
    """A point that a paper leaves open, and how this project deals with it."""

    paper: str
    where: str
    text: str
    figures: tuple[str, ...]
    """``PAPER/FIGURE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSentence:
    """A paper's statement on which claims of the results rest."""

    paper: str
    fact: Fact
    figures: tuple[str, ...]
    """``PAPER/FIGURE``."""


def sources(directory: Path, results: Sequence[FigureResult]) -> dict[str, ResultSource]:
    """Return each result's source by its full name. Raises `InputError` if `runs.jsonl` is damaged."""
    runs = read_runs(directory)
    return {
        result.name: ResultSource(
            run=runs.get(result.name),
            files=tuple(_file(path, directory) for path in files_of(directory, result.name)),
        )
        for result in results
    }


def _file(path: Path, directory: Path) -> SourceFile:
    place = path.relative_to(directory).as_posix()
    return SourceFile(path=place, size=path.stat().st_size, sha256=sha256_of(path))


def assumed(results: Sequence[FigureResult]) -> list[Assumption]:
    """Return the assumptions behind the results: each value once, with the figures that depend on it."""
    labels: dict[tuple[str, float], list[str]] = {}
    for result in results:
        for name, value in result.provenance.assumptions.items():
            labels.setdefault((name, value), []).append(result.name)
    return [
        Assumption(name=name, value=value, figures=tuple(figures))
        for (name, value), figures in sorted(labels.items())
    ]


def open_points(results: Sequence[FigureResult]) -> list[OpenPoint]:
    """Return what the papers leave open: each point once, with the figures that depend on it."""
    figures: dict[tuple[str, str, str], list[str]] = {}
    for result in results:
        for note in result.notes:
            figures.setdefault((result.paper, note.where, note.text), []).append(result.name)
    return [
        OpenPoint(paper=paper, where=where, text=text, figures=tuple(names))
        for (paper, where, text), names in figures.items()
    ]


def stated_sentences(results: Sequence[FigureResult]) -> list[StatedSentence]:
    """Return the statements behind the claims, each once, as far as this version knows them."""
    figures: dict[tuple[str, str], dict[str, None]] = {}
    for result in results:
        for claim in result.claims:
            figures.setdefault((result.paper, claim.fact), {})[result.name] = None
    known = {paper: facts(paper) for paper in papers()}
    return [
        StatedSentence(paper=paper, fact=known[paper][reference], figures=tuple(names))
        for (paper, reference), names in figures.items()
        if reference in known.get(paper, {})
    ]


def in_papers_order(paper: str, figure: str) -> tuple[bool, str, int, list[tuple[str, int]]]:
    """Return a key that sorts figures in their paper's order, Loko first; figures outside it come last."""
    known = order(paper) if paper in papers() else ()
    place = known.index(figure) if figure in known else len(known)
    return paper != LOKO, paper, place, in_order(paper, figure)
