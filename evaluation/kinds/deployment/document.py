"""The document of a deployment: which systems, which flows, how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluation.figure import AllocationName
from evaluation.finding_checks import FindingClaim
from evaluation.flow_figure import FlowFigure
from loko.document import Strict


class _System(Strict):
    label: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9 ]*$")

    @property
    def key(self) -> str:
        """The label as names of findings begin with."""
        return self.label.lower().replace(" ", "_")


class SiloSystem(_System):
    """Silo: every flow asks for the same rate and burst (appendix A)."""

    system: Literal["silo"]
    rate_bps: float = Field(gt=0)
    burst_bytes: float = Field(gt=0)

    @property
    def scheme(self) -> str:
        """The admission scheme's name."""
        return "silo"


class QJumpSystem(_System):
    """QJump: every host sends as much as it may, one packet an epoch (section 2.3)."""

    system: Literal["qjump"]
    epsilon: Literal["paper", "consistent"] = "paper"

    @property
    def scheme(self) -> str:
        """The admission scheme's name."""
        return f"qjump-{self.epsilon}"


class LokoSystem(_System):
    """Loko: the flows share what is allocated by equation 8."""

    system: Literal["loko"]
    allocation: AllocationName
    split: float = Field(ge=0)
    """N of equation 8: flow 1 of each host pair gets N times the share of flow 2."""

    @property
    def scheme(self) -> str:
        """The admission scheme's name."""
        return self.allocation


System = Annotated[SiloSystem | QJumpSystem | LokoSystem, Field(discriminator="system")]


class Deployment(FlowFigure):
    """The delays of the observed flows under each system, beside what it guarantees."""

    kind: Literal["deployment"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    systems: list[System] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len({system.key for system in self.systems}) < len(self.systems):
            raise ValueError("systems: two of them have the same label")
        return self
