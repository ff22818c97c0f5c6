"""The layout of a folder of results: the path of each file of a figure.

Figures of different papers may have the same ID, so each is known by its full name ``PAPER/FIGURE``. The
files of Loko's figures lie at the root of the folder, those of another paper's in a subfolder of its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

LOKO: Final = "loko"
"""The paper of a figure that is named by its ID alone."""

SUFFIXES: Final = (".json", ".parquet", ".svg", ".png")
"""Suffixes of a figure's files: result, records, pictures."""


def full_name(name: str) -> str:
    """Return ``PAPER/FIGURE`` for a name that may be an ID alone."""
    return name if "/" in name else f"{LOKO}/{name}"


def short_name(name: str) -> str:
    """Return the name without the paper if that is Loko: the path of the figure's files without suffix."""
    return full_name(name).removeprefix(f"{LOKO}/")


def figure_file(directory: Path, name: str, suffix: str) -> Path:
    """Return a path such as ``DIR/fig17a.json`` or ``DIR/PAPER/fig9a.json``; create its parent folder."""
    path = directory / f"{short_name(name)}{suffix}"
    path.parent.mkdir(exist_ok=True)
    return path


def files_of(directory: Path, name: str) -> list[Path]:
    """Return a figure's existing files: result, records and pictures."""
    paths = (directory / f"{short_name(name)}{suffix}" for suffix in SUFFIXES)
    return [path for path in paths if path.is_file()]


def result_files(directory: Path, papers: tuple[str, ...]) -> list[Path]:
    """Return the result files of all figures: those at the root, then those of the other papers."""
    folders = [directory, *(directory / paper for paper in papers if paper != LOKO)]
    return [path for folder in folders for path in sorted(folder.glob("*.json"))]


def campaign_of(name: str) -> str:
    """Return the name under which a figure's tasks are kept: the slash becomes a full stop."""
    return short_name(name).replace("/", ".")
