"""The document of an inference: printed numbers, a grid of senders, and the figures to predict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from loko.document import StrictModel
from loko_testbed.reproduce.figure import SIMULATED, Figure
from loko_testbed.reproduce.finding_checks import FindingClaim
from loko_testbed.simulation.senders import SenderSettings


class InferenceSource(StrictModel):
    """The figure from whose shares senders are inferred, with what the paper prints of it."""

    figure: str
    scheme: str
    """Admission scheme of the figure's system that is used."""
    lost: str
    """Fact with the share of lost packets in per cent."""
    late: str
    """Fact with the share of late packets in per cent."""
    decimals: int = Field(ge=0)
    """Decimals of both numbers as printed."""


class BoxAt(StrictModel):
    """A box of a sweep: its observed flows at one x."""

    figure: str
    x: float


class CountSource(StrictModel):
    """A number of packets that the paper prints of a box of its sweeps."""

    fact: str
    rounded_to: float = Field(gt=0)
    """The unit of the last printed digit."""
    largest_of: list[BoxAt] = Field(min_length=1)
    """The boxes of which one may be meant: the one with most packets."""
    runs: int = Field(ge=2)
    """Runs of each sender, as long as those of the grid."""


class SenderGrid(StrictModel):
    """The senders to try: all combinations in which the burst fits the queue."""

    burst_frames: list[int] = Field(min_length=1)
    offered_load: list[float] = Field(min_length=1)
    queue_frames: list[int] = Field(min_length=1)

    @property
    def senders(self) -> list[SenderSettings]:
        """All senders of the grid."""
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


class Predicted(StrictModel):
    """A figure that is replayed with the inferred senders, on a smaller scale than the paper's."""

    figure: str
    runs: int = Field(ge=1)
    seconds: float = Field(gt=0)


class PredictedNumber(StrictModel):
    """A number that the paper prints for a predicted figure."""

    figure: str
    finding: str
    """A finding of the figure; for a sweep ``loss_at_X_percent``, ``loss_starts`` or ``late_starts``."""
    fact: str


class InferenceBudget(StrictModel):
    """The scale of the replays of the grid."""

    runs: int = Field(ge=2)
    """Runs of each sender of the grid; their spread gives the sampling error."""
    seconds: float = Field(gt=0)


class QuickInference(InferenceBudget):
    """The scale of a replay with ``--quick``: a smaller grid and fewer predicted figures."""

    grid: SenderGrid
    figures: int = Field(ge=0)


class SendersFigure(Figure):
    """A likelihood over senders, and predictions of the likely ones beside those of the simple sender."""

    supported_options = SIMULATED
    kind: Literal["senders"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    inferred_from: InferenceSource
    counts: list[CountSource] = Field(min_length=1)
    """Numbers of packets, which the senders must explain together with the shares."""
    grid: SenderGrid
    budget: InferenceBudget
    deviance: float = Field(gt=0)
    """The region has all senders whose -2 log likelihood exceeds the smallest by at most this."""
    capacity_factors: list[float] = Field(min_length=1)
    """Further capacity factors, beside the profile's, with which the best sender predicts."""
    shaper_latencies_ns: list[int] = Field(default=[])
    """Further latencies, beside 0, with which the best sender predicts."""
    predicted: list[Predicted]
    numbers: list[PredictedNumber]
    quick: QuickInference

    @model_validator(mode="after")
    def _never_fitted_to_what_is_predicted(self) -> Self:
        known = {figure.figure for figure in self.predicted}
        if self.inferred_from.figure in known:
            raise ValueError(f"predicted: {self.inferred_from.figure} is what the senders are inferred from")
        for number in self.numbers:
            if number.figure not in known:
                raise ValueError(f"numbers: {number.figure} is not among the predicted figures")
        return self
