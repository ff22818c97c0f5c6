"""A folder of results: where each file of a figure lies.

Figures of several papers may have the same ID, so each is known by its full name ``PAPER/FIGURE``. Loko's
files lie at the root of the folder, those of another paper in a folder of its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

LOKO: Final = "loko"
"""The paper that a bare ID means."""

SUFFIXES: Final = (".json", ".parquet", ".svg", ".png")
"""Of the files of a figure: result, records, pictures."""

POINTS: Final = ".points"
"""Folder of the runs of figures whose points are not complete yet."""


def full_name(name: str) -> str:
    """``PAPER/FIGURE`` of a name that may be a bare ID."""
    return name if "/" in name else f"{LOKO}/{name}"


def short_name(name: str) -> str:
    """The full name without the paper if that is Loko: what the figure's files are called in their folder."""
    return full_name(name).removeprefix(f"{LOKO}/")


def figure_file(directory: Path, name: str, suffix: str) -> Path:
    """A figure's file such as ``DIR/fig17a.json`` or ``DIR/PAPER/fig9a.json``; its folder is made."""
    path = directory / f"{short_name(name)}{suffix}"
    path.parent.mkdir(exist_ok=True)
    return path


def files_of(directory: Path, name: str) -> list[Path]:
    """What there is of a figure: its result, records and pictures."""
    paths = (directory / f"{short_name(name)}{suffix}" for suffix in SUFFIXES)
    return [path for path in paths if path.is_file()]


def run_file(directory: Path, name: str, x: float, run: int) -> Path:
    """The records of one run of a point, until all of the figure are complete."""
    return directory / POINTS / f"{_stem(name)}-{x:g}-{run}.parquet"


def run_files(directory: Path, name: str) -> list[Path]:
    """The records of all runs of a figure that are kept."""
    return sorted((directory / POINTS).glob(f"{_stem(name)}-*.parquet"))


def result_files(directory: Path, papers: tuple[str, ...]) -> list[Path]:
    """Every figure's result in the folder: those at its root, and those of the other papers."""
    folders = [directory, *(directory / paper for paper in papers if paper != LOKO)]
    return [path for folder in folders for path in sorted(folder.glob("*.json"))]


def _stem(name: str) -> str:
    """In one folder for all papers; no name has a full stop."""
    return short_name(name).replace("/", ".")
