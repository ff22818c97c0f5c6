"""When and where the results of a folder were made: `DIR/runs.jsonl`, one line a figure.

All that differs between two replays with the same parameters is here and in the report, so that in virtual
time the results themselves stay the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from evaluation.files import write_atomically
from loko.document import InputError

RUNS: Final = "runs.jsonl"


class FigureRun(BaseModel):
    """How one figure's records came to be."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    figure: str
    """``PAPER/FIGURE``."""
    began: str
    """In UTC, as in ``2026-11-23T01:40:00Z``."""
    seconds: float
    """How long it took, up to the complete records. What was kept of an interrupted replay is not in it."""
    together_with: list[str] = []
    """Figures whose points were replayed in the same time."""
    machine: str
    commit: str


def read_runs(directory: Path) -> dict[str, FigureRun]:
    """By figure; none of a folder without the file. Raises `InputError`, one line, if it is damaged."""
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
    """Put these beside those of the other figures."""
    together: Mapping[str, FigureRun] = read_runs(directory) | {run.figure: run for run in runs}
    lines = [together[name].model_dump_json() for name in sorted(together)]
    write_atomically(directory / RUNS, "".join(f"{line}\n" for line in lines).encode())
