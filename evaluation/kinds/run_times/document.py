"""The document of a figure of run times: what is scheduled, and what of it varies."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluation.finding_checks import FindingFigure
from evaluation.kinds.schedules.document import Topology
from loko.document import Strict
from loko.schedule.problem import SchedulingScheme


class Network(Strict):
    """A random network; hosts are spread over its switches evenly."""

    topology: Topology
    hosts: int = Field(ge=2)
    switches: int = Field(ge=2)


class Quick(Strict):
    """What `--quick` leaves."""

    points: int = Field(ge=1)
    """The first of what varies."""
    runs: int = Field(ge=1)


class RunTimesFigure(FindingFigure):
    """How long schedules take by flows, slots or links: `loko.schedule.packing` and the straight programs."""

    kind: Literal["run_times"]
    varied: Literal["flows", "slots", "links"]
    """Links as the paper counts them: cables, those of hosts included."""
    networks: list[Network] = Field(min_length=1)
    flows: list[int] = Field(min_length=1)
    slots: list[int] = Field(min_length=1)
    schemes: list[Annotated[SchedulingScheme, Field(strict=False)]] = Field(min_length=1)
    runs: int = Field(ge=1)
    """How often each schedule is computed."""
    limit_s: float = Field(gt=0)
    """For each computation at most. What was stopped has no run time."""
    quick: Quick

    @property
    def needs_root(self) -> bool:
        """As `Figure.needs_root`: it computes only."""
        return False

    @model_validator(mode="after")
    def _one_varies(self) -> Self:
        if self.modes != ["live"]:
            raise ValueError("modes: times are of this machine, so give [live]")
        counts = {"flows": len(self.flows), "slots": len(self.slots), "links": len(self.networks)}
        for name, count in counts.items():
            if name == self.varied and count < self.quick.points:
                raise ValueError(f"quick has {self.quick.points} points, and there are {count} {name}")
            if name != self.varied and count != 1:
                raise ValueError(f"{self.varied} vary, so give one of {name.replace('links', 'networks')}")
        return self
