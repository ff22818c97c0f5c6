"""What every kind of figure is told when it is produced: the command line's choices, and whom to tell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from evaluation.executor import Executor
from loko.lab import Backend

Points = Literal["all", "admitted"]


class Builder(StrEnum):
    """What builds the network of a live lab."""

    MININET = "mininet"
    CONTAINERLAB = "containerlab"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line may change. None: as the experiment says, the paper's scale."""

    mode: str
    seed: int
    out: Path
    runs: int | None = None
    seconds: float | None = None
    points: Points = "all"
    quick: bool = False
    jobs: int = 1
    """How much may run at a time in virtual time."""
    offered_load: float | None = None
    capacity_factor: float | None = None
    backend: Backend | None = None
    builder: Builder = Builder.MININET
    cabling: Path | None = None
    """The file that says which switches of a live run are real boards."""
    executor: Executor = Executor.PROCESSES
    """Where what needs no lab is computed."""
    scheduler: str | None = None
    """Address of the Dask cluster, if that is the executor."""


class Progress(Protocol):
    """Is told how far the replay is."""

    def begin(self, steps: int, kept: int, unit: str = "runs") -> None:
        """So many steps are to be done; so many points are there from an earlier replay."""

    def advance(self, doing: str) -> None:
        """One more step is done. Called from any thread."""

    def writing(self, figure: str) -> None:
        """A figure's points are complete."""
