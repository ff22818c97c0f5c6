"""The document of an attack: which schemes, with which flows, and how long to look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from evaluation.figure import LabFigure
from evaluation.finding_checks import FindingClaim
from loko.document import Strict


class Attacked(Strict):
    """A scheme, by the name that `evaluation.adversary.schemes` gives it."""

    label: str
    scheme: str = Field(pattern=r"^[a-z-]+$")

    @property
    def ours(self) -> bool:
        """Whether it is one of this project's schemes, which must keep what they promise."""
        return not self.scheme.startswith(("silo", "qjump"))

    @property
    def key(self) -> str:
        """The name as names of findings begin with."""
        return self.scheme.replace("-", "_")


class Pair(Strict):
    """Who sends to whom."""

    source: str
    destination: str


class Effort(Strict):
    """How long the adversary looks."""

    generations: int = Field(ge=1)
    """Of `evaluation.adversary.search.POPULATION` patterns each."""
    seconds: float = Field(gt=0)
    """Of the paper's random bursts, for comparison."""


class AttackFigure(LabFigure):
    """Every scheme accepts as many equal flows as it does; then they are attacked."""

    kind: Literal["attack"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    schemes: list[Attacked] = Field(min_length=1)
    pairs: list[Pair] = Field(min_length=1)
    """Flows are requested in turns for each, until all are refused."""
    rate_bps: float = Field(gt=0)
    burst_bytes: float = Field(gt=0)
    effort: Effort
    quick: Effort
