"""The document of an admission figure."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from evaluation.figure import LabFigure
from evaluation.finding_checks import FindingFigure
from loko.document import Strict
from loko.schemes import choice_named

SAME_DELAY: Final = "full-rate-same-delay"
"""Full-rate with D as it is without `buffer_factor`; then D is no bound of the larger buffer."""


def _known(name: str) -> str:
    if name != SAME_DELAY:
        choice_named(name)
    return name


SchemeName = Annotated[str, AfterValidator(_known)]
"""As `loko.schemes` has them, or `SAME_DELAY`. What is optimised is so for the figure's own requests."""

Hops = list[Annotated[int, Field(ge=0)]]
"""Path lengths in links between switches: 0 has both ends at one switch."""


class Quick(Strict):
    """A small run of the same code."""

    runs: int = Field(ge=1)
    hops: Hops = Field(min_length=1)


class AdmissionFigure(FindingFigure, LabFigure):
    """Requests from random switches of a ring to the one so many hops on, as section 6.2 has them."""

    kind: Literal["admission"]
    requests: int = Field(ge=1, le=50_000)
    """Of each run, one after the other."""
    runs: int = Field(ge=1)
    """For each path length."""
    hops: Hops = Field(min_length=1)
    rate_kbps: tuple[float, float] = Field(strict=False)
    """Rates are uniform between these."""
    burst_bytes: float = Field(gt=0)
    buffer_factor: int = Field(default=1, ge=1)
    """The switch is given this many times its buffer."""
    schemes: list[SchemeName] = Field(min_length=1)
    runs_of_others: int | None = Field(default=None, ge=1)
    """Runs of each scheme but the first. Default: as many."""
    shows: Literal["use", "accepted"]
    """What is drawn: the use of the switches by the first scheme, or the flows that each scheme accepts."""
    quick: Quick

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 0 < self.rate_kbps[0] <= self.rate_kbps[1]:
            raise ValueError("rate_kbps: give the lower rate, above 0, then the higher one")
        return self
