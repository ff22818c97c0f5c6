"""The document of a figure that compares schedules on random networks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loko.document import StrictModel
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
    """The numbers of flows that S/PR and S/FR schedule, relative to S/UR."""

    supported_options = IN_TASKS
    kind: Literal["schedules"]
    hosts: int = Field(ge=2)
    switches: int = Field(ge=2)
    topologies: list[Topology] = Field(min_length=1)
    scale: ScenarioRanges
    quick: ScenarioRanges
