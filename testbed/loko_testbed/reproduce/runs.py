"""Times and machines of a folder's results: `DIR/runs.jsonl`, one line per figure.

Whatever differs between two replays with the same parameters is stored only here and in the report, so that
results of virtual time are the same byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from loko.document import InputError
from loko_testbed.tasks.files import write_atomically

RUNS: Final = "runs.jsonl"


class FigureRun(BaseModel):
    """How a figure's records were made."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    figure: str
    """``PAPER/FIGURE``."""
    began: str
    """Start in UTC, as in ``2026-11-23T01:40:00Z``."""
    seconds: float
    """Duration until the records were complete, without the time of earlier, interrupted replays. Of figures
    that were replayed together, from the end of the one before, whose last runs may overlap with it."""
    seeds_seconds: float = 0
    """Duration of the replay at further seeds (`loko_testbed.reproduce.replications`)."""
    together_with: list[str] = []
    """Figures that were replayed during the same time."""
    machine: str
    commit: str


def read_runs(directory: Path) -> dict[str, FigureRun]:
    """Read the folder's runs by figure; empty without the file. Raises `InputError` if it is damaged."""
    path = directory / RUNS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    try:
        runs = [FigureRun.model_validate_json(line) for line in lines]
    except ValidationError:
        raise InputError(f"{path}: damaged; delete it: only start, duration and machine are in it") from None
    return {run.figure: run for run in runs}


def write_runs(directory: Path, runs: Iterable[FigureRun]) -> None:
    """Add these runs to the folder's file, replacing those of the same figures."""
    together = read_runs(directory) | {run.figure: run for run in runs}
    write_atomically(directory / RUNS, content(together.values()))


def content(runs: Iterable[FigureRun]) -> bytes:
    """Return the content of a file of these runs."""
    return "".join(f"{run.model_dump_json()}\n" for run in sorted(runs, key=lambda run: run.figure)).encode()
