"""What every kind of figure is told when it is produced: the command line's choices, and whom to tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal, Protocol

from evaluation.executor import Executor
from loko.cabling import Cards, load_cabling
from loko.lab import Backend, Lab

Points = Literal["all", "admitted"]

WITHOUT_INFLUENCE: Final = frozenset({"out", "jobs", "executor", "scheduler"})
"""Options that change where and how fast a result is had, and nothing of it."""

LIVE_ONLY: Final = frozenset({"backend", "builder", "framework", "framework_python", "cabling"})
"""Options that are for real time; some name files or programs of the machine."""

OS_KEN: Final = "os-ken"
"""The framework of the testbed's own environment."""


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
    framework: str = OS_KEN
    """The OpenFlow framework of the controller in real time (`loko.controller.relay.FRAMEWORKS`)."""
    framework_python: str | None = None
    """The interpreter that has it, if not this one."""
    cabling: Path | None = None
    """The file that says which switches are real boards (mode ``hardware``)."""
    executor: Executor = Executor.PROCESSES
    """Where what needs no lab is computed."""
    scheduler: str | None = None
    """Address of the Dask cluster, if that is the executor."""

    def chosen(self) -> dict[str, str | int | float | bool]:
        """What the result depends on: mode and seed, and all that is not the default."""
        found: dict[str, str | int | float | bool] = {"mode": self.mode, "seed": self.seed}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in WITHOUT_INFLUENCE and field.name not in found and value != field.default:
                found[field.name] = value if isinstance(value, str | int | float | bool) else str(value)
        return found

    @property
    def real_time(self) -> bool:
        """Whether frames pass real interfaces by this machine's clock: mode ``live`` or ``hardware``."""
        return self.mode != "virtual"

    def switched_by(self, lab: Lab) -> str:
        """What forwards a lab's frames in real time, as results tell it; empty in virtual time."""
        return ", ".join(lab.with_backend(self.backend).backends) if self.real_time else ""

    @property
    def driven_by(self) -> str:
        """The controller's OpenFlow framework in real time, as results tell it; empty in virtual time."""
        return self.framework if self.real_time else ""

    def real_boards(self) -> Mapping[str, Cards]:
        """How the real boards are cabled; results depend on it. Raises `InputError`."""
        return {} if self.cabling is None else load_cabling(self.cabling).switches


def words_of(chosen: Mapping[str, str | int | float | bool]) -> list[str]:
    """`Options.chosen` as words of the command line: what the switches are first, the seed last."""
    first = ("mode", "cabling", "backend", "builder", "framework", "framework_python")
    order = [name for name in first if name in chosen]
    order += [name for name in chosen if name not in (*first, "seed")]
    words: list[str] = []
    for name in (*order, *(["seed"] if "seed" in chosen else [])):
        value = chosen[name]
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words.append(f"{value:.12g}" if isinstance(value, float) else str(value))
    return words


class Progress(Protocol):
    """Is told how far the replay is."""

    def begin(self, steps: int, kept: int, unit: str = "runs") -> None:
        """So many steps are to be done; so many points are there from an earlier replay."""

    def advance(self, doing: str) -> None:
        """One more step is done. Called from any thread."""

    def writing(self, figure: str) -> None:
        """A figure's points are complete."""
