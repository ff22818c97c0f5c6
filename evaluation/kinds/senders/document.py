"""The document: from which printed numbers senders are inferred, over which grid, and what is predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from evaluation.figure import Figure
from evaluation.finding_checks import FindingClaim
from evaluation.senders import SenderSettings
from loko.document import Strict


class Source(Strict):
    """The one figure that the senders are inferred from, and what the paper prints of it."""

    figure: str
    scheme: str
    """Admission scheme of one of its systems."""
    lost: str
    """The fact with the per cent of its packets that are lost."""
    late: str
    """The fact with the per cent that are late."""
    decimals: int = Field(ge=0)
    """Of both, as printed."""


class Grid(Strict):
    """The senders that are tried: each burst with each load and each room, if the burst finds room."""

    burst_frames: list[int] = Field(min_length=1)
    offered_load: list[float] = Field(min_length=1)
    queue_frames: list[int] = Field(min_length=1)

    @property
    def senders(self) -> list[SenderSettings]:
        """All of them."""
        return [
            SenderSettings(burst_frames=burst, offered_load=load, queue_frames=room)
            for room in self.queue_frames
            for burst in self.burst_frames
            for load in self.offered_load
            if burst <= room
        ]

    @model_validator(mode="after")
    def _rising(self) -> Self:
        for values in (self.burst_frames, self.offered_load, self.queue_frames):
            if list(values) != sorted(set(values)):
                raise ValueError("the values of each list must rise")
        return self


class Predicted(Strict):
    """A figure that the inferred senders are used for, at a smaller scale than the paper's."""

    figure: str
    runs: int = Field(ge=1)
    seconds: float = Field(gt=0)


class Number(Strict):
    """A number that the paper prints of a predicted figure."""

    figure: str
    finding: str
    """A finding of the figure; of a sweep ``loss_at_X_percent``, ``loss_starts`` or ``late_starts``."""
    fact: str


class Effort(Strict):
    """How much is replayed."""

    runs: int = Field(ge=2)
    """Of each sender of the grid; their spread is the sampling error."""
    seconds: float = Field(gt=0)


class Quick(Effort):
    """The small run of ``--quick``: fewer senders, and only so many predicted figures."""

    grid: Grid
    figures: int = Field(ge=0)


class SendersFigure(Figure):
    """A likelihood over senders, and their predictions beside those of the default sender."""

    kind: Literal["senders"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    inferred_from: Source
    grid: Grid
    effort: Effort
    deviance: float = Field(gt=0)
    """The region has every sender whose -2 log likelihood is at most so much above the smallest."""
    capacity_factors: list[float] = Field(min_length=1)
    """With which the best sender predicts, beside the profile's own."""
    shaper_latencies_ns: list[int] = Field(default=[])
    """With which the best sender predicts, beside a timer that is never late."""
    predicted: list[Predicted]
    numbers: list[Number]
    quick: Quick

    @model_validator(mode="after")
    def _never_fitted_to_what_is_predicted(self) -> Self:
        known = {one.figure for one in self.predicted}
        if self.inferred_from.figure in known:
            raise ValueError(f"predicted: {self.inferred_from.figure} is what the senders are inferred from")
        for number in self.numbers:
            if number.figure not in known:
                raise ValueError(f"numbers: {number.figure} is not among the predicted figures")
        return self
