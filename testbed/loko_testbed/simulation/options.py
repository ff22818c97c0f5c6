"""Input of every figure type: the options chosen on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from pydantic import TypeAdapter

from loko.topology.cabling import Cards, load_cabling
from loko.topology.lab import Backend, Lab
from loko_testbed.simulation.senders import AS_DESCRIBED, SenderChoice
from loko_testbed.tasks.executor import Executor, Workers

Points = Literal["all", "admitted"]
Choice = str | int | float | bool
"""The value of an option."""

WITHOUT_INFLUENCE: Final = frozenset({"out", "jobs", "executor", "scheduler", "captures"})
"""Options that affect where and how fast a result is computed, or what else is written, not the result."""

LIVE_ONLY: Final = frozenset({"backend", "builder", "framework", "framework_python", "cabling"})
"""Options for real time only; some name files or programs of the machine."""

OS_KEN: Final = "os-ken"
"""The OpenFlow framework that is installed in the testbed's own environment."""


class Builder(StrEnum):
    """Builder of the network of a live lab."""

    MININET = "mininet"
    CONTAINERLAB = "containerlab"


class ReplayScale(Protocol):
    """How much a figure replays by default."""

    @property
    def runs(self) -> int:
        """Number of runs."""

    @property
    def seconds(self) -> float:
        """Length of each run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureChoice:
    """The choice of which runs leave captures, and how large they may become."""

    folder: Path
    runs: int
    """Of each point, from the first."""
    limit_bytes: int
    """Of all captures together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the command line. None means: as the experiment says, at the paper's scale."""

    mode: str
    seed: int
    out: Path
    runs: int | None = None
    seconds: float | None = None
    points: Points = "all"
    quick: bool = False
    jobs: int = 1
    """Number of parallel processes in virtual time."""
    senders: SenderChoice = AS_DESCRIBED
    """Overrides of the figures' descriptions of their senders."""
    capacity_factor: float | None = None
    backend: Backend | None = None
    builder: Builder = Builder.MININET
    framework: str = OS_KEN
    """The OpenFlow framework of the controller in real time (`loko.control.relay.FRAMEWORKS`)."""
    framework_python: str | None = None
    """The Python interpreter that has the framework, if not this one."""
    cabling: Path | None = None
    """The file that says which switches are real boards (mode ``hardware``)."""
    executor: Executor = Executor.PROCESSES
    """Where the tasks of virtual time are computed."""
    scheduler: str | None = None
    """Address of the Dask scheduler, if that is the executor."""
    captures: CaptureChoice | None = None

    def chosen(self) -> dict[str, Choice]:
        """Return the options that the result depends on: mode, seed, and all that are not the default."""
        return {"mode": self.mode, "seed": self.seed, **_not_default(self)}

    def scale(self, default: ReplayScale) -> tuple[int, float]:
        """Return the number of runs and the seconds of each: as chosen, else those of `default`."""
        return (
            default.runs if self.runs is None else self.runs,
            default.seconds if self.seconds is None else self.seconds,
        )

    @property
    def workers(self) -> Workers:
        """Where tasks are computed. In real time one follows another, in this process."""
        if self.real_time:
            return Workers()
        return Workers(jobs=self.jobs, executor=self.executor, scheduler=self.scheduler)

    @property
    def real_time(self) -> bool:
        """Whether frames pass real interfaces by this machine's clock: mode ``live`` or ``hardware``."""
        return self.mode != "virtual"

    def switched_by(self, lab: Lab) -> str:
        """Return the backends that forward a lab's frames, as recorded in results; empty in virtual time."""
        return ", ".join(lab.with_backend(self.backend).backends) if self.real_time else ""

    @property
    def driven_by(self) -> str:
        """The controller's OpenFlow framework, as recorded in results; empty in virtual time."""
        return self.framework if self.real_time else ""

    def real_boards(self) -> Mapping[str, Cards]:
        """Return the cabling of the real boards, on which results depend. Raises `InputError`."""
        return {} if self.cabling is None else load_cabling(self.cabling).switches


def _not_default(choices: Any) -> dict[str, Choice]:
    """Return the fields that influence results and differ from their defaults; nested ones are flattened."""
    differing: dict[str, Choice] = {}
    for field in fields(choices):
        value = getattr(choices, field.name)
        if field.default is MISSING or field.name in WITHOUT_INFLUENCE or value == field.default:
            continue
        if is_dataclass(value):
            differing |= _not_default(value)
        else:
            differing[field.name] = value if isinstance(value, Choice) else str(value)
    return differing


def unflatten(chosen: Mapping[str, Choice], into: Any = Options) -> dict[str, Any]:
    """Undo the flattening of `Options.chosen`: return its values as fields of `Options`, nested again."""
    values: dict[str, Any] = {}
    for field in fields(into):
        if is_dataclass(field.default):
            if part := unflatten(chosen, field.default):
                values[field.name] = part
        elif field.name in chosen:
            values[field.name] = chosen[field.name]
    return values


def recorded_options(chosen: Mapping[str, Choice], *, out: Path, jobs: int) -> Options:
    """Return the options that a result records (`Options.chosen`).

    Raises `pydantic.ValidationError` if they are none, as in a result that was written by hand.
    """
    return _adapter().validate_python({**unflatten(chosen), "out": out, "jobs": jobs})


@cache
def _adapter() -> TypeAdapter[Options]:
    return TypeAdapter(Options)


def names_of_choices(of: Any = Options) -> set[str]:
    """Return all names that `Options.chosen` may contain."""
    names: set[str] = set()
    for field in fields(of):
        names |= names_of_choices(field.default) if is_dataclass(field.default) else {field.name}
    return names - WITHOUT_INFLUENCE


def arguments_of(chosen: Mapping[str, Choice]) -> list[str]:
    """Return `Options.chosen` as command-line arguments: options of the switches first, the seed last."""
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
    """Format a number with the fewest digits that give the same number again."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)
