"""What every kind of figure is told when it is produced: the command line's choices, and whom to tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from evaluation.executor import Executor, Workers
from evaluation.senders import AS_DESCRIBED, SenderChoice
from loko.cabling import Cards, load_cabling
from loko.lab import Backend, Lab

Points = Literal["all", "admitted"]
Choice = str | int | float | bool
"""The value of an option."""

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


class Scale(Protocol):
    """How much a figure replays, if nothing else is chosen."""

    @property
    def runs(self) -> int:
        """So many."""

    @property
    def seconds(self) -> float:
        """So long each."""


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
    senders: SenderChoice = AS_DESCRIBED
    """What replaces the figures' descriptions of their senders."""
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
    """Where the tasks of virtual time are computed."""
    scheduler: str | None = None
    """Address of the Dask cluster, if that is the executor."""

    def chosen(self) -> dict[str, Choice]:
        """What the result depends on: mode and seed, and all that is not the default."""
        return {"mode": self.mode, "seed": self.seed, **_not_default(self)}

    def scale(self, default: Scale) -> tuple[int, float]:
        """Runs, and the seconds of each: those that were chosen, otherwise the figure's."""
        return (
            default.runs if self.runs is None else self.runs,
            default.seconds if self.seconds is None else self.seconds,
        )

    @property
    def workers(self) -> Workers:
        """What computes the tasks of virtual time."""
        return Workers(jobs=self.jobs, executor=self.executor, scheduler=self.scheduler)

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


def _not_default(choices: Any) -> dict[str, Choice]:
    """The fields of a dataclass that have influence and another value; those of a part by their own names."""
    found: dict[str, Choice] = {}
    for field in fields(choices):
        value = getattr(choices, field.name)
        if field.default is MISSING or field.name in WITHOUT_INFLUENCE or value == field.default:
            continue
        if is_dataclass(value):
            found |= _not_default(value)
        else:
            found[field.name] = value if isinstance(value, Choice) else str(value)
    return found


def arranged(chosen: Mapping[str, Choice], into: Any = Options) -> dict[str, Any]:
    """`Options.chosen` again as the fields of `Options`: what is a part's is put into that part."""
    found: dict[str, Any] = {}
    for field in fields(into):
        if is_dataclass(field.default):
            if part := arranged(chosen, field.default):
                found[field.name] = part
        elif field.name in chosen:
            found[field.name] = chosen[field.name]
    return found


def names_of_choices(of: Any = Options) -> set[str]:
    """What `Options.chosen` may tell, by name."""
    names: set[str] = set()
    for field in fields(of):
        names |= names_of_choices(field.default) if is_dataclass(field.default) else {field.name}
    return names - WITHOUT_INFLUENCE


def words_of(chosen: Mapping[str, Choice]) -> list[str]:
    """`Options.chosen` as words of the command line: what the switches are first, the seed last."""
    first = ("mode", "cabling", "backend", "builder", "framework", "framework_python")
    order = [name for name in first if name in chosen]
    order += [name for name in chosen if name not in (*first, "seed")]
    words: list[str] = []
    for name in (*order, *(["seed"] if "seed" in chosen else [])):
        value = chosen[name]
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words.append(_shortest(value) if isinstance(value, float) else str(value))
    return words


def _shortest(value: float) -> str:
    """The fewest digits that give the same number."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


class Progress(Protocol):
    """Is told how far the replay is."""

    def begin(self, steps: int, kept: int, unit: str = "runs") -> None:
        """So many steps are to be done; so many points are there from an earlier replay."""

    def advance(self, doing: str) -> None:
        """One more step is done. Called from any thread."""

    def writing(self, figure: str) -> None:
        """A figure's points are complete."""


class Silent:
    """A `Progress` that tells nobody."""

    def begin(self, steps: int, kept: int, unit: str = "runs") -> None:
        """As `Progress.begin`."""

    def advance(self, doing: str) -> None:
        """As `Progress.advance`."""

    def writing(self, figure: str) -> None:
        """As `Progress.writing`."""
