"""The documents of figures of schedules on random networks; `shows` tells them apart."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from loko.document import StrictModel
from loko.schedule.problem import SchedulingScheme
from loko_testbed.reproduce.figure import IN_TASKS
from loko_testbed.reproduce.finding_checks import FindingFigure

TopologyModel = Literal["erdos-renyi", "random-regular", "barabasi-albert", "waxman"]


class Topology(StrictModel):
    """Randomly cabled switches, with hosts spread evenly over them."""

    model: TopologyModel
    seed: int = Field(ge=0)
    parameter: float = Field(gt=0)
    """Erdos-Renyi: cables between switches; random regular: cables of each switch; Barabasi-Albert: cables of
    each added switch; Waxman: alpha, with a beta of 1."""


class ScenarioRanges(StrictModel):
    """The scenarios: every topology is combined with every number of flows and of slots."""

    flows: list[int] = Field(min_length=1)
    slots: list[int] = Field(min_length=1)


class SchedulesFigure(FindingFigure):
    """A figure of schedules that are only computed."""

    kind: Literal["schedules"]
    shows: str


class ScheduledFlows(SchedulesFigure):
    """The numbers of flows that S/PR and S/FR schedule, relative to S/UR."""

    supported_options = IN_TASKS
    shows: Literal["scheduled-flows"]
    hosts: int = Field(ge=2)
    switches: int = Field(ge=2)
    topologies: list[Topology] = Field(min_length=1)
    scale: ScenarioRanges
    quick: ScenarioRanges


class RandomNetwork(StrictModel):
    """A random network; hosts are spread over its switches evenly."""

    topology: Topology
    hosts: int = Field(ge=2)
    switches: int = Field(ge=2)


class QuickRunTimes(StrictModel):
    """The scale of a replay with ``--quick``."""

    points: int = Field(ge=1)
    """Number of values of the varying quantity that are used, from the first on."""
    runs: int = Field(ge=1)


class RunTimes(SchedulesFigure):
    """Run times of schedules by flows, slots or links: this project's method and the paper's program."""

    shows: Literal["run-times"]
    varied: Literal["flows", "slots", "links"]
    """The quantity on the x axis. Links are cables, as in the paper, those of hosts included."""
    networks: list[RandomNetwork] = Field(min_length=1)
    flows: list[int] = Field(min_length=1)
    slots: list[int] = Field(min_length=1)
    schemes: list[Annotated[SchedulingScheme, Field(strict=False)]] = Field(min_length=1)
    runs: int = Field(ge=1)
    """How often each schedule is computed."""
    limit_s: float = Field(gt=0)
    """The time limit of each computation. One that was stopped has no run time."""
    quick: QuickRunTimes

    @property
    def needs_root(self) -> bool:
        """Always false: schedules are only computed. See `Figure.needs_root`."""
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
