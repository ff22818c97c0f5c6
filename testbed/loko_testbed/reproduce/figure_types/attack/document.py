"""The document of an attack: schemes, flows, and how long to search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from loko.admission.schemes import variant_named
from loko.document import StrictModel
from loko_testbed.reproduce.figure import IN_TASKS, LabFigure
from loko_testbed.reproduce.finding_checks import FindingClaim
from loko_testbed.reproduce.flow_figure import HostPair
from loko_testbed.simulation.worst_case.schemes import PRINTED


class Attacked(StrictModel):
    """A scheme that is attacked; `scheme` is its name in `loko_testbed.simulation.worst_case.schemes`."""

    label: str
    scheme: str = Field(pattern=r"^[a-z][a-z0-9-]*$")

    @property
    def ours(self) -> bool:
        """Whether it must keep its guarantees, as every scheme but the baselines."""
        return not variant_named(self.scheme.removesuffix(PRINTED)).is_baseline

    @property
    def key(self) -> str:
        """Prefix of its findings' names."""
        return self.scheme.replace("-", "_")


class SearchBudget(StrictModel):
    """How long the worst-case search takes."""

    generations: int = Field(ge=1)
    """Generations of `loko_testbed.simulation.worst_case.search.POPULATION` patterns each."""
    seconds: float = Field(gt=0)
    """Seconds of the paper's random bursts, for comparison."""


class AttackFigure(LabFigure):
    """Every scheme is filled with equal flows, which are then attacked."""

    supported_options = IN_TASKS
    kind: Literal["attack"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    schemes: list[Attacked] = Field(min_length=1)
    pairs: list[HostPair] = Field(min_length=1)
    """Flows are requested for these in turn until all are refused."""
    rate_bps: float = Field(gt=0)
    burst_bytes: float = Field(gt=0)
    budget: SearchBudget
    quick: SearchBudget
